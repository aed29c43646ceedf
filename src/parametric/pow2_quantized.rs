//! `pow2_quantized_affine` and `pow2_quantized_convolution`: layers whose weight and bias are used as powers of two.

use super::argument_types::{Init, Rng, Size, Sizes};
use super::declare::parametric;
use super::layer::{ConvolutionWeight, LayerParameters, affine_weight};
use super::quantized::QuantizedParameter;
use crate::functions as f;
use crate::graph::Variable;
use crate::initializer::Usual;
use nnrs_kernels::error::Result;

parametric! {
    /// An affine layer whose weight and bias are used as powers of two, see `pow2_quantize`.
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let y = pf::pow2_quantized_affine("fc", &Variable::new([8, 3, 5]), 10, pf::Pow2QuantizedAffine::default())?;
    /// assert_eq!(y.shape(), [8, 10].into());
    /// assert!(parameter::get_parameter("fc/pow2_quantized_affine/W_q").is_some());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    Pow2QuantizedAffine pow2_quantized_affine in "pow2_quantized_affine"
    inputs { inp: "Input; its axes from `base_axis` on count as one." }
    required { n_outmaps: Sizes, "Number of outputs, or the shape of them." }
    options {
        base_axis: i64 = 1, "First axis that is not a sample's number; may count from the end.";
        w_init: Init = Init::default(), "Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.";
        b_init: Init = Init::default(), "Initial bias; by default zeros.";
        fix_parameters: bool = false, "Whether weight and bias stay as they are in training.";
        rng: Rng = Rng::default(), "Random generator of the initial weight.";
        with_bias: bool = true, "Whether there is a bias.";
        quantize_w: bool = true, "Whether the weight is quantized.";
        sign_w: bool = true, "Whether there are negative numbers in the weight.";
        with_zero_w: bool = false, "Whether 0 is one of the numbers of the weight.";
        n_w: i64 = 8, "Bits of a number of the weight.";
        m_w: i64 = 2, "The largest number of the weight is 2 to the power of this.";
        ste_fine_grained_w: bool = true, "Whether numbers of the weight beyond the limits have gradient 0.";
        quantize_b: bool = true, "Whether the bias is quantized.";
        sign_b: bool = true, "Whether there are negative numbers in the bias.";
        with_zero_b: bool = false, "Whether 0 is one of the numbers of the bias.";
        n_b: i64 = 8, "Bits of a number of the bias.";
        m_b: i64 = 2, "The largest number of the bias is 2 to the power of this.";
        ste_fine_grained_b: bool = true, "Whether numbers of the bias beyond the limits have gradient 0.";
    }
    parameters {
        "W" "(inmaps, *n_outmaps)": "Weight matrix.";
        "b" "n_outmaps": "Bias.";
        "W_q" "(inmaps, *n_outmaps)", statistics: "The weight as it is used.";
        "b_q" "n_outmaps", statistics: "The bias as it is used.";
    }
    returns "Variable of shape `inp.shape[:base_axis] + n_outmaps`."
    example ">>> pow2_quantized_affine(Variable((8, 3, 4)), 5).shape\n(8, 5)"
}

impl Pow2QuantizedAffine {
    fn build(&self, x: &Variable, Sizes(outmaps): Sizes) -> Result<Vec<Variable>> {
        let (sizes, usual) = affine_weight(x, self.base_axis, &outmaps)?;
        let layer = LayerParameters { fixed: self.fix_parameters, rng: self.rng.clone() };
        let rule = self.quantize_w.then_some(f::Pow2Quantize {
            sign: self.sign_w,
            with_zero: self.with_zero_w,
            n: self.n_w,
            m: self.m_w,
            ste_fine_grained: self.ste_fine_grained_w,
        });
        let w = QuantizedParameter { name: "W", sizes: &sizes, init: &self.w_init, usual }.of(&layer, rule)?;
        let rule = self.quantize_b.then_some(f::Pow2Quantize {
            sign: self.sign_b,
            with_zero: self.with_zero_b,
            n: self.n_b,
            m: self.m_b,
            ste_fine_grained: self.ste_fine_grained_b,
        });
        let b = QuantizedParameter { name: "b", sizes: &outmaps, init: &self.b_init, usual: Usual::Constant(0.0) };
        let b = self.with_bias.then(|| b.of(&layer, rule)).transpose()?;
        Ok(vec![f::affine(x, &w, b.as_ref(), f::Affine { base_axis: self.base_axis })?])
    }
}

