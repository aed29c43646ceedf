//! The gradient of a convolution's weight as a function of its own. Its gradients are again a deconvolution and a
//! convolution, so the three are closed under differentiation. Internal: not in the registry.

use super::spatial::{sized, spec};
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::convolution::{ConvolutionSizes, ConvolutionWeightGradCall};
use nnrs_kernels::shape::Shape;

function! {
    /// Sums of products of a convolution's input and its output's gradient, at each place of the kernel.
    ConvolutionWeightGrad convolution_weight_grad in Layer, any_device
    inputs { x: "What is convolved.", gy: "Gradient of the convolution's result." }
    args {
        base_axis: i64 = 1, "As convolution's.";
        pad: Option<Vec<i64>> = None, "As convolution's.";
        stride: Option<Vec<i64>> = None, "As convolution's.";
        dilation: Option<Vec<i64>> = None, "As convolution's.";
        group: i64 = 1, "As convolution's.";
        channel_last: bool = false, "As convolution's.";
        weight: Vec<i64>, "Shape of the weight."
    }
    outputs { gw: "Gradient of the weight." }
}

impl ConvolutionWeightGrad {
    /// That of a convolution of the given sizes.
    pub(super) fn of(s: &ConvolutionSizes) -> ConvolutionWeightGrad {
        let weight = s.weight_shape().iter().map(|&n| n as i64).collect();
        sized!(ConvolutionWeightGrad, s, weight: weight)
    }
}

impl Function for ConvolutionWeightGrad {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let weight: Shape = self.weight.iter().map(|&n| n.max(0) as usize).collect();
        let s = spec!(self).convolution(&x[0], &weight)?;
        let y = s.output_shape();
        match x[1] == y {
            true => Ok(Resolved::one(weight, ConvolutionWeightGradCall(s))),
            false => Err(Error::shape("gy", format!("shape {y}")).actual(&x[1])),
        }
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, gy, ggw) = (&g.x[0], &g.x[1], &g.gy[0]);
        let s = &g.call::<ConvolutionWeightGradCall>().0;
        let gx = g.want[0].then(|| f::deconvolution(gy, ggw, None, f::Deconvolution::of(s))).transpose()?;
        let ggy = g.want[1].then(|| f::convolution(x, ggw, None, f::Convolution::of(s))).transpose()?;
        Ok(vec![gx, ggy])
    }
}
