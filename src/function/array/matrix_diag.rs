//! `matrix_diag` and `matrix_diag_part`: diagonal matrices of vectors, and the diagonals of matrices. Each is the other's derivative.

use crate::function;
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::array::Data;
use nnrs_kernels::cpu::moves::Moves;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Diagonal matrices: the last axis of x becomes a diagonal, with zeros elsewhere.
    MatrixDiag matrix_diag in Array, any_device
    inputs { x: "N-D array of shape (.., M)." }
    args { }
    outputs { y: "N-D array of shape (.., M, M)." }
}

function! {
    /// The diagonals of matrices.
    MatrixDiagPart matrix_diag_part in Array, any_device
    inputs { x: "N-D array of shape (.., M, M)." }
    args { }
    outputs { y: "N-D array of shape (.., M)." }
}

/// Writes vectors of `m` to the diagonals.
fn spread(x: &Data, m: usize, y: &Data, output: Output) -> Result<()> {
    if output == Output::Write {
        ops::fill(y, 0.0)?;
    }
    let (rows, n) = (x.len() / m.max(1), m as isize);
    ops::moves(Moves::new(0, 0).axis(rows, n * n, n).axis(m, n + 1, 1), y, x, output)
}

/// Reads the diagonals as vectors of `m`.
fn pick(x: &Data, m: usize, y: &Data, output: Output) -> Result<()> {
    let (rows, n) = (y.len() / m.max(1), m as isize);
    ops::moves(Moves::new(0, 0).axis(rows, n, n * n).axis(m, 1, n + 1), y, x, output)
}

fn last(s: &Shape) -> usize {
    s.last().copied().unwrap_or(0)
}

impl Function for MatrixDiag {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        match x[0].last() {
            Some(m) => Ok(smallvec![x[0].iter().chain([m]).copied().collect()]),
            None => Err(Error::shape("x", "one axis at least").actual(&x[0])),
        }
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        spread(&x[0].data, last(x[0].shape), &y[0].data, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(
        &self,
        _run: &Run,
        _x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &mut gx[0]) else { return Ok(()) };
        pick(&gy.data, last(gx.shape), &gx.data, gx.output)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(matrix_diag_part(&g.gy[0])?)])
    }
}

impl Function for MatrixDiagPart {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        match x[0].split_last() {
            Some((m, lead)) if lead.last() == Some(m) => Ok(smallvec![lead.into()]),
            _ => Err(Error::shape("x", "square matrices in the last two axes").actual(&x[0])),
        }
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        pick(&x[0].data, last(x[0].shape), &y[0].data, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(
        &self,
        _run: &Run,
        _x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &mut gx[0]) else { return Ok(()) };
        spread(&gy.data, last(gx.shape), &gx.data, gx.output)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(matrix_diag(&g.gy[0])?)])
    }
}
