//! `softmax`: exp(x) over its sum along an axis.

use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of, with_default};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::softmax as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Softmax, `y = exp(x) / sum(exp(x))` along an axis, without overflow.
    Softmax softmax in Activation, any_device
    inputs { x: "N-D array, N > 0." }
    args { axis: Option<i64> = None, "Axis of the sum; None: the last one. May count from the end." }
    outputs { y: "N-D array of x's shape." }
}

/// The axis meant by `axis`: the last one by default.
pub(crate) fn chosen_axis(x: &Shape, axis: Option<i64>) -> Result<usize> {
    if x.ndim() == 0 {
        return Err(Error::shape("x", "1 or more axes").actual(x));
    }
    x.axis(axis.unwrap_or(-1), "axis")
}

impl Function for Softmax {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let axis = chosen_axis(&x[0], self.axis)?;
        Ok(Resolved::one(x[0].clone(), kernel::Softmax::new(&x[0], axis, false)))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        with_default(self, "axis", call_of::<kernel::Softmax>(call).axis)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let axis = g.call::<kernel::Softmax>().axis as i64;
        Ok(vec![Some(rule(&g.y[0], &g.gy[0], axis)?)])
    }
}

/// `y (gy - sum(y gy))`.
fn rule(y: &Variable, gy: &Variable, axis: i64) -> Result<Variable> {
    let mul = |a, b| f::mul2(a, b, f::Mul2::default());
    let mean = f::sum(&mul(y, gy)?, f::Sum { axis: Some(vec![axis]), keepdims: true })?;
    mul(y, &f::sub2(gy, &mean, f::Sub2::default())?)
}
