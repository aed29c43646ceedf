//! The sum over axes.

use super::Reduced;
use super::axes::has_dense_runs;
use crate::array::{Output, Place, Strided};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::kernel::ops;
use crate::shape::Shape;

/// The sum over axes.
pub struct Sum(pub Reduced);

impl Call for Sum {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        ops::sum(&x[0], &self.0.mask, &y[0].data, Output::Write)
    }

    fn takes_strides(&self, _i: usize, x: &Strided, place: Place) -> bool {
        place == Place::Host && has_dense_runs(x, &self.0.mask)
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
