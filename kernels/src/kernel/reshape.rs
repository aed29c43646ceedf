//! A copy of the same elements under another shape.

use super::ops;
use crate::array::Output;
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;

/// The elements in their order.
pub struct Reshape;

impl Call for Reshape {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        ops::put(&y[0].data, &x[0].data, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        ops::put(&gx.data, &gy.data, gx.output)
    }
}

/// A copy, for functions whose gradient is another matter.
pub struct Copy;

impl Call for Copy {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        ops::put(&y[0].data, &x[0].data, Output::Write)
    }
}
