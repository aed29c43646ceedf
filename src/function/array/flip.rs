//! `flip`: the order of axes reversed.

use super::List;
use crate::function;
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::flip as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Reverses the order of elements along axes.
    Flip flip in Array, any_device
    inputs { x: "N-D array." }
    args { axes: Option<List> = None, "Axes to reverse; None: the last one. They may count from the end." }
    outputs { y: "N-D array of x's shape." }
}

impl Function for Flip {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if x[0].ndim() == 0 {
            return Err(Error::shape("x", "one axis at least").actual(&x[0]));
        }
        let axes = self.axes.as_ref().map_or(&[-1][..], |a| a);
        let axes = axes.iter().map(|&a| x[0].axis(a, "axes")).collect::<Result<Vec<usize>>>()?;
        Ok(Resolved::one(x[0].clone(), kernel::Flip::new(&x[0], &axes)))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        let last = || vec![call_of::<kernel::Flip>(call).last as i64];
        vec![("axes", ArgValue::Ints(self.axes.as_ref().map_or_else(last, |a| a.0.clone())))]
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(flip(&g.gy[0], self.clone())?)])
    }
}
