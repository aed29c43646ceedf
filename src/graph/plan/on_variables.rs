//! Runs functions that work on whole variables ([`OnVariables`]): they are given stand-ins over the plan's arrays.

use crate::function::OnVariables;
use crate::graph::mode;
use crate::graph::variable::Variable;
use nnrs_kernels::array::{NdArray, Unset};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use smallvec::SmallVec;

/// Variables over some arrays.
pub(crate) fn stand_ins<'a>(arrays: impl IntoIterator<Item = &'a NdArray>) -> Vec<Variable> {
    arrays.into_iter().map(|a| Variable::from_array(a.clone())).collect()
}

pub(super) fn forward(f: &dyn OnVariables, x: &[&NdArray], y: &[&NdArray], dtype: DType) -> Result<()> {
    let _unset = Unset::new(y.iter().copied());
    let (xs, ys) = (stand_ins(x.iter().copied()), stand_ins(y.iter().copied()));
    let arrays: SmallVec<[(&NdArray, Shape); 4]> = x.iter().chain(y).map(|&a| (a, a.shape())).collect();
    let done = mode::stored_in(dtype, || f.forward(&xs, &ys));
    settle(&arrays, xs.iter().chain(&ys).map(Variable::raw_data))?;
    done?;
    y.iter().try_for_each(|y| in_type(y, dtype))
}

/// Real numbers in the type of the function's context, whatever user code wrote; whole numbers stay.
pub(super) fn in_type(a: &NdArray, dtype: DType) -> Result<()> {
    let now = a.dtype();
    if now == dtype || !now.is_float() || a.storage().constant().is_some() { Ok(()) } else { a.cast(dtype) }
}

/// After user code: arrays have their shapes again, and hold what was put in their place.
pub(crate) fn settle(arrays: &[(&NdArray, Shape)], now: impl Iterator<Item = NdArray>) -> Result<()> {
    let mut changed = None;
    for ((array, shape), now) in arrays.iter().zip(now) {
        let other = array.shape();
        if other != *shape {
            array.reset_shape(shape.clone(), true)?;
            changed = Some((shape.clone(), other));
        } else if !now.is(array) {
            array.copy_from(&now)?;
        }
    }
    let Some((shape, other)) = changed else { return Ok(()) };
    let e = Error::graph(format!("a function changed the shape of an array from {shape} to {other} while it ran"));
    Err(e.hint("shapes are decided by setup; forward and backward keep them"))
}
