//! `max_pooling`: the largest number of each window.

use super::pooling::{MaxPoolingGather, alike, check_gradient, max_pooling_gather, spec};
use crate::function;
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::array::{Data, Place};
use nnrs_kernels::cpu::pooling::Pooling;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

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
    outputs { y: "Maxima." }
}

/// Where a forward pass has found the maxima of its windows.
struct Winners {
    pooling: Pooling,
    /// Numbers within the windows, as [`place_type`].
    places: Data,
}

fn place_type(p: &Pooling) -> DType {
    if p.places() <= u8::MAX as usize { DType::U8 } else { DType::U32 }
}

fn no_forward() -> Error {
    Error::graph("the places of the maxima are missing").hint("call forward() before backward()")
}

impl Function for MaxPooling {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        Ok(smallvec![spec!(self).pooling(&x[0])?.1])
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (p, _) = spec!(self).pooling(x[0].shape)?;
        if !run.keep {
            return ops::max_pool(&p, &x[0].data, &y[0].data);
        }
        let places = Data::new(place_type(&p), p.output_len())?;
        with_real!(run.dtype, T => match places.dtype() {
            DType::U8 => p.max_forward_keeping(x[0].slice::<T>(), y[0].slice(), places.as_mut_slice::<u8>()),
            _ => p.max_forward_keeping(x[0].slice::<T>(), y[0].slice(), places.as_mut_slice::<u32>()),
        });
        run.save(Winners { pooling: p, places });
        Ok(())
    }

    fn saves(&self, x: &[&Shape], _dtype: DType) -> Option<usize> {
        let (p, _) = spec!(self).pooling(x[0]).ok()?;
        Some(p.output_len() * place_type(&p).size())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(
        &self,
        run: &Run,
        x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &mut gx[0]) else { return Ok(()) };
        let (p, _) = spec!(self).pooling(gx.shape)?;
        if let (Place::Gpu(_), Some(x)) = (gx.data.place(), &x[0]) {
            return ops::max_pool_back(&p, &gy.data, &x.data, &gx.data, gx.output);
        }
        let saved = run.saved::<Winners>().filter(|w| w.pooling == p);
        let (places, out) = (&saved.as_ref().ok_or_else(no_forward)?.places, gx.output);
        with_real!(run.dtype, T => match places.dtype() {
            DType::U8 => p.max_backward_to(gy.slice::<T>(), places.as_slice::<u8>(), gx.slice(), out),
            _ => p.max_backward_to(gy.slice::<T>(), places.as_slice::<u32>(), gx.slice(), out),
        });
        Ok(())
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(max_pooling_backward(&g.gy[0], &g.x[0], alike!(MaxPoolingBackward, self))?)])
    }
}

function! {
    /// Gradient of `max_pooling`: each number of dy goes to the place of the maximum of its window in x.
    MaxPoolingBackward max_pooling_backward in Special, any_device
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

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (p, _) = spec!(self).pooling(x[1].shape)?;
        ops::max_pool_back(&p, &x[0].data, &x[1].data, &y[0].data, Output::Write)
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(max_pooling_gather(&g.gy[0], &g.x[1], alike!(MaxPoolingGather, self))?), None])
    }
}
