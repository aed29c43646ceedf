//! `unlink`: x itself, where gradients end.

use crate::error::Result;
use crate::function::{Function, Grad, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::shape::Shape;
use crate::{function, with_real};
use smallvec::smallvec;

function! {
    /// The data of x under another variable; no gradient flows back to x.
    Unlink unlink in Special
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

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        with_real!(run.dtype, T => y[0].slice::<T>().copy_from_slice(x[0].slice()));
        Ok(())
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None])
    }
}
