//! `matrix_diag` and `matrix_diag_part`: diagonal matrices of vectors, and the diagonals of matrices. Each is the other's derivative.

use crate::function;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::matrix_diag as kernel;
use nnrs_kernels::shape::Shape;

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

impl Function for MatrixDiag {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        match x[0].last() {
            Some(&m) => {
                let y: Shape = x[0].iter().copied().chain([m]).collect();
                Ok(Resolved::one(y, kernel::MatrixDiag { m }))
            }
            None => Err(Error::shape("x", "one axis at least").actual(&x[0])),
        }
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(matrix_diag_part(&g.gy[0])?)])
    }
}

impl Function for MatrixDiagPart {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        match x[0].split_last() {
            Some((&m, lead)) if lead.last() == Some(&m) => Ok(Resolved::one(lead, kernel::MatrixDiagPart { m })),
            _ => Err(Error::shape("x", "square matrices in the last two axes").actual(&x[0])),
        }
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(matrix_diag(&g.gy[0])?)])
    }
}
