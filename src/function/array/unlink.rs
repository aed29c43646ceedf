//! `unlink`: x itself, where gradients end.

use crate::function;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::Result;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// The data of x under another variable; no gradient flows back to x.
    Unlink unlink in Special, any_device
    inputs { x: "N-D array." }
    args { }
    outputs { y: "x itself, of its shape." }
}

impl Function for Unlink {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        Ok(Resolved::without_call(smallvec![x[0].clone()]))
    }

    fn is_view(&self) -> bool {
        true
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None])
    }
}
