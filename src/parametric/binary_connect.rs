//! `binary_connect_affine` and `binary_connect_convolution`: layers with the signs of their weight.

use super::argument_types::{Init, Rng, Size, Sizes};
use super::declare::parametric;
use super::layer::{ConvolutionWeight, LayerParameters, affine_weight};
use crate::functions as f;
use crate::graph::Variable;
use crate::initializer::Usual;
use nnrs_kernels::error::Result;

parametric! {
    /// An affine layer with the signs of its weight (BinaryConnect, Courbariaux et al., 2015).
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let y = pf::binary_connect_affine("fc", &Variable::new([8, 3, 5]), 10, pf::BinaryConnectAffine::default())?;
    /// assert_eq!(y.shape(), [8, 10].into());
    /// assert!(parameter::get_parameter("fc/bicon_affine/Wb").is_some());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    BinaryConnectAffine binary_connect_affine in "bicon_affine"
    inputs { inp: "Input; its axes from `base_axis` on count as one." }
    required { n_outmaps: Sizes, "Number of outputs, or the shape of them." }
    options {
        base_axis: i64 = 1, "First axis that is not a sample's number; may count from the end.";
        quantize_zero_to: f64 = 1.0, "The sign of 0.";
        w_init: Init = Init::default(), "Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.";
        wb_init: Init = Init::default(), "What the array of signs holds before the first forward pass; by default as the weight.";
        b_init: Init = Init::default(), "Initial bias; by default zeros.";
        fix_parameters: bool = false, "Whether weight and bias stay as they are in training.";
        rng: Rng = Rng::default(), "Random generator of the initial weight.";
        with_bias: bool = true, "Whether there is a bias.";
    }
    parameters {
        "W" "(inmaps, *n_outmaps)": "Weight matrix.";
        "Wb" "(inmaps, *n_outmaps)", statistics: "Its signs.";
        "b" "n_outmaps": "Bias.";
    }
    returns "Variable of shape `inp.shape[:base_axis] + n_outmaps`."
    example ">>> binary_connect_affine(Variable((8, 3, 4)), 5).shape\n(8, 5)"
}

impl BinaryConnectAffine {
    fn build(&self, x: &Variable, Sizes(outmaps): Sizes) -> Result<Vec<Variable>> {
        let (sizes, usual) = affine_weight(x, self.base_axis, &outmaps)?;
        let layer = LayerParameters { fixed: self.fix_parameters, rng: self.rng.clone() };
        let w = layer.parameter("W", &sizes, &self.w_init, usual)?;
        let wb = layer.untrained("Wb", &sizes, &self.wb_init, usual)?;
        let b =
            self.with_bias.then(|| layer.parameter("b", &outmaps, &self.b_init, Usual::Constant(0.0))).transpose()?;
        let rule = f::BinaryConnectAffine { base_axis: self.base_axis, quantize_zero_to: self.quantize_zero_to };
        Ok(vec![f::binary_connect_affine(x, &w, &wb, b.as_ref(), rule)?])
    }
}

parametric! {
    /// A convolution with the signs of its weight (BinaryConnect, Courbariaux et al., 2015).
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let y = pf::binary_connect_convolution("c1", &Variable::new([8, 3, 32, 32]), 16, [3, 3], pf::BinaryConnectConvolution::default())?;
    /// assert_eq!(y.shape(), [8, 16, 30, 30].into());
    /// assert!(parameter::get_parameter("c1/bicon_conv/Wb").is_some());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    BinaryConnectConvolution binary_connect_convolution in "bicon_conv"
    inputs { inp: "Input of shape (samples..., channels, *sizes)." }
    required {
        outmaps: Size, "Number of output channels.";
        kernel: Sizes, "Kernel size, one a spatial axis.";
    }
    options {
        pad: Option<Vec<i64>> = None, "Zeros put around, one a spatial axis; by default 0.";
        stride: Option<Vec<i64>> = None, "Steps, one a spatial axis; by default 1.";
        dilation: Option<Vec<i64>> = None, "Distance of the kernel's points, one a spatial axis; by default 1.";
        group: i64 = 1, "Number of groups of channels that do not mix.";
        quantize_zero_to: f64 = 1.0, "The sign of 0.";
        w_init: Init = Init::default(), "Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.";
        wb_init: Init = Init::default(), "What the array of signs holds before the first forward pass; by default as the weight.";
        b_init: Init = Init::default(), "Initial bias; by default zeros.";
        base_axis: i64 = 1, "First axis that is not a sample's number.";
        fix_parameters: bool = false, "Whether weight and bias stay as they are in training.";
        rng: Rng = Rng::default(), "Random generator of the initial weight.";
        with_bias: bool = true, "Whether there is a bias.";
    }
    parameters {
        "W" "(outmaps, inmaps // group, *kernel)": "Filters.";
        "Wb" "(outmaps, inmaps // group, *kernel)", statistics: "Its signs.";
        "b" "(outmaps,)": "Bias.";
    }
    returns "Variable of shape (samples..., outmaps, *sizes)."
    example ">>> binary_connect_convolution(Variable((8, 3, 32, 32)), 16, (3, 3), pad=(1, 1)).shape\n(8, 16, 32, 32)"
}

impl BinaryConnectConvolution {
    fn build(&self, x: &Variable, Size(outmaps): Size, Sizes(kernel): Sizes) -> Result<Vec<Variable>> {
        let (group, base_axis) = (self.group, self.base_axis);
        let weight = ConvolutionWeight { outmaps, kernel: &kernel, group, base_axis, channel_last: false };
        let (sizes, usual) = weight.of(x)?;
        let layer = LayerParameters { fixed: self.fix_parameters, rng: self.rng.clone() };
        let w = layer.parameter("W", &sizes, &self.w_init, usual)?;
        let wb = layer.untrained("Wb", &sizes, &self.wb_init, usual)?;
        let b =
            self.with_bias.then(|| layer.parameter("b", &[outmaps], &self.b_init, Usual::Constant(0.0))).transpose()?;
        let rule = f::BinaryConnectConvolution {
            base_axis: self.base_axis,
            pad: self.pad.clone(),
            stride: self.stride.clone(),
            dilation: self.dilation.clone(),
            group: self.group,
            quantize_zero_to: self.quantize_zero_to,
        };
        Ok(vec![f::binary_connect_convolution(x, &w, &wb, b.as_ref(), rule)?])
    }
}
