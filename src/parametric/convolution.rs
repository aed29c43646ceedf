//! `convolution`: a convolution with a bias.

use super::argument_types::{Apply, Init, Rng, Size, Sizes};
use super::declare::parametric;
use super::layer::{ConvolutionWeight, LayerParameters};
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::Result;

parametric! {
    /// N-D convolution with bias.
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let x = Variable::new([8, 3, 32, 32]);
    /// let y = pf::convolution("c1", &x, 16, [3, 3], pf::Convolution::padded(&[1, 1]))?;
    /// assert_eq!(y.shape(), [8, 16, 32, 32].into());
    /// parameter::clear_parameters();
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    Convolution convolution in "conv"
    inputs { inp: "Input of shape (samples..., channels, *sizes), with `channel_last` (samples..., *sizes, channels)." }
    required {
        outmaps: Size, "Number of output channels.";
        kernel: Sizes, "Kernel size, one a spatial axis.";
    }
    options {
        pad: Option<Vec<i64>> = None, "Zeros put around, one a spatial axis; by default 0.";
        stride: Option<Vec<i64>> = None, "Steps, one a spatial axis; by default 1.";
        dilation: Option<Vec<i64>> = None, "Distance of the kernel's points, one a spatial axis; by default 1.";
        group: i64 = 1, "Number of groups of channels that do not mix.";
        channel_last: bool = false, "Whether channels are the last axis.";
        w_init: Init = Init::default(), "Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.";
        b_init: Init = Init::default(), "Initial bias; by default zeros.";
        base_axis: i64 = 1, "First axis that is not a sample's number.";
        fix_parameters: bool = false, "Whether weight and bias stay as they are in training.";
        rng: Rng = Rng::default(), "Random generator of the initial weight.";
        with_bias: bool = true, "Whether there is a bias.";
        apply_w: Apply = Apply::default(), "Function applied to the weight before its use.";
        apply_b: Apply = Apply::default(), "Function applied to the bias before its use.";
    }
    parameters {
        "W" "(outmaps, inmaps // group, *kernel), with channel_last (outmaps, *kernel, ...)": "Filters.";
        "b" "(outmaps,)": "Bias.";
    }
    returns "Variable of shape (samples..., outmaps, *sizes)."
    example ">>> convolution(Variable((8, 3, 32, 32)), 16, (3, 3), pad=(1, 1), name=\"c1\").shape\n(8, 16, 32, 32)"
}

impl Convolution {
    /// With the same padding on both sides of each spatial axis.
    pub fn padded(pad: &[i64]) -> Self {
        Convolution { pad: Some(pad.to_vec()), ..Default::default() }
    }

    fn build(&self, x: &Variable, Size(outmaps): Size, Sizes(kernel): Sizes) -> Result<Vec<Variable>> {
        let &Convolution { group, base_axis, channel_last, .. } = self;
        let weight = ConvolutionWeight { outmaps, kernel: &kernel, group, base_axis, channel_last };
        let (sizes, usual) = weight.of(x)?;
        let layer = LayerParameters { fixed: self.fix_parameters, rng: self.rng.clone() };
        let w = layer.weight(&sizes, &self.w_init, usual, &self.apply_w)?;
        let b = layer.bias(&[outmaps], &self.b_init, &self.apply_b, self.with_bias)?;
        let rule = f::Convolution {
            base_axis: self.base_axis,
            pad: self.pad.clone(),
            stride: self.stride.clone(),
            dilation: self.dilation.clone(),
            group: self.group,
            channel_last: self.channel_last,
        };
        Ok(vec![f::convolution(x, &w, b.as_ref(), rule)?])
    }
}
