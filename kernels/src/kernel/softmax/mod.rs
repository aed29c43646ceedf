//! Softmax along an axis and its logarithm; cross entropy of softmax and labels.

pub mod cpu;
mod cross_entropy;
mod cuda;

use super::axis::Axis;
use crate::array::Place;
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Shape;
use crate::with_real;
pub use cross_entropy::CrossEntropy;

/// Softmax along an axis, or its logarithm.
pub struct Softmax {
    pub axis: usize,
    at: Axis,
    log: bool,
}

impl Softmax {
    /// `log`: the logarithm.
    pub fn new(x: &Shape, axis: usize, log: bool) -> Softmax {
        Softmax { axis, at: Axis::new(x, axis).side_by_side(), log }
    }
}

impl Call for Softmax {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::softmax(self.at, &x[0].data, &y[0].data, self.log);
        }
        with_real!(run.dtype, T => {
            let kernel = if self.log { cpu::log_softmax::<T> } else { cpu::softmax::<T> };
            kernel(self.at, x[0].slice(), y[0].slice());
        });
        Ok(())
    }

    /// Rows of softmax add their gradients without a buffer.
    fn scratch(&self, dtype: DType) -> [usize; 2] {
        let buffered = self.log || self.at.inner != 1;
        [0, if buffered { self.at.scratch(dtype.size()) } else { 0 }]
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 0, y: 1 })
    }

    fn grad_over(&self, _i: usize) -> Option<usize> {
        (self.at.inner == 1).then_some(0)
    }

    fn backward(&self, run: &Run, Gradients { y, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(y), Some(gx)) = (&y[0], &mut gx[0]) else { return Ok(()) };
        let output = gx.output;
        if let (Some(gy), Place::Gpu(_)) = (&gy[0], gx.data.place()) {
            return cuda::softmax_backward(self.at, &y.data, &gy.data, &gx.data, self.log, output);
        }
        with_real!(run.dtype, T => match &gy[0] {
            Some(gy) => {
                let kernel = if self.log { cpu::log_softmax_backward::<T> } else { cpu::softmax_backward::<T> };
                kernel(self.at, y.slice(), gy.slice(), gx.slice(), output);
            }
            None if gx.over => {
                let kernel = if self.log { cpu::log_softmax_over::<T> } else { cpu::softmax_over::<T> };
                kernel(self.at, y.slice(), gx.slice());
            }
            None => {}
        });
        Ok(())
    }
}
