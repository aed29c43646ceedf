//! `identity`: x itself, in its own type.

use crate::function;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::Result;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// x itself: the output is x's memory.
    Identity identity in Math, forward_on_any_device
    inputs { x: "N-D array." }
    args {}
    outputs { y: "x itself, of its shape." }
}

impl Function for Identity {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        Ok(Resolved::without_call(smallvec![x[0].clone()]))
    }

    fn is_view(&self) -> bool {
        true
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(identity(&g.gy[0])?)])
    }
}
