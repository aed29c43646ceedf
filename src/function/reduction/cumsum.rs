//! `cumsum`: sums along an axis up to each element.

use crate::function;
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of, with_default};
use crate::graph::Variable;
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::cumsum as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Cumulative sum along an axis, `y[i] = x[0] + .. + x[i]`.
    CumSum cumsum in Reduction, any_device
    inputs { x: "N-D array." }
    args {
        axis: Option<i64> = None, "The axis; None: 0. It may count from the end.";
        exclusive: bool = false, "Leave each element out of its own sum: `y[0]` is 0.";
        reverse: bool = false, "Begin at the end: `y[i]` is the sum from there down to `x[i]`."
    }
    outputs { y: "N-D array of x's shape." }
}

impl Function for CumSum {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let axis = x[0].axis(self.axis.unwrap_or(0), "axis")?;
        Ok(Resolved::one(x[0].clone(), kernel::CumSum::new(&x[0], axis, self.exclusive, self.reverse)))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        with_default(self, "axis", call_of::<kernel::CumSum>(call).axis)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(cumsum(&g.gy[0], CumSum { reverse: !self.reverse, ..self.clone() })?)])
    }
}
