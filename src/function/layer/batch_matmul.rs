//! `batch_matmul`: matrix products over leading axes.

use crate::cpu::gemm::{Mat, MatMut, batch_matmul as batched, matmul};
use crate::error::{Error, Result};
use crate::function::array::sum_to;
use crate::function::{Function, Grad, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::shape::Shape;
use crate::{function, with_real};
use smallvec::smallvec;

function! {
    /// Matrix product over the last two axes; leading axes broadcast.
    BatchMatmul batch_matmul in Math
    inputs {
        a: "N-D array, N >= 2: matrices (.., M, K), or (.., K, M) if transposed.",
        b: "N-D array, N >= 2: matrices (.., K, N), or (.., N, K) if transposed.",
    }
    args {
        transpose_a: bool = false, "Transpose the matrices of a.";
        transpose_b: bool = false, "Transpose the matrices of b."
    }
    outputs { y: "Products (.., M, N)." }
}

/// Rows and columns of the last two axes, after transposing.
fn matrix(s: &Shape, transpose: bool) -> (usize, usize) {
    let (r, c) = (s[s.ndim() - 2], s[s.ndim() - 1]);
    if transpose { (c, r) } else { (r, c) }
}

fn lead(s: &Shape) -> Shape {
    Shape::from(&s[..s.ndim() - 2])
}

impl Function for BatchMatmul {
    fn multiplications(&self, x: &[Shape]) -> f64 {
        self.infer(x).map_or(0.0, |y| y[0].size() as f64 * matrix(&x[0], self.transpose_a).1 as f64)
    }

    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        for (s, name) in x.iter().zip(["a", "b"]) {
            if s.ndim() < 2 {
                return Err(Error::shape(name, "2 or more axes").actual(s));
            }
        }
        let ((m, k), (k2, n)) = (matrix(&x[0], self.transpose_a), matrix(&x[1], self.transpose_b));
        if k != k2 {
            return Err(Error::shape("b", format!("matrices of {k} rows, the columns of a"))
                .actual(format!("{k2} rows of {}", x[1])));
        }
        let joint = lead(&x[0]).broadcast(&lead(&x[1]));
        let mut y = joint
            .ok_or_else(|| Error::shape("b", format!("leading axes that broadcast with a {}", x[0])).actual(&x[1]))?;
        y.push(m);
        y.push(n);
        Ok(smallvec![y])
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (a, b) = (x[0].shape, x[1].shape);
        let (sa, sb) = (matrix(a, false), matrix(b, false));
        let (m, n) = matrix(y[0].shape, false);
        let over = lead(y[0].shape);
        let (la, lb) = (lead(a), lead(b));
        with_real!(run.dtype, T => {
            let (xa, xb) = (x[0].slice::<T>(), x[1].slice::<T>());
            let out = y[0].slice::<T>();
            let mat = |d, s: (usize, usize), t| if t { Mat::new(d, s.0, s.1).t() } else { Mat::new(d, s.0, s.1) };
            if la == over && lb == over && over.size() > 0 {
                let one = |d, s: (usize, usize), t| mat(d, s, t).each();
                batched(over.size(), one(xa, sa, self.transpose_a), one(xb, sb, self.transpose_b), MatMut::new(out, m, n), Output::Write);
                return Ok(());
            }
            for i in 0..over.size() {
                let (ia, ib) = (at(i, &over, &la), at(i, &over, &lb));
                let pa = &xa[ia * sa.0 * sa.1..][..sa.0 * sa.1];
                let pb = &xb[ib * sb.0 * sb.1..][..sb.0 * sb.1];
                matmul(mat(pa, sa, self.transpose_a), mat(pb, sb, self.transpose_b), MatMut::new(&mut out[i * m * n..][..m * n], m, n), Output::Write);
            }
        });
        Ok(())
    }

    /// The gradient of a matrix that is broadcast, before it is summed.
    fn backward_scratch(&self, x: &[&Shape], y: &[&Shape]) -> usize {
        let over = lead(y[0]);
        let broadcast = x.iter().filter(|s| lead(s) != over);
        broadcast.map(|s| over.size() * matrix(s, false).0 * matrix(s, false).1).max().unwrap_or(0)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (a, b, gy) = (&g.x[0], &g.x[1], &g.gy[0]);
        let product = |a: &Variable, b: &Variable, transpose_a, transpose_b| {
            batch_matmul(a, b, BatchMatmul { transpose_a, transpose_b })
        };
        let ga = || match self.transpose_a {
            true => product(b, gy, self.transpose_b, true),
            false => product(gy, b, false, !self.transpose_b),
        };
        let gb = || match self.transpose_b {
            true => product(gy, a, true, self.transpose_a),
            false => product(a, gy, !self.transpose_a, false),
        };
        let ga = g.want[0].then(|| sum_to(&ga()?, &a.shape())).transpose()?;
        let gb = g.want[1].then(|| sum_to(&gb()?, &b.shape())).transpose()?;
        Ok(vec![ga, gb])
    }
}

/// Number of the matrix of `of` that belongs to matrix `i` of `over`.
fn at(i: usize, over: &Shape, of: &Shape) -> usize {
    let (mut rest, mut stride, mut index) = (i, 1, 0);
    for axis in (0..over.ndim()).rev() {
        let k = rest % over[axis];
        rest /= over[axis];
        let lead = over.ndim() - of.ndim();
        if axis >= lead {
            let n = of[axis - lead];
            index += if n == 1 { 0 } else { k * stride };
            stride *= n;
        }
    }
    index
}
