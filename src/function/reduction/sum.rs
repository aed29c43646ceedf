//! `sum` over axes.

use super::{over, used};
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::reduction::{self as kernel, Reduced};
use nnrs_kernels::shape::Shape;

function! {
    /// Sum over axes.
    Sum sum in Reduction, any_device
    inputs { x: "N-D array." }
    args {
        axis: Option<Vec<i64>> = None, "Axes to sum over; None: all. They may count from the end.";
        keepdims: bool = false, "Whether the summed axes stay, with size 1."
    }
    outputs { y: "x without the summed axes." }
}

impl Function for Sum {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let over = over(&x[0], &self.axis)?;
        Ok(Resolved::one(over.output(self.keepdims), kernel::Sum(over)))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        used(self, &call_of::<kernel::Sum>(call).0)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(spread(&g.gy[0], &g.call::<kernel::Sum>().0)?)])
    }
}

/// Repeats a reduced gradient over the axes that were reduced.
pub(super) fn spread(gy: &Variable, over: &Reduced) -> Result<Variable> {
    let gy = f::reshape(gy, f::Reshape::to(&over.kept))?;
    f::broadcast(&gy, f::Broadcast::to(&over.shape))
}