parametric! {
    /// A convolution whose weight and bias are used as powers of two, see `pow2_quantize`.
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let y = pf::pow2_quantized_convolution("c1", &Variable::new([8, 3, 32, 32]), 16, [3, 3], pf::Pow2QuantizedConvolution::default())?;
    /// assert_eq!(y.shape(), [8, 16, 30, 30].into());
    /// assert!(parameter::get_parameter("c1/pow2_quantized_conv/W_q").is_some());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    Pow2QuantizedConvolution pow2_quantized_convolution in "pow2_quantized_conv"
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
        w_init: Init = Init::default(), "Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.";
        b_init: Init = Init::default(), "Initial bias; by default zeros.";
        base_axis: i64 = 1, "First axis that is not a sample's number.";
        fix_parameters: bool = false, "Whether weight and bias stay as they are in training.";
        rng: Rng = Rng::default(), "Random generator of the initial weight.";
        with_bias: bool = true, "Whether there is a bias.";
        quantize_w: bool = true, "Whether the weight is quantized.";
        with_zero_w: bool = false, "Whether 0 is one of the numbers of the weight.";
        sign_w: bool = true, "Whether there are negative numbers in the weight.";
        n_w: i64 = 8, "Bits of a number of the weight.";
        m_w: i64 = 2, "The largest number of the weight is 2 to the power of this.";
        ste_fine_grained_w: bool = true, "Whether numbers of the weight beyond the limits have gradient 0.";
        quantize_b: bool = true, "Whether the bias is quantized.";
        with_zero_b: bool = false, "Whether 0 is one of the numbers of the bias.";
        sign_b: bool = true, "Whether there are negative numbers in the bias.";
        n_b: i64 = 8, "Bits of a number of the bias.";
        m_b: i64 = 2, "The largest number of the bias is 2 to the power of this.";
        ste_fine_grained_b: bool = true, "Whether numbers of the bias beyond the limits have gradient 0.";
    }
    parameters {
        "W" "(outmaps, inmaps // group, *kernel)": "Filters.";
        "b" "(outmaps,)": "Bias.";
        "W_q" "(outmaps, inmaps // group, *kernel)", statistics: "The weight as it is used.";
        "b_q" "(outmaps,)", statistics: "The bias as it is used.";
    }
    returns "Variable of shape (samples..., outmaps, *sizes)."
    example ">>> pow2_quantized_convolution(Variable((8, 3, 32, 32)), 16, (3, 3), pad=(1, 1)).shape\n(8, 16, 32, 32)"
}

impl Pow2QuantizedConvolution {
    fn build(&self, x: &Variable, Size(outmaps): Size, Sizes(kernel): Sizes) -> Result<Vec<Variable>> {
        let (group, base_axis) = (self.group, self.base_axis);
        let weight = ConvolutionWeight { outmaps, kernel: &kernel, group, base_axis, channel_last: false };
        let (sizes, usual) = weight.of(x)?;
        let layer = LayerParameters { fixed: self.fix_parameters, rng: self.rng.clone() };
        let rule = self.quantize_w.then_some(f::Pow2Quantize {
            sign: self.sign_w,
            with_zero: self.with_zero_w,
            n: self.n_w,
            m: self.m_w,
            ste_fine_grained: self.ste_fine_grained_w,
        });
        let w = QuantizedParameter { name: "W", sizes: &sizes, init: &self.w_init, usual }.of(&layer, rule)?;
        let rule = self.quantize_b.then_some(f::Pow2Quantize {
            sign: self.sign_b,
            with_zero: self.with_zero_b,
            n: self.n_b,
            m: self.m_b,
            ste_fine_grained: self.ste_fine_grained_b,
        });
        let b = QuantizedParameter { name: "b", sizes: &[outmaps], init: &self.b_init, usual: Usual::Constant(0.0) };
        let b = self.with_bias.then(|| b.of(&layer, rule)).transpose()?;
        let rule = f::Convolution {
            base_axis: self.base_axis,
            pad: self.pad.clone(),
            stride: self.stride.clone(),
            dilation: self.dilation.clone(),
            group: self.group,
            channel_last: false,
        };
        Ok(vec![f::convolution(x, &w, b.as_ref(), rule)?])
    }
}
