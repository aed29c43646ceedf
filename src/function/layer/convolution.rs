//! `convolution` over any number of spatial axes, with groups and dilation.

use super::convolution_weight_grad::{ConvolutionWeightGrad, convolution_weight_grad};
use super::spatial::{Sizes, all_but_channels, check_bias, sized, spec};
use crate::function::{Function, Grad, GradMut, Needs, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Result;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Convolution (a cross-correlation, to be exact) over any number of spatial axes:
    /// `y[n, o, p] = sum over c, k of w[o, c, k] x[n, c, p * stride + k * dilation - pad] + b[o]`.
    /// Spatial sizes become `(size + 2 pad - dilation (kernel - 1) - 1) // stride + 1`.
    Convolution convolution in Layer, any_device
    inputs {
        x: "Images of shape (.., C, spatial..) with base_axis leading axes; (.., spatial.., C) if channel_last.",
        weight: "Kernels of shape (O, C / group, kernel..); (O, kernel.., C / group) if channel_last.",
        bias [optional]: "Bias of shape (O,).",
    }
    args {
        base_axis: i64 = 1, "Number of leading axes that only repeat the convolution; may count from the end.";
        pad: Option<Vec<i64>> = None, "Zeros on both ends of each spatial axis; None: no padding.";
        stride: Option<Vec<i64>> = None, "Distance of windows on each spatial axis; None: 1.";
        dilation: Option<Vec<i64>> = None, "Distance of a kernel's elements on each spatial axis; None: 1.";
        group: i64 = 1, "Number of groups of channels that are convolved apart.";
        channel_last: bool = false, "Whether the channels are the last axis."
    }
    outputs { y: "Images of shape (.., O, new spatial..); channels last if channel_last." }
}

impl Convolution {
    fn sizes(&self, x: &Shape, w: &Shape) -> Result<Sizes> {
        spec!(self).convolution(x, w)
    }

    /// With all arguments as numbers.
    pub(super) fn of(s: &Sizes) -> Convolution {
        sized!(Convolution, s)
    }
}

impl Function for Convolution {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let s = self.sizes(&x[0], &x[1])?;
        check_bias(x.get(2), s.out_channels)?;
        Ok(smallvec![s.output_shape()])
    }

    fn multiplications(&self, x: &[Shape]) -> f64 {
        self.infer(x).map_or(0.0, |y| y[0].size() as f64 * (x[1].size() / x[1][0].max(1)) as f64)
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let s = self.sizes(x[0].shape, x[1].shape)?;
        s.forward(&x[0].data, &x[1].data, x.get(2).map(|b| &b.data), &y[0].data)
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        Some(Needs { x: (want[0] as u32) << 1 | want[1] as u32, y: 0 })
    }

    fn backward(
        &self,
        run: &Run,
        x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let s = self.sizes(run.shape(0), run.shape(1))?;
        // The gradient of x last: it may be written over that of y.
        let own = gx[0].as_ref();
        let place = own.filter(|gx| gx.over).map(|gx| &gx.data);
        let Some(g) = gy[0].as_ref().map(|gy| &gy.data).or(place) else { return Ok(()) };
        if let (Some(gw), Some(x)) = (&gx[1], &x[0]) {
            s.backward_weight(g, &x.data, &gw.data, gw.output)?;
        }
        if let Some(Some(gb)) = gx.get(2) {
            s.backward_bias(g, &gb.data, gb.output)?;
        }
        match (own, &x[1]) {
            (Some(gx), Some(w)) if gx.over => s.backward_data_over(&w.data, &gx.data)?,
            (Some(gx), Some(w)) => s.backward_data(g, &w.data, &gx.data, gx.output)?,
            _ => {}
        }
        Ok(())
    }

    fn scratch(&self, x: &[&Shape], _y: &[&Shape], dtype: DType) -> [usize; 2] {
        self.sizes(x[0], x[1]).map_or([0; 2], |s| s.scratch(dtype))
    }

    fn grad_over(&self, i: usize, x: &[&Shape], _y: &[&Shape]) -> Option<usize> {
        (i == 0 && self.sizes(x[0], x[1]).is_ok_and(|s| s.goes_over())).then_some(0)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, w, gy) = (&g.x[0], &g.x[1], &g.gy[0]);
        let s = self.sizes(&x.shape(), &w.shape())?;
        let gx = g.want[0].then(|| f::deconvolution(gy, w, None, f::Deconvolution::of(&s))).transpose()?;
        let gw = g.want[1].then(|| convolution_weight_grad(x, gy, ConvolutionWeightGrad::of(&s))).transpose()?;
        with_bias(vec![gx, gw], g, &s)
    }
}

/// Adds the gradient of the bias, where there is one: the sum of each channel.
pub(super) fn with_bias(mut grads: Vec<Option<Variable>>, g: &Grad, s: &Sizes) -> Result<Vec<Option<Variable>>> {
    if let Some(&want) = g.want.get(2) {
        let axis = all_but_channels(g.gy[0].ndim(), s.lead.ndim(), s.channel_last);
        let sum = || f::sum(&g.gy[0], f::Sum { axis: Some(axis), keepdims: false });
        grads.push(want.then(sum).transpose()?);
    }
    Ok(grads)
}
