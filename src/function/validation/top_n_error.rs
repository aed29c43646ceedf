//! `top_n_error`: whether the label is not among the n largest scores.

use crate::function;
use crate::function::loss::labels::resolve;
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of, with_default};
use crate::graph::Variable;
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::labels::TopErrors;
use nnrs_kernels::shape::Shape;

function! {
    /// 1 where more than n scores are at least the label's (its own counts, equal ones too, and all that are NaN; all if its
    /// own is), else 0. For negative labels 0. No gradient. A label that is NaN or beyond the classes is an error on the CPU; a
    /// GPU, which would have to wait for the check, gives NaN.
    TopNError top_n_error in Validation, forward_on_any_device
    inputs {
        x: "N-D array of scores, N > 0.",
        target [index]: "Labels from 0 on; N-D array of x's shape, but 1 at the axis.",
    }
    args {
        axis: Option<i64> = None, "Axis of the classes; None: the last one. May count from the end.";
        n: i64 = 1, "How many of the largest scores count as right."
    }
    outputs { output: "N-D array of target's shape." }
}

impl Function for TopNError {
    fn refuses_gradient(&self, _i: usize) -> bool {
        false
    }

    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        resolve(&x[0], &x[1], self.axis, |labels| TopErrors { labels, most: self.n })
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        with_default(self, "axis", call_of::<TopErrors>(call).labels.axis)
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None, None])
    }
}
