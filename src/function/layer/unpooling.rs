//! `unpooling`: each element repeated over a window.

use crate::function;
use crate::function::signal::resampled::{self, Line};
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::resample::{Forward, Sampling, Way};
use nnrs_kernels::shape::Shape;

function! {
    /// Repeats each element over a window: `y[k i + j] = x[i]` for `0 <= j < k` along each of the last axes.
    Unpooling unpooling in Layer, any_device
    inputs { x: "N-D array; its last axes (before the channels, if channel_last) are unpooled." }
    args {
        kernel: Vec<i64>, "Sizes of the window.";
        channel_last: bool = false, "Whether the channels are the last axis."
    }
    outputs { y: "N-D array; the sizes of its last axes are those of x times the kernel's." }
}

impl Unpooling {
    /// The first axis that is unpooled.
    fn first(&self, x: &Shape) -> Result<usize> {
        let axes = self.kernel.len() + self.channel_last as usize;
        x.ndim()
            .checked_sub(axes)
            .ok_or_else(|| Error::shape("x", format!("{axes} axes at least for kernel {:?}", self.kernel)).actual(x))
    }
}

impl Function for Unpooling {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let first = self.first(&x[0])?;
        let kernel = resampled::sizes("kernel", &self.kernel)?;
        let sampling = |(&n, &k): (&usize, &usize)| -> Sampling {
            Line::new(1.0, 0.0, k as f64).sampling(n, n.saturating_mul(k), Way::Floor)
        };
        let axes = x[0][first..].iter().zip(&kernel).map(sampling).collect();
        let (y, call) = resampled::resample(&x[0], first, axes, 0.0)?;
        Ok(Resolved::one(y, Forward(call)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        resampled::gradient(g, self.first(&g.x[0].shape())?)
    }
}
