//! `broadcast`: repeats axes of size 1.

use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::broadcast as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Repeats an array along axes of size 1 to a larger shape, as NumPy's `broadcast_to`.
    Broadcast broadcast in Array, any_device
    inputs { x: "N-D array." }
    args { shape: Vec<i64>, "Shape of the result; x's axes are matched from the last." }
    outputs { y: "N-D array of the given shape." }
}

impl Broadcast {
    /// To a known shape.
    pub fn to(shape: &Shape) -> Broadcast {
        Broadcast { shape: shape.iter().map(|&d| d as i64).collect() }
    }
}

impl Function for Broadcast {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let fail = || {
            Error::shape("shape", format!("a shape that x {} broadcasts to", x[0])).actual(format!("{:?}", self.shape))
        };
        if self.shape.iter().any(|&d| d < 0) {
            return Err(fail());
        }
        let y: Shape = self.shape.iter().map(|&d| d as usize).collect();
        let fits = y.ndim() >= x[0].ndim() && x[0].broadcast(&y).as_ref() == Some(&y);
        if !fits {
            return Err(fail());
        }
        let call = kernel::Broadcast { x: x[0].clone(), y: y.clone() };
        Ok(Resolved::one(y, call))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(sum_to(&g.gy[0], &g.x[0].shape())?)])
    }
}

/// Sums a gradient down to the shape that was broadcast.
pub(crate) fn sum_to(gy: &Variable, shape: &Shape) -> Result<Variable> {
    let from = gy.shape();
    if from == *shape {
        return Ok(gy.clone());
    }
    let Some(lead) = from.ndim().checked_sub(shape.ndim()) else {
        return Err(Error::shape("gradient", format!("a shape that {shape} broadcasts to")).actual(from));
    };
    let repeated = |i: &usize| *i < lead || (shape[*i - lead] == 1 && from[*i] != 1);
    let axis = (0..from.ndim()).filter(repeated).map(|i| i as i64).collect();
    let y = f::sum(gy, f::Sum { axis: Some(axis), keepdims: true })?;
    f::reshape(&y, f::Reshape::to(shape))
}
