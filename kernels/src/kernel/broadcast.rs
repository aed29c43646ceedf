//! An array repeated along axes of size 1.

use super::ops;
use crate::array::Output;
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::shape::Shape;

/// From shape `x` to shape `y`.
pub struct Broadcast {
    pub x: Shape,
    pub y: Shape,
}

impl Call for Broadcast {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        ops::broadcast(&x[0].data, &self.x, &y[0].data, &self.y, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        ops::sum_to(&gy.data, &self.y, &gx.data, &self.x, gx.output)
    }
}
