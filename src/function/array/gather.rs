//! `gather`: slices of an array along an axis, picked by indices; and the reverse, the derivative.

#![allow(non_snake_case)] // NNabla calls the second input `Indices`.

use super::List;
use crate::function;
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::gather::{self as kernel, Picks};
use nnrs_kernels::shape::Shape;

function! {
    /// Picks slices of x along an axis: `y[.., i, ..] = x[.., Indices[i], ..]`. With `batch_dims`, the first axes of both are matched.
    Gather gather in Array, any_device
    inputs { x: "N-D array.", Indices [index]: "Indices into the axis, 0 or more." }
    args {
        axis: Option<i64> = None, "Axis to pick from; None: 0. It may count from the end.";
        batch_dims: Option<i64> = None, "How many leading axes x and Indices share; None: 0."
    }
    outputs { y: "x.shape[:axis] + Indices.shape[batch_dims:] + x.shape[axis + 1:]." }
}

impl Gather {
    /// The output's shape, and the kernels.
    fn call(&self, x: &Shape, indices: &Shape) -> Result<(Shape, kernel::Gather)> {
        let axis = x.axis(self.axis.unwrap_or(0), "axis")?;
        let batch = self.batch_dims.unwrap_or(0);
        let most = axis.min(indices.ndim());
        let b = usize::try_from(batch).ok().filter(|b| *b <= most).ok_or_else(|| {
            let expected = format!("a number between 0 and {most}, the axis and the axes of Indices");
            Error::arg("batch_dims", expected).actual(batch)
        })?;
        if x[..b] != indices[..b] {
            let expected = format!("a shape that begins with {}, as x", Shape::from(&x[..b]));
            return Err(Error::shape("Indices", expected).actual(indices));
        }
        let y = x[..axis].iter().chain(&indices[b..]).chain(&x[axis + 1..]).copied().collect();
        let (outer, inner) = (x[b..axis].iter().product(), x.size_from(axis + 1));
        let picks = Picks { batch: x.size_to(b), outer, n: x[axis], inner, picks: indices.size_from(b) };
        Ok((y, kernel::Gather { axis, batch_dims: b, picks }))
    }
}

impl Function for Gather {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let (y, call) = self.call(&x[0], &x[1])?;
        Ok(Resolved::one(y, call))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        let call = call_of::<kernel::Gather>(call);
        let int = |given: Option<i64>, used: usize| ArgValue::Int(given.unwrap_or(used as i64));
        vec![("axis", int(self.axis, call.axis)), ("batch_dims", int(self.batch_dims, call.batch_dims))]
    }

    fn refuses_gradient(&self, _i: usize) -> bool {
        false
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let shape = g.x[0].shape()[..].into();
        let back = Ungather { shape, axis: self.axis, batch_dims: self.batch_dims };
        Ok(vec![Some(ungather(&g.gy[0], &g.x[1], back)?), None])
    }
}

function! {
    /// Adds slices to zeros at the places that indices name: the reverse of `gather`, its derivative.
    Ungather ungather in Special, any_device
    inputs { x: "The slices.", indices [index]: "Indices into the axis." }
    args {
        shape: List, "Shape of the result.";
        axis: Option<i64> = None, "As of `gather`.";
        batch_dims: Option<i64> = None, "As of `gather`."
    }
    outputs { y: "N-D array of the given shape." }
}

impl Ungather {
    fn gather(&self) -> Gather {
        Gather { axis: self.axis, batch_dims: self.batch_dims }
    }
}

impl Function for Ungather {
    fn refuses_gradient(&self, _i: usize) -> bool {
        false
    }

    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let y: Shape = self.shape.iter().map(|&d| d.max(0) as usize).collect();
        let (part, call) = self.gather().call(&y, &x[1])?;
        if part != x[0] {
            return Err(Error::shape("x", format!("shape {part}")).actual(&x[0]));
        }
        Ok(Resolved::one(y, kernel::Ungather(call)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(gather(&g.gy[0], &g.x[1], self.gather())?), None])
    }
}
