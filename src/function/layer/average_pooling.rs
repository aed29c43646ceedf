//! `average_pooling`: the mean of each window.

use super::pooling::{SumPoolingBackward, alike, divisor, spec, sum_pooling_backward};
use crate::function;
use crate::function::{ArgValue, Call, Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::pooling::SumPooling;
use nnrs_kernels::shape::Shape;

function! {
    /// Mean of each window over the last two or three axes.
    AveragePooling average_pooling in Layer, any_device
    inputs { x: "N-D array; its last axes (before the channels, if channel_last) are pooled." }
    args {
        kernel: Vec<i64>, "Sizes of the window, for 2 or 3 axes.";
        stride: Option<Vec<i64>> = None, "Distance of windows; None: the kernel's sizes.";
        ignore_border: bool = true, "Leave out windows that reach over the far border; if not, they are cut.";
        pad: Option<Vec<i64>> = None, "Padding with zeros on both ends of each axis; None: none.";
        channel_last: bool = false, "Whether the channels are the last axis.";
        including_pad: bool = true, "Whether padding counts as zeros."
    }
    outputs { y: "Means, of shape (.., H', W'): an element for each place of the kernel." }
}

impl Function for AveragePooling {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let (pooling, y) = spec!(self).pooling(&x[0])?;
        Ok(Resolved::one(y, SumPooling { pooling, by: divisor(true, self.including_pad) }))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        spec!(self).used(self)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let shape = g.x[0].shape().iter().map(|&n| n as i64).collect();
        let args = alike!(SumPoolingBackward, self, average: true, including_pad: self.including_pad, shape: shape);
        Ok(vec![Some(sum_pooling_backward(&g.gy[0], args)?)])
    }
}
