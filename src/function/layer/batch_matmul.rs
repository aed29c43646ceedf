//! `batch_matmul`: matrix products over leading axes.

use crate::function;
use crate::function::array::sum_to;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::batch_matmul as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Matrix product over the last two axes; leading axes broadcast.
    BatchMatmul batch_matmul in Math, any_device
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
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
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
        let call = kernel::BatchMatmul::new([&x[0], &x[1]], [self.transpose_a, self.transpose_b], &y);
        Ok(Resolved::one(y, call))
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
