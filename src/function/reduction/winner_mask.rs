//! 1 at the largest or smallest elements over axes, 0 elsewhere: the derivative of `max` and `min`.

use super::over;
use crate::function;
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of};
use crate::graph::Variable;
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::reduction::{self as kernel, Extremum};
use nnrs_kernels::shape::Shape;

function! {
    /// 1 where `max` or `min` find their element, 0 elsewhere.
    WinnerMask winner_mask in Special, forward_on_any_device
    inputs { x: "N-D array." }
    args {
        axis: Option<Vec<i64>> = None, "Axes to look over; None: all.";
        smallest: bool = false, "Whether the smallest element wins, not the largest."
    }
    outputs { y: "N-D array of x's shape." }
}

impl Function for WinnerMask {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let over = over(&x[0], &self.axis)?;
        let order = if self.smallest { Extremum::Smallest } else { Extremum::Largest };
        Ok(Resolved::one(x[0].clone(), kernel::WinnerMask { over, order }))
    }

    /// Shows the last axis instead of `None`.
    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        let last = call_of::<kernel::WinnerMask>(call).over.shape.ndim() as i64 - 1;
        let axis = self.axis.clone().map_or(ArgValue::Int(last), ArgValue::Ints);
        vec![("axis", axis), ("smallest", ArgValue::Bool(self.smallest))]
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None])
    }
}
