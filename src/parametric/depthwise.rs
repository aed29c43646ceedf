//! `depthwise_convolution`, `depthwise_deconvolution`: convolutions of each channel for itself, with a bias.

use super::argument_types::{Init, Rng, Sizes};
use super::declare::parametric;
use super::layer::{LayerParameters, glorot};
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};

parametric! {
    /// N-D depthwise convolution with bias: each channel by itself (Chollet, Xception, 2016).
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let x = Variable::new([8, 3, 16, 16]);
    /// let y = pf::depthwise_convolution("dw", &x, [3, 3], pf::DepthwiseConvolution { multiplier: 2, ..Default::default() })?;
    /// assert_eq!(y.shape(), [8, 6, 14, 14].into());
    /// assert_eq!(parameter::get_parameter("dw/depthwise_conv/W").unwrap().shape(), [6, 3, 3].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    DepthwiseConvolution depthwise_convolution in "depthwise_conv"
    inputs { inp: "Input of shape (samples..., channels, *sizes)." }
    required { kernel: Sizes, "Kernel size, one a spatial axis."; }
    options {
        pad: Option<Vec<i64>> = None, "Zeros put around, one a spatial axis; by default 0.";
        stride: Option<Vec<i64>> = None, "Steps, one a spatial axis; by default 1.";
        dilation: Option<Vec<i64>> = None, "Distance of the kernel's points, one a spatial axis; by default 1.";
        multiplier: i64 = 1, "Number of output channels for each input channel.";
        w_init: Init = Init::default(), "Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.";
        b_init: Init = Init::default(), "Initial bias; by default zeros.";
        base_axis: i64 = 1, "First axis that is not a sample's number.";
        fix_parameters: bool = false, "Whether weight and bias stay as they are in training.";
        rng: Rng = Rng::default(), "Random generator of the initial weight.";
        with_bias: bool = true, "Whether there is a bias.";
    }
    parameters {
        "W" "(inmaps * multiplier, *kernel)": "Filters.";
        "b" "(inmaps * multiplier,)": "Bias.";
    }
    returns "Variable of shape (samples..., inmaps * multiplier, *sizes)."
    example ">>> depthwise_convolution(Variable((8, 3, 16, 16)), (3, 3), multiplier=2, name=\"d1\").shape\n(8, 6, 14, 14)"
}

parametric! {
    /// N-D transposed depthwise convolution with bias.
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let x = Variable::new([8, 6, 16, 16]);
    /// let y = pf::depthwise_deconvolution("dd", &x, [3, 3], pf::DepthwiseDeconvolution { divisor: 2, ..Default::default() })?;
    /// assert_eq!(y.shape(), [8, 3, 18, 18].into());
    /// assert_eq!(parameter::get_parameter("dd/depthwise_deconv/b").unwrap().shape(), [3].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    DepthwiseDeconvolution depthwise_deconvolution in "depthwise_deconv"
    inputs { inp: "Input of shape (samples..., channels, *sizes)." }
    required { kernel: Sizes, "Kernel size, one a spatial axis."; }
    options {
        pad: Option<Vec<i64>> = None, "What is cut from both ends of the output, one a spatial axis; by default 0.";
        stride: Option<Vec<i64>> = None, "Steps in the output, one a spatial axis; by default 1.";
        dilation: Option<Vec<i64>> = None, "Distance of the kernel's points, one a spatial axis; by default 1.";
        divisor: i64 = 1, "Number of input channels that are summed to an output channel.";
        w_init: Init = Init::default(), "Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.";
        b_init: Init = Init::default(), "Initial bias; by default zeros.";
        base_axis: i64 = 1, "First axis that is not a sample's number.";
        fix_parameters: bool = false, "Whether weight and bias stay as they are in training.";
        rng: Rng = Rng::default(), "Random generator of the initial weight.";
        with_bias: bool = true, "Whether there is a bias.";
    }
    parameters {
        "W" "(inmaps, *kernel)": "Filters.";
        "b" "(inmaps // divisor,)": "Bias.";
    }
    returns "Variable of shape (samples..., inmaps // divisor, *sizes)."
    example ">>> depthwise_deconvolution(Variable((8, 6, 16, 16)), (3, 3), divisor=2, name=\"d1\").shape\n(8, 3, 18, 18)"
}

/// The channels of `x`, for kernels of these sizes.
fn channels(x: &Variable, base_axis: i64, kernel: &[usize]) -> Result<usize> {
    if kernel.contains(&0) {
        return Err(Error::arg("kernel", "sizes of 1 or more").actual(format!("{kernel:?}")));
    }
    let shape = x.shape();
    Ok(shape[shape.axis(base_axis, "base_axis")?])
}

fn with_kernel(maps: usize, kernel: &[usize]) -> Vec<usize> {
    [maps].into_iter().chain(kernel.iter().copied()).collect()
}

impl DepthwiseConvolution {
    fn build(&self, x: &Variable, Sizes(kernel): Sizes) -> Result<Vec<Variable>> {
        let channels = channels(x, self.base_axis, &kernel)?;
        let maps = usize::try_from(self.multiplier).ok().filter(|&m| m > 0).and_then(|m| m.checked_mul(channels));
        let maps = maps.ok_or_else(|| Error::arg("multiplier", "a number from 1 on").actual(self.multiplier))?;
        let layer = LayerParameters { fixed: self.fix_parameters, rng: self.rng.clone() };
        let usual = glorot(maps, channels, &kernel);
        let w = layer.parameter("W", &with_kernel(maps, &kernel), &self.w_init, usual)?;
        let b = layer.bias(&[maps], &self.b_init, &Default::default(), self.with_bias)?;
        let rule = f::DepthwiseConvolution {
            base_axis: self.base_axis,
            pad: self.pad.clone(),
            stride: self.stride.clone(),
            dilation: self.dilation.clone(),
            multiplier: self.multiplier,
        };
        Ok(vec![f::depthwise_convolution(x, &w, b.as_ref(), rule)?])
    }
}

impl DepthwiseDeconvolution {
    fn build(&self, x: &Variable, Sizes(kernel): Sizes) -> Result<Vec<Variable>> {
        let channels = channels(x, self.base_axis, &kernel)?;
        let divides = |&d: &usize| d > 0 && channels.is_multiple_of(d);
        let divisor = usize::try_from(self.divisor).ok().filter(divides).ok_or_else(|| {
            Error::arg("divisor", format!("a divisor of the {channels} channels of inp")).actual(self.divisor)
        })?;
        let layer = LayerParameters { fixed: self.fix_parameters, rng: self.rng.clone() };
        let usual = glorot(channels, channels, &kernel);
        let w = layer.parameter("W", &with_kernel(channels, &kernel), &self.w_init, usual)?;
        let b = layer.bias(&[channels / divisor], &self.b_init, &Default::default(), self.with_bias)?;
        let rule = f::DepthwiseDeconvolution {
            base_axis: self.base_axis,
            pad: self.pad.clone(),
            stride: self.stride.clone(),
            dilation: self.dilation.clone(),
            divisor: self.divisor,
        };
        Ok(vec![f::depthwise_deconvolution(x, &w, b.as_ref(), rule)?])
    }
}
