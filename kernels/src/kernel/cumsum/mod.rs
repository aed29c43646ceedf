//! Sums along an axis up to each element.

mod cpu;
mod cuda;

use super::axis::Axis;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::shape::Shape;
use crate::with_real;

/// Sums along an axis up to each element.
pub struct CumSum {
    pub axis: usize,
    at: Axis,
    /// Each element is left out of its own sum.
    exclusive: bool,
    /// Sums begin at the end.
    reverse: bool,
}

impl CumSum {
    pub fn new(x: &Shape, axis: usize, exclusive: bool, reverse: bool) -> CumSum {
        CumSum { axis, at: Axis::new(x, axis).side_by_side(), exclusive, reverse }
    }

    fn run(&self, x: &Data, y: &Data, output: Output) -> Result<()> {
        if let Place::Gpu(_) = y.place() {
            return cuda::cumsum(self, x, y, output);
        }
        with_real!(y.dtype(), T => cpu::cumsum(self, x.as_slice::<T>(), y.as_mut_slice(), output));
        Ok(())
    }
}

impl Call for CumSum {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.run(&x[0].data, &y[0].data, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    /// Each element is in the sums behind it, so the gradient sums the other way.
    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        CumSum { reverse: !self.reverse, ..*self }.run(&gy.data, &gx.data, gx.output)
    }
}
