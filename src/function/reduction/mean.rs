//! `mean` over axes.

use super::sum::spread;
use super::{over, used};
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::reduction as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Mean over axes. The mean of no elements is NaN.
    Mean mean in Reduction, any_device
    inputs { x: "N-D array." }
    args {
        axis: Option<Vec<i64>> = None, "Axes to average over; None: all. They may count from the end.";
        keepdims: bool = false, "Whether the averaged axes stay, with size 1."
    }
    outputs { y: "x without the averaged axes." }
}

impl Function for Mean {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let over = over(&x[0], &self.axis)?;
        Ok(Resolved::one(over.output(self.keepdims), kernel::Mean(over)))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        used(self, &call_of::<kernel::Mean>(call).0)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let over = &g.call::<kernel::Mean>().0;
        let val = 1.0 / over.count() as f64;
        let share = f::mul_scalar(&g.gy[0], f::MulScalar { val, inplace: false })?;
        Ok(vec![Some(spread(&share, over)?)])
    }
}
