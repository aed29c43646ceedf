//! `max_pooling`: the largest number of each window.

use super::pooling::{MaxPoolingGather, alike, check_gradient, max_pooling_gather, spec};
use crate::function;
use crate::function::{ArgValue, Call, Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::pooling as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Largest number of each window over the last two or three axes; NaN if there is one. Padding never wins; of equal
    /// numbers the first one gets the gradient.
    MaxPooling max_pooling in Layer, any_device
    inputs { x: "N-D array; its last axes (before the channels, if channel_last) are pooled." }
    args {
        kernel: Vec<i64>, "Sizes of the window, for 2 or 3 axes.";
        stride: Option<Vec<i64>> = None, "Distance of windows; None: the kernel's sizes.";
        ignore_border: bool = true, "Leave out windows that reach over the far border; if not, they are cut.";
        pad: Option<Vec<i64>> = None, "Padding on both ends of each axis; None: none.";
        channel_last: bool = false, "Whether the channels are the last axis."
    }
    outputs { y: "Maxima, of shape (.., H', W'): an element for each place of the kernel." }
}

impl Function for MaxPooling {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let (pooling, y) = spec!(self).pooling(&x[0])?;
        Ok(Resolved::one(y, kernel::MaxPooling(pooling)))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        spec!(self).used(self)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(max_pooling_backward(&g.gy[0], &g.x[0], alike!(MaxPoolingBackward, self))?)])
    }
}

function! {
    /// Gradient of `max_pooling`: each number of dy goes to the place of the maximum of its window in x.
    MaxPoolingBackward max_pooling_backward in Special, any_device
    inputs { dy: "Gradient of the pooling's result, of its shape.", x: "What was pooled, an array (.., H, W)." }
    args {
        kernel: Vec<i64>, "As max_pooling's.";
        stride: Option<Vec<i64>> = None, "As max_pooling's.";
        ignore_border: bool = true, "As max_pooling's.";
        pad: Option<Vec<i64>> = None, "As max_pooling's.";
        channel_last: bool = false, "As max_pooling's."
    }
    outputs { dx: "Gradient of x, of its shape." }
}

impl Function for MaxPoolingBackward {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let (pooling, y) = spec!(self).pooling(&x[1])?;
        check_gradient("dy", &x[0], &y)?;
        Ok(Resolved::one(x[1].clone(), kernel::MaxPoolingBackward(pooling)))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        spec!(self).used(self)
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(max_pooling_gather(&g.gy[0], &g.x[1], alike!(MaxPoolingGather, self))?), None])
    }
}
