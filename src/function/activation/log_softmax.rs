//! `log_softmax`: logarithm of softmax along an axis.

use super::softmax::chosen_axis;
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of, with_default};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::softmax as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Logarithm of softmax, `y = x - log(sum(exp(x)))` along an axis, without overflow.
    LogSoftmax log_softmax in Activation, any_device
    inputs { x: "N-D array, N > 0." }
    args { axis: Option<i64> = None, "Axis of the sum; None: the last one. May count from the end." }
    outputs { y: "N-D array of x's shape." }
}

impl Function for LogSoftmax {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let axis = chosen_axis(&x[0], self.axis)?;
        Ok(Resolved::one(x[0].clone(), kernel::Softmax::new(&x[0], axis, true)))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        with_default(self, "axis", call_of::<kernel::Softmax>(call).axis)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let axis = g.call::<kernel::Softmax>().axis as i64;
        Ok(vec![Some(rule(&g.y[0], &g.gy[0], axis)?)])
    }
}

/// `gy - exp(y) sum(gy)`.
fn rule(y: &Variable, gy: &Variable, axis: i64) -> Result<Variable> {
    let sum = f::sum(gy, f::Sum { axis: Some(vec![axis]), keepdims: true })?;
    let part = f::mul2(&f::exp(y)?, &sum, f::Mul2::default())?;
    f::sub2(gy, &part, f::Sub2::default())
}
