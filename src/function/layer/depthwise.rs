//! `depthwise_convolution`, `depthwise_deconvolution`: convolutions of each channel for itself, by the kernels of convolutions with
//! groups.

use super::convolution::with_bias;
use super::convolution_weight_grad::{ConvolutionWeightGrad, convolution_weight_grad};
use super::spatial::{ConvolutionArguments, check_bias};
use crate::function::{ArgValue, Call, Described, Function, Grad, Resolved, call_of};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::convolution::{self as kernel, ConvolutionSizes};
use nnrs_kernels::shape::Shape;

function! {
    /// Convolution of each channel for itself, with one kernel or more (Chollet, Xception, 2016).
    /// Spatial sizes become `(size + 2 pad - dilation (kernel - 1) - 1) // stride + 1`.
    DepthwiseConvolution depthwise_convolution in Layer, any_device
    inputs {
        x: "Images of shape (.., C, spatial..) with base_axis leading axes.",
        weight: "Kernels of shape (C multiplier, kernel..); those of a channel follow each other.",
        bias [optional]: "Bias of shape (C multiplier,).",
    }
    args {
        base_axis: i64 = 1, "Number of leading axes that only repeat the convolution; may count from the end.";
        pad: Option<Vec<i64>> = None, "Zeros on both ends of each spatial axis; None: no padding.";
        stride: Option<Vec<i64>> = None, "Distance of windows on each spatial axis; None: 1.";
        dilation: Option<Vec<i64>> = None, "Distance of a kernel's elements on each spatial axis; None: 1.";
        multiplier: i64 = 1, "Maps that are made of each channel."
    }
    outputs { y: "Images of shape (.., C multiplier, new spatial..)." }
}

function! {
    /// Transposed depthwise convolution: each map of the result is the sum of what `divisor` channels that follow each other add to it.
    /// Spatial sizes become `stride (size - 1) + dilation (kernel - 1) + 1 - 2 pad`.
    DepthwiseDeconvolution depthwise_deconvolution in Layer, any_device
    inputs {
        x: "Images of shape (.., C, spatial..) with base_axis leading axes.",
        weight: "Kernels of shape (C, kernel..).",
        bias [optional]: "Bias of shape (C / divisor,).",
    }
    args {
        base_axis: i64 = 1, "Number of leading axes that only repeat the deconvolution; may count from the end.";
        pad: Option<Vec<i64>> = None, "What is cut off both ends of each spatial axis of y; None: nothing.";
        stride: Option<Vec<i64>> = None, "Distance in y of neighbours in x on each spatial axis; None: 1.";
        dilation: Option<Vec<i64>> = None, "Distance of a kernel's elements on each spatial axis; None: 1.";
        divisor: i64 = 1, "Channels that are summed to a map."
    }
    outputs { y: "Images of shape (.., C / divisor, new spatial..)." }
}

/// The arguments of a convolution in that many groups.
macro_rules! grouped {
    ($f:expr, $group:expr) => {
        ConvolutionArguments {
            base_axis: $f.base_axis,
            pad: $f.pad.as_deref(),
            stride: $f.stride.as_deref(),
            dilation: $f.dilation.as_deref(),
            group: $group as i64,
            channel_last: false,
        }
    };
}

/// The channels of `x`, if it has them where `base_axis` says; the convolution's checks refuse it else.
fn channels(x: &Shape, base_axis: i64) -> Option<usize> {
    let axis = if base_axis < 0 { base_axis + x.ndim() as i64 } else { base_axis };
    usize::try_from(axis).ok().and_then(|a| x.get(a).copied())
}

/// The shape of a weight with one channel for each map, if it is one of `maps` maps.
fn weight(x: &Shape, base_axis: i64, w: &Shape, maps: Option<usize>, of: &str) -> Result<Shape> {
    let base = if base_axis < 0 { base_axis + x.ndim() as i64 } else { base_axis };
    let spatial = (x.ndim() as i64 - 1).saturating_sub(base).clamp(0, x.ndim() as i64) as usize;
    if w.ndim() == spatial + 1 && Some(w[0]) == maps {
        return Ok([w[0], 1].into_iter().chain(w[1..].iter().copied()).collect());
    }
    let maps = maps.map_or("maps".to_string(), |n| n.to_string());
    Err(Error::shape("weight", format!("shape ({maps}, kernel..), {of}, with {spatial} sizes of the kernel")).actual(w))
}

