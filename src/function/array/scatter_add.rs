//! `scatter_add`: elements of one array added to another at the places that indices name along an axis; and the reverse.

use super::List;
use crate::function;
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::scatter_add::{self as kernel, Scatter};
use nnrs_kernels::shape::Shape;

function! {
    /// Adds elements along an axis: `y = x0`, then `y[.., indices[.., i, ..], ..] += x1[.., i, ..]` for all elements of `indices`.
    ScatterAdd scatter_add in Array, any_device
    inputs {
        x0: "N-D array that is added to.",
        indices [index]: "Places along the axis, 0 or more; not larger than x1, nor than x0 along the other axes.",
        x1: "N-D array of what is added."
    }
    args { axis: Option<i64> = None, "The axis; None: 0. It may count from the end." }
    outputs { y: "N-D array of x0's shape." }
}

/// The call's shapes, checked; `axis` is the first one by default.
fn scatter(x0: &Shape, indices: &Shape, x1: &Shape, axis: Option<i64>) -> Result<Scatter> {
    let axis = x0.axis(axis.unwrap_or(0), "axis")?;
    let fits = |a: usize| indices[a] <= x1[a] && (a == axis || indices[a] <= x0[a]);
    if indices.ndim() == x0.ndim() && x1.ndim() == x0.ndim() && (0..x0.ndim()).all(fits) {
        return Ok(Scatter { axis, x0: x0.clone(), indices: indices.clone(), x1: x1.clone() });
    }
    let expected =
        format!("the axes of x0 {x0} and of x1 {x1}, no size larger than theirs (but than x0's along axis {axis})");
    Err(Error::shape("indices", expected).actual(indices))
}

impl Function for ScatterAdd {
    fn refuses_gradient(&self, _i: usize) -> bool {
        false
    }

    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let call = scatter(&x[0], &x[1], &x[2], self.axis)?;
        Ok(Resolved::one(x[0].clone(), kernel::ScatterAdd(call)))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        let axis = self.axis.unwrap_or(call_of::<kernel::ScatterAdd>(call).0.axis as i64);
        vec![("axis", ArgValue::Int(axis))]
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let pick = ScatterPick { shape: g.x[2].shape()[..].into(), axis: self.axis };
        let picked = if g.want[2] { Some(scatter_pick(&g.gy[0], &g.x[1], pick)?) } else { None };
        Ok(vec![Some(g.gy[0].clone()), None, picked])
    }
}

function! {
    /// Reads what `scatter_add` would add to: its derivative with respect to x1. Zero where there is no index.
    ScatterPick scatter_pick in Special, any_device
    inputs { x: "N-D array.", indices [index]: "As of `scatter_add`." }
    args {
        shape: List, "Shape of the result.";
        axis: Option<i64> = None, "As of `scatter_add`."
    }
    outputs { y: "N-D array of the given shape." }
}

impl Function for ScatterPick {
    fn refuses_gradient(&self, _i: usize) -> bool {
        false
    }

    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let y: Shape = self.shape.iter().map(|&d| d.max(0) as usize).collect();
        let call = scatter(&x[0], &x[1], &y, self.axis)?;
        Ok(Resolved::one(y, kernel::ScatterPick(call)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let zeros = Variable::from_array(crate::NdArray::new(g.x[0].shape())).with_need_grad(false);
        let gx = scatter_add(&zeros, &g.x[1], &g.gy[0], ScatterAdd { axis: self.axis })?;
        Ok(vec![Some(gx), None])
    }
}
