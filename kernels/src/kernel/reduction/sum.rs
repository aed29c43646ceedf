//! The sum over axes.

use super::Reduced;
use crate::array::Output;
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::kernel::ops;
use crate::shape::Shape;

/// The sum over axes.
pub struct Sum(pub Reduced);

impl Call for Sum {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        ops::sum(&x[0].data, &self.0.shape, &self.0.mask, &y[0].data, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        ops::broadcast(&gy.data, &self.0.kept, &gx.data, gx.shape, gx.output)
    }

    fn grad_repeats(&self) -> Option<Shape> {
        Some(self.0.kept.clone())
    }
}
