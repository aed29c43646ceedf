//! `unlink`: x itself, where gradients end.

use crate::function;
use crate::function::{Function, Grad, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// The data of x under another variable; no gradient flows back to x.
    Unlink unlink in Special, any_device
    inputs { x: "N-D array." }
    args { }
    outputs { y: "x." }
}

impl Function for Unlink {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        Ok(smallvec![x[0].clone()])
    }

    fn is_view(&self) -> bool {
        true
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        ops::put(&y[0].data, &x[0].data, Output::Write)
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None])
    }
}
