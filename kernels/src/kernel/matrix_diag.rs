//! Diagonal matrices of vectors, and the diagonals of matrices: each is the other's way back.

use super::ops;
use crate::array::{Data, Output};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::kernel::moves::Moves;

/// Copies of `rows` vectors of `m` to the diagonals.
fn moves(rows: usize, m: usize) -> Moves {
    let n = m as isize;
    Moves::new(0, 0).axis(rows, n * n, n).axis(m, n + 1, 1)
}

/// Writes vectors of `m` to the diagonals.
fn spread(x: &Data, m: usize, y: &Data, output: Output) -> Result<()> {
    if output == Output::Write {
        ops::fill(y, 0.0)?;
    }
    ops::moves(moves(x.len() / m.max(1), m), y, x, output)
}

/// Reads the diagonals as vectors of `m`.
fn pick(x: &Data, m: usize, y: &Data, output: Output) -> Result<()> {
    ops::moves(moves(y.len() / m.max(1), m).reversed(), y, x, output)
}

/// Matrices of vectors of `m`.
pub struct MatrixDiag {
    pub m: usize,
}

impl Call for MatrixDiag {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        spread(&x[0].data, self.m, &y[0].data, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        pick(&gy.data, self.m, &gx.data, gx.output)
    }
}

/// Diagonals of `m` elements.
pub struct MatrixDiagPart {
    pub m: usize,
}

impl Call for MatrixDiagPart {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        pick(&x[0].data, self.m, &y[0].data, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        spread(&gy.data, self.m, &gx.data, gx.output)
    }
}
