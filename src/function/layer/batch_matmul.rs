//! `batch_matmul`: matrix products over leading axes.

use crate::function;
use crate::function::array::sum_to;
use crate::function::{Function, Grad, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::array::{Data, Place};
use nnrs_kernels::cpu::gemm::{Mat, MatMut, matmul};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::ops::{self, Matrix};
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

function! {
    /// Matrix product over the last two axes; leading axes broadcast.
    BatchMatmul batch_matmul in Math, forward_on_any_device
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
        let over = lead(y[0].shape);
        if over.size() == 0 {
            return Ok(());
        }
        match y[0].data.place() {
            Place::Host if lead(x[0].shape) != over || lead(x[1].shape) != over => self.one_by_one(run, x, y),
            _ => self.batch(&over, x, &y[0].data),
        }
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

impl BatchMatmul {
    /// All products at once. A GPU repeats the matrices of an input that is broadcast, unless there is only one.
    fn batch(&self, over: &Shape, x: &[View], y: &Data) -> Result<()> {
        let (a, b) = (spread(&x[0], over)?, spread(&x[1], over)?);
        let mat = |data, v: &View, transpose| {
            let (rows, columns) = matrix(v.shape, false);
            let mat = Matrix::new(data, rows, columns);
            let mat = if lead(v.shape).size() == 1 && over.size() > 1 { mat } else { mat.each() };
            if transpose { mat.t() } else { mat }
        };
        let (a, b) = (mat(&a, &x[0], self.transpose_a), mat(&b, &x[1], self.transpose_b));
        ops::matmul(over.size(), a, b, y, Output::Write)
    }

    /// Each product with the matrices that are broadcast to it.
    fn one_by_one(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (sa, sb, (m, n)) = (matrix(x[0].shape, false), matrix(x[1].shape, false), matrix(y[0].shape, false));
        let (over, la, lb) = (lead(y[0].shape), lead(x[0].shape), lead(x[1].shape));
        with_real!(run.dtype, T => {
            let (xa, xb, out) = (x[0].slice::<T>(), x[1].slice::<T>(), y[0].slice::<T>());
            let mat = |d, s: (usize, usize), t| if t { Mat::new(d, s.0, s.1).t() } else { Mat::new(d, s.0, s.1) };
            for i in 0..over.size() {
                let (ia, ib) = (at(i, &over, &la), at(i, &over, &lb));
                let pa = &xa[ia * sa.0 * sa.1..][..sa.0 * sa.1];
                let pb = &xb[ib * sb.0 * sb.1..][..sb.0 * sb.1];
                matmul(mat(pa, sa, self.transpose_a), mat(pb, sb, self.transpose_b), MatMut::new(&mut out[i * m * n..][..m * n], m, n), Output::Write);
            }
        });
        Ok(())
    }
}

/// An input's matrices for all products; a single one stays alone.
fn spread(x: &View, over: &Shape) -> Result<Data> {
    let own = lead(x.shape);
    if own == *over || own.size() == 1 {
        return Ok(x.data.clone());
    }
    let all: Shape = over.iter().chain(&x.shape[own.ndim()..]).copied().collect();
    let data = Data::new_at(x.data.place(), x.dtype(), all.size())?;
    ops::broadcast(&x.data, x.shape, &data, &all, Output::Write)?;
    Ok(data)
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
