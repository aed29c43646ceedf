//! `deconvolution`: the transpose of a convolution, and so also the gradient of its data.

use super::convolution::with_bias;
use super::convolution_weight_grad::{ConvolutionWeightGrad, convolution_weight_grad};
use super::spatial::{check_bias, sized, spec};
use crate::function::{ArgValue, Call, Described, Function, Grad, Resolved, call_of};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::convolution::{self as kernel, ConvolutionSizes};
use nnrs_kernels::shape::Shape;

function! {
    /// Transposed convolution (Zeiler et al., 2010): each element of x adds its multiple of the kernel to y. It is what carries a gradient back
    /// through a convolution with the same arguments.
    /// Spatial sizes become `stride (size - 1) + dilation (kernel - 1) + 1 - 2 pad + output_padding`.
    Deconvolution deconvolution in Layer, any_device
    inputs {
        x: "Images of shape (.., C, spatial..) with base_axis leading axes; (.., spatial.., C) if channel_last.",
        weight: "Kernels of shape (C, O / group, kernel..); (C, kernel.., O / group) if channel_last.",
        bias [optional]: "Bias of shape (O,).",
    }
    args {
        base_axis: i64 = 1, "Number of leading axes that only repeat the deconvolution; may count from the end.";
        pad: Option<Vec<i64>> = None, "What is cut off both ends of each spatial axis of y; None: nothing.";
        stride: Option<Vec<i64>> = None, "Distance in y of neighbours in x on each spatial axis; None: 1.";
        dilation: Option<Vec<i64>> = None, "Distance of a kernel's elements on each spatial axis; None: 1.";
        group: i64 = 1, "Number of groups of channels that are treated apart.";
        channel_last: bool = false, "Whether the channels are the last axis.";
        output_padding: Option<Vec<i64>> = None, "Added to the end of each spatial axis of y, less than stride; None: 0."
    }
    outputs { y: "Images of shape (.., O, new spatial..); channels last if channel_last." }
}

impl Deconvolution {
    /// The one that turns the output's shape of a convolution into its input's.
    pub(super) fn of(s: &ConvolutionSizes) -> Deconvolution {
        sized!(Deconvolution, s, output_padding: Some(s.output_padding()))
    }
}

impl Function for Deconvolution {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let s = spec!(self).deconvolution(&x[0], &x[1], self.output_padding.as_deref())?;
        check_bias(x.get(2), s.in_channels)?;
        Ok(Resolved::one(s.input_shape(), kernel::Deconvolution(s)))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        let s = &call_of::<kernel::Deconvolution>(call).0;
        Deconvolution { base_axis: self.base_axis, ..Deconvolution::of(s) }.arguments()
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, w, gy) = (&g.x[0], &g.x[1], &g.gy[0]);
        let s = &g.call::<kernel::Deconvolution>().0;
        let gx = g.want[0].then(|| f::convolution(gy, w, None, f::Convolution::of(s))).transpose()?;
        let gw = g.want[1].then(|| convolution_weight_grad(gy, x, ConvolutionWeightGrad::of(s))).transpose()?;
        with_bias(vec![gx, gw], g, s)
    }
}
