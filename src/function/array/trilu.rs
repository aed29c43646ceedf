//! `trilu`: the upper or lower triangles of matrices. `eye_like`: ones on a diagonal.

use crate::function;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::trilu as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// The upper or lower triangles of matrices, with zeros beside them (as NumPy's `triu` and `tril`).
    Trilu trilu in Array, any_device
    inputs { x: "N-D array of matrices, in the last two axes." }
    args {
        k: i64 = 0, "The diagonal where the triangle ends, itself in it; 0 is the main one, above it they are positive.";
        upper: bool = true, "Whether the upper triangle stays; if not, the lower one."
    }
    outputs { y: "N-D array of x's shape." }
}

function! {
    /// A matrix with ones on a diagonal and zeros elsewhere. No gradient.
    EyeLike eye_like in Array, forward_on_any_device
    inputs { x: "Matrix, of which only the shape counts." }
    args { k: i64 = 0, "The diagonal; 0 is the main one, above it they are positive." }
    outputs { y: "Matrix of x's shape." }
}

impl Function for Trilu {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let [.., rows, columns] = x[0][..] else {
            return Err(Error::shape("x", "two axes at least").actual(&x[0]));
        };
        Ok(Resolved::one(x[0].clone(), kernel::Trilu { rows, columns, k: self.k, upper: self.upper }))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(trilu(&g.gy[0], self.clone())?)])
    }
}

impl Function for EyeLike {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let [rows, columns] = x[0][..] else {
            return Err(Error::shape("x", "two axes").actual(&x[0]));
        };
        Ok(Resolved::one(x[0].clone(), kernel::Eye { rows, columns, k: self.k }))
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None])
    }
}
