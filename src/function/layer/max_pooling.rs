//! `max_pooling`: the largest number of each window.

use super::pooling::{MaxPoolingGather, alike, check_gradient, max_pooling_gather, spec};
use crate::error::Result;
use crate::function;
use crate::function::{Function, Grad, GradMut, Needs, OnGpu, Output, Run, Shapes, View, ViewMut, kernels};
use crate::graph::Variable;
use crate::shape::Shape;
use smallvec::smallvec;

function! {
    /// Largest number of each window over the last two or three axes. Padding never wins; of equal numbers the first one
    /// gets the gradient.
    MaxPooling max_pooling in Layer
    inputs { x: "N-D array; its last axes (before the channels, if channel_last) are pooled." }
    args {
        kernel: Vec<i64>, "Sizes of the window, for 2 or 3 axes.";
        stride: Option<Vec<i64>> = None, "Distance of windows; None: the kernel's sizes.";
        ignore_border: bool = true, "Leave out windows that reach over the far border; if not, they are cut.";
        pad: Option<Vec<i64>> = None, "Padding on both ends of each axis; None: none.";
        channel_last: bool = false, "Whether the channels are the last axis."
    }
    outputs { y: "Maxima." }
}

impl Function for MaxPooling {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        Ok(smallvec![spec!(self).pooling(&x[0])?.1])
    }

    fn on_gpu(&self) -> OnGpu {
        OnGpu::Both
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (p, _) = spec!(self).pooling(x[0].shape)?;
        kernels::max_pool(&p, &x[0].data, &y[0].data)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 1, y: 0 })
    }

    fn backward(
        &self,
        _run: &Run,
        x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(x), Some(gy), Some(gx)) = (&x[0], &gy[0], &gx[0]) else { return Ok(()) };
        let (p, _) = spec!(self).pooling(gx.shape)?;
        kernels::max_pool_back(&p, &gy.data, &x.data, &gx.data, gx.output)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(max_pooling_backward(&g.gy[0], &g.x[0], alike!(MaxPoolingBackward, self))?)])
    }
}

function! {
    /// Gradient of `max_pooling`: each number of dy goes to the place of the maximum of its window in x.
    MaxPoolingBackward max_pooling_backward in Special
    inputs { dy: "Gradient of the pooling's result.", x: "What was pooled." }
    args {
        kernel: Vec<i64>, "As max_pooling's.";
        stride: Option<Vec<i64>> = None, "As max_pooling's.";
        ignore_border: bool = true, "As max_pooling's.";
        pad: Option<Vec<i64>> = None, "As max_pooling's.";
        channel_last: bool = false, "As max_pooling's."
    }
    outputs { dx: "Gradient of x." }
}

impl Function for MaxPoolingBackward {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let (_, y) = spec!(self).pooling(&x[1])?;
        check_gradient("dy", &x[0], &y)?;
        Ok(smallvec![x[1].clone()])
    }

    fn on_gpu(&self) -> OnGpu {
        OnGpu::Both
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (p, _) = spec!(self).pooling(x[1].shape)?;
        kernels::max_pool_back(&p, &x[0].data, &x[1].data, &y[0].data, Output::Write)
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(max_pooling_gather(&g.gy[0], &g.x[1], alike!(MaxPoolingGather, self))?), None])
    }
}
