//! The product of a matrix and a matrix of weights, and a bias.

use super::matmul::{self, Matrix, matmul};
use super::ops;
use crate::array::{Output, Place, Strided};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::shape::Shape;

/// `y = x w + b`, of `m` rows: `x` has `k` columns, `y` has `n`.
pub struct Affine {
    pub base_axis: usize,
    pub m: usize,
    pub k: usize,
    pub n: usize,
}

impl Call for Affine {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let &Affine { m, k, n, .. } = self;
        let y = &y[0].data;
        let output = match x.get(2) {
            Some(b) => {
                ops::broadcast(&b.data, &Shape::from([n]), y, &Shape::from([m, n]), Output::Write)?;
                Output::Accumulate
            }
            None => Output::Write,
        };
        matmul(1, Matrix::of(&x[0], m, k), Matrix::of(&x[1], k, n), y, output)
    }

    /// Matrices of two axes.
    fn takes_strides(&self, i: usize, x: &Strided, place: Place) -> bool {
        let &Affine { m, k, n, .. } = self;
        let is_matrix = i < 2 && x.shape[..] == [[m, k], [k, n]][i];
        is_matrix && place == Place::Host && matmul::takes(x, m.saturating_mul(k).saturating_mul(n))
    }

    fn multiplications(&self) -> f64 {
        self.m as f64 * self.k as f64 * self.n as f64
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        Some(Needs { x: (want[0] as u32) << 1 | want[1] as u32, y: 0 })
    }

    fn backward(&self, _run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let &Affine { m, k, n, .. } = self;
        let Some(gy) = &gy[0] else { return Ok(()) };
        let g = Matrix::new(&gy.data, m, n);
        if let (Some(gx), Some(w)) = (&gx[0], &x[1]) {
            matmul(1, g, Matrix::of(w, k, n).t(), &gx.data, gx.output)?;
        }
        if let (Some(gw), Some(x)) = (&gx[1], &x[0]) {
            matmul(1, Matrix::of(x, m, k).t(), g, &gw.data, gw.output)?;
        }
        if let Some(Some(gb)) = gx.get(2) {
            ops::sum(&View::new(&[m, n].into(), gy.data.clone()), &[true, false], &gb.data, gb.output)?;
        }
        Ok(())
    }
}
