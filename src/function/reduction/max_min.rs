//! `max` and `min` over axes, with the place of the winner: the first of equal elements. NaN is left out.

use super::winner_mask::{WinnerMask, winner_mask};
use super::{over, used};
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::reduction::{self as kernel, Extremum};
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Largest element over axes.
    /// NaN is left out, unless there is nothing else. Of equal elements the first one counts, and gets all the gradient.
    Max max in Reduction, any_device
    inputs { x: "N-D array." }
    args {
        axis: Option<Vec<i64>> = None, "Axes to look over; None: all. They may count from the end.";
        keepdims: bool = false, "Whether the reduced axes stay, with size 1.";
        with_index: bool = false, "Also give the index of the element.";
        only_index: bool = false, "Give the index alone."
    }
    outputs {
        y [variadic]:
            "Largest elements, or [largest elements, indices], or indices: flat over the reduced axes in their order."
    }
}

function! {
    /// Smallest element over axes.
    /// NaN is left out, unless there is nothing else. Of equal elements the first one counts, and gets all the gradient.
    Min min in Reduction, any_device
    inputs { x: "N-D array." }
    args {
        axis: Option<Vec<i64>> = None, "Axes to look over; None: all. They may count from the end.";
        keepdims: bool = false, "Whether the reduced axes stay, with size 1.";
        with_index: bool = false, "Also give the index of the element.";
        only_index: bool = false, "Give the index alone."
    }
    outputs {
        y [variadic]:
            "Smallest elements, or [smallest elements, indices], or indices: flat over the reduced axes in their order."
    }
}

/// One output, or with the indices beside the values two.
fn resolve(call: kernel::Extreme, keepdims: bool, with_index: bool) -> Result<Resolved> {
    let (x, y) = (&call.over.shape, call.over.output(keepdims));
    if x.size() == 0 && y.size() > 0 {
        return Err(Error::shape("x", "one element at least along the reduced axes").actual(x));
    }
    let both = with_index && !call.only_index;
    Ok(Resolved::new(if both { smallvec![y.clone(), y] } else { smallvec![y] }, call))
}

/// The gradient of the values, at the winners.
fn rule(g: &Grad, axis: &Option<Vec<i64>>) -> Result<Vec<Option<Variable>>> {
    let call = g.call::<kernel::Extreme>();
    let smallest = call.order == Extremum::Smallest;
    let mask = winner_mask(&g.x[0], WinnerMask { axis: axis.clone(), smallest })?;
    let gy = f::reshape(&g.gy[0], f::Reshape::to(&call.over.kept))?;
    Ok(vec![Some(f::mul2(&mask, &gy, f::Mul2::default())?)])
}

impl Function for Max {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let over = over(&x[0], &self.axis)?;
        let call = kernel::Extreme { over, order: Extremum::Largest, only_index: self.only_index };
        resolve(call, self.keepdims, self.with_index)
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        used(self, &call_of::<kernel::Extreme>(call).over)
    }

    fn output_dtype(&self, i: usize) -> Option<DType> {
        (i == 1 || self.only_index).then_some(DType::U64)
    }

    fn differentiable(&self, _i: usize) -> bool {
        !self.only_index
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        rule(g, &self.axis)
    }
}

impl Function for Min {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let over = over(&x[0], &self.axis)?;
        let call = kernel::Extreme { over, order: Extremum::Smallest, only_index: self.only_index };
        resolve(call, self.keepdims, self.with_index)
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        used(self, &call_of::<kernel::Extreme>(call).over)
    }

    fn output_dtype(&self, i: usize) -> Option<DType> {
        (i == 1 || self.only_index).then_some(DType::U64)
    }

    fn differentiable(&self, _i: usize) -> bool {
        !self.only_index
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        rule(g, &self.axis)
    }
}