impl DepthwiseConvolution {
    fn convolution(&self, x: &Shape, w: &Shape) -> Result<ConvolutionSizes> {
        let c = channels(x, self.base_axis);
        let maps = match (c, usize::try_from(self.multiplier)) {
            (Some(c), Ok(m @ 1..)) => c.checked_mul(m),
            (None, Ok(1..)) => None,
            _ => return Err(Error::arg("multiplier", "a number from 1 on").actual(self.multiplier)),
        };
        let of = "the channels of x times multiplier";
        let group = c.unwrap_or(1).max(1);
        grouped!(self, group).convolution(x, &weight(x, self.base_axis, w, maps, of)?)
    }
}

impl DepthwiseDeconvolution {
    fn deconvolution(&self, x: &Shape, w: &Shape) -> Result<ConvolutionSizes> {
        let c = channels(x, self.base_axis);
        let divisor = usize::try_from(self.divisor).unwrap_or(0);
        if divisor == 0 || c.is_some_and(|c| !c.is_multiple_of(divisor)) {
            let channels = c.map_or("the".to_string(), |c| format!("the {c}"));
            return Err(Error::arg("divisor", format!("a divisor of {channels} channels of x")).actual(self.divisor));
        }
        let group = (c.unwrap_or(divisor) / divisor).max(1);
        grouped!(self, group).deconvolution(x, &weight(x, self.base_axis, w, c, "the channels of x")?, None)
    }
}

/// The arguments as they are used: numbers for each axis.
fn used(f: &impl Described, s: &ConvolutionSizes) -> Vec<(&'static str, ArgValue)> {
    let ints = |d: &[usize]| ArgValue::Ints(d.iter().map(|&n| n as i64).collect());
    let filled = |(name, v)| match name {
        "pad" => (name, ints(&s.pad)),
        "stride" => (name, ints(&s.stride)),
        "dilation" => (name, ints(&s.dilation)),
        _ => (name, v),
    };
    f.arguments().into_iter().map(filled).collect()
}

fn reshaped(v: &Variable, shape: &Shape) -> Result<Variable> {
    f::reshape(v, f::Reshape::to(shape))
}

impl Function for DepthwiseConvolution {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let s = self.convolution(&x[0], &x[1])?;
        check_bias(x.get(2), s.out_channels)?;
        Ok(Resolved::one(s.output_shape(), kernel::Convolution(s)))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        used(self, &call_of::<kernel::Convolution>(call).0)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, w, gy) = (&g.x[0], &g.x[1], &g.gy[0]);
        let s = &g.call::<kernel::Convolution>().0;
        let gx = || f::deconvolution(gy, &reshaped(w, &s.weight_shape())?, None, f::Deconvolution::of(s));
        let gw = || reshaped(&convolution_weight_grad(x, gy, ConvolutionWeightGrad::of(s))?, &w.shape());
        with_bias(vec![g.want[0].then(gx).transpose()?, g.want[1].then(gw).transpose()?], g, s)
    }
}

impl Function for DepthwiseDeconvolution {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let s = self.deconvolution(&x[0], &x[1])?;
        check_bias(x.get(2), s.in_channels)?;
        Ok(Resolved::one(s.input_shape(), kernel::Deconvolution(s)))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        used(self, &call_of::<kernel::Deconvolution>(call).0)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, w, gy) = (&g.x[0], &g.x[1], &g.gy[0]);
        let s = &g.call::<kernel::Deconvolution>().0;
        let gx = || f::convolution(gy, &reshaped(w, &s.weight_shape())?, None, f::Convolution::of(s));
        let gw = || reshaped(&convolution_weight_grad(gy, x, ConvolutionWeightGrad::of(s))?, &w.shape());
        with_bias(vec![g.want[0].then(gx).transpose()?, g.want[1].then(gw).transpose()?], g, s)
    }
}
