//! `convolution` over any number of spatial axes, with groups and dilation.

use super::convolution_weight_grad::{ConvolutionWeightGrad, convolution_weight_grad};
use super::spatial::{all_but_channels, check_bias, sized, spec};
use crate::function::{ArgValue, Call, Described, Function, Grad, Resolved, call_of};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::convolution::{self as kernel, ConvolutionSizes};
use nnrs_kernels::shape::Shape;

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
    /// With all arguments as numbers.
    pub(super) fn of(s: &ConvolutionSizes) -> Convolution {
        sized!(Convolution, s)
    }
}

impl Function for Convolution {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let s = spec!(self).convolution(&x[0], &x[1])?;
        check_bias(x.get(2), s.out_channels)?;
        Ok(Resolved::one(s.output_shape(), kernel::Convolution(s)))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        let s = &call_of::<kernel::Convolution>(call).0;
        Convolution { base_axis: self.base_axis, ..Convolution::of(s) }.arguments()
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, w, gy) = (&g.x[0], &g.x[1], &g.gy[0]);
        let s = &g.call::<kernel::Convolution>().0;
        let gx = g.want[0].then(|| f::deconvolution(gy, w, None, f::Deconvolution::of(s))).transpose()?;
        let gw = g.want[1].then(|| convolution_weight_grad(x, gy, ConvolutionWeightGrad::of(s))).transpose()?;
        with_bias(vec![gx, gw], g, s)
    }
}

/// Adds the gradient of the bias, where there is one: the sum of each channel.
pub(super) fn with_bias(
    mut grads: Vec<Option<Variable>>,
    g: &Grad,
    s: &ConvolutionSizes,
) -> Result<Vec<Option<Variable>>> {
    if let Some(&want) = g.want.get(2) {
        let axis = all_but_channels(g.gy[0].ndim(), s.lead.ndim(), s.channel_last);
        let sum = || f::sum(&g.gy[0], f::Sum { axis: Some(axis), keepdims: false });
        grads.push(want.then(sum).transpose()?);
    }
    Ok(grads)
}
