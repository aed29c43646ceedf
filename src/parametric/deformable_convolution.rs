//! `deformable_convolution`: a convolution that reads where an array says, with a bias.

use super::argument_types::{Apply, Init, Rng, Size, Sizes};
use super::declare::parametric;
use super::layer::{ConvolutionWeight, LayerParameters};
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::Result;

parametric! {
    /// 2-D deformable convolution with bias (Dai et al., 2017), with a mask version 2 of it (Zhu et al., 2018).
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let (x, offset) = (Variable::new([8, 3, 16, 16]), Variable::new([8, 18, 16, 16]));
    /// let options = pf::DeformableConvolution { pad: Some(vec![1, 1]), ..Default::default() };
    /// let y = pf::deformable_convolution("d1", &x, 6, [3, 3], offset, options)?;
    /// assert_eq!(y.shape(), [8, 6, 16, 16].into());
    /// assert_eq!(parameter::get_parameter("d1/deformable_conv/W").unwrap().shape(), [6, 3, 3, 3].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    DeformableConvolution deformable_convolution in "deformable_conv"
    inputs { inp: "Input of shape (N, channels, H, W), with `channel_last` (N, H, W, channels)." }
    required {
        outmaps: Size, "Number of output channels.";
        kernel: Sizes, "Kernel size, height and width.";
        offset: Variable, "Distances, see `nnrs.functions.deformable_convolution`; mostly another convolution makes them.";
    }
    options {
        mask: Option<Variable> = None, "Factors, likewise, or None.";
        pad: Option<Vec<i64>> = None, "Zeros put around, one a spatial axis; by default 0.";
        stride: Option<Vec<i64>> = None, "Steps, one a spatial axis; by default 1.";
        dilation: Option<Vec<i64>> = None, "Distance of the kernel's points, one a spatial axis; by default 1.";
        group: i64 = 1, "Number of groups of channels that do not mix.";
        deformable_group: i64 = 1, "Number of groups of channels with distances of their own.";
        channel_last: bool = false, "Whether channels are the last axis.";
        w_init: Init = Init::default(), "Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.";
        b_init: Init = Init::default(), "Initial bias; by default zeros.";
        base_axis: i64 = 1, "Axis of the channels: 1.";
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
    returns "Variable of shape (N, outmaps, new H, new W), with `channel_last` channels last."
    example ">>> x, offset = Variable((8, 3, 16, 16)), Variable((8, 18, 16, 16))\n>>> deformable_convolution(x, 6, (3, 3), offset, pad=(1, 1), name=\"d1\").shape\n(8, 6, 16, 16)"
}

impl DeformableConvolution {
    fn build(
        &self,
        x: &Variable,
        Size(outmaps): Size,
        Sizes(kernel): Sizes,
        offset: Variable,
    ) -> Result<Vec<Variable>> {
        let &DeformableConvolution { group, base_axis, channel_last, .. } = self;
        let weight = ConvolutionWeight { outmaps, kernel: &kernel, group, base_axis, channel_last };
        let (sizes, usual) = weight.of(x)?;
        let layer = LayerParameters { fixed: self.fix_parameters, rng: self.rng.clone() };
        let w = layer.weight(&sizes, &self.w_init, usual, &self.apply_w)?;
        let b = layer.bias(&[outmaps], &self.b_init, &self.apply_b, self.with_bias)?;
        let rule = f::DeformableConvolution {
            base_axis,
            pad: self.pad.clone(),
            stride: self.stride.clone(),
            dilation: self.dilation.clone(),
            group,
            deformable_group: self.deformable_group,
            channel_last,
        };
        Ok(vec![f::deformable_convolution(x, &w, &offset, self.mask.as_ref(), b.as_ref(), rule)?])
    }
}
