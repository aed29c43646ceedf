//! `min_max_quantized_affine` and `min_max_quantized_convolution`: layers whose weight and bias are used as levels of a range.

use super::argument_types::{Init, Level, Rng, Size, Sizes};
use super::declare::parametric;
use super::layer::{ConvolutionWeight, LayerParameters, affine_weight};
use super::min_max_quantize::{InRange, MinMaxQuantize};
use super::quantized::QuantizedParameter;
use crate::functions as f;
use crate::graph::Variable;
use crate::initializer::Usual;
use nnrs_kernels::error::Result;

parametric! {
    /// An affine layer whose weight and bias are used as levels of a range, see `min_max_quantize`.
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let y = pf::min_max_quantized_affine("fc", &Variable::new([8, 3, 5]), 10, pf::MinMaxQuantizedAffine::default())?;
    /// assert_eq!(y.shape(), [8, 10].into());
    /// assert!(parameter::get_parameter("fc/min_max_quantized_affine/W_q").is_some());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    MinMaxQuantizedAffine min_max_quantized_affine in "min_max_quantized_affine"
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
        ql_min_w: Level = Level::Whole(0), "Least level of the weight.";
        ql_max_w: Level = Level::Whole(255), "Largest level of the weight.";
        w_min_max: bool = false, "Whether the range is that of the weight; if not, it is learned.";
        qr_min_w_init: Init = Init::default(), "Initial least number of the weight's range; by default -2.";
        qr_max_w_init: Init = Init::default(), "Initial largest number of the weight's range; by default 2.";
        ste_fine_grained_w: bool = true, "Whether numbers of the weight beyond the limits have gradient 0.";
        quantize_b: bool = true, "Whether the bias is quantized.";
        ql_min_b: Level = Level::Whole(0), "Least level of the bias.";
        ql_max_b: Level = Level::Whole(255), "Largest level of the bias.";
        b_min_max: bool = false, "Whether the range is that of the bias; if not, it is learned.";
        qr_min_b_init: Init = Init::default(), "Initial least number of the bias's range; by default -6.";
        qr_max_b_init: Init = Init::default(), "Initial largest number of the bias's range; by default 6.";
        ste_fine_grained_b: bool = true, "Whether numbers of the bias beyond the limits have gradient 0.";
        eps: f64 = 0.01, "The least size of a range.";
    }
    parameters {
        "W" "(inmaps, *n_outmaps)": "Weight matrix.";
        "b" "n_outmaps": "Bias.";
        "W_q" "(inmaps, *n_outmaps)", statistics: "The weight as it is used.";
        "b_q" "n_outmaps", statistics: "The bias as it is used.";
        "min_max_quantize_w/min_max_quantize/qr_min" "(1, ..)": "Least number of the weight's range.";
        "min_max_quantize_w/min_max_quantize/qr_max" "(1, ..)": "Largest number of the weight's range.";
    }
    returns "Variable of shape `inp.shape[:base_axis] + n_outmaps`."
    example ">>> min_max_quantized_affine(Variable((8, 3, 4)), 5).shape\n(8, 5)"
}

impl MinMaxQuantizedAffine {
    fn build(&self, x: &Variable, Sizes(outmaps): Sizes) -> Result<Vec<Variable>> {
        let (sizes, usual) = affine_weight(x, self.base_axis, &outmaps)?;
        let layer = LayerParameters { fixed: self.fix_parameters, rng: self.rng.clone() };
        let rule = self.quantize_w.then(|| MinMaxQuantize {
            ql_min: self.ql_min_w.clone(),
            ql_max: self.ql_max_w.clone(),
            x_min_max: self.w_min_max,
            ste_fine_grained: self.ste_fine_grained_w,
            eps: self.eps,
            qr_min_init: self.qr_min_w_init.or(-2.0),
            qr_max_init: self.qr_max_w_init.or(2.0),
            fix_parameters: self.fix_parameters,
            ..Default::default()
        });
        let rule = rule.map(|rule| InRange { scope: "min_max_quantize_w", rule });
        let w = QuantizedParameter { name: "W", sizes: &sizes, init: &self.w_init, usual }.of(&layer, rule)?;
        let rule = self.quantize_b.then(|| MinMaxQuantize {
            ql_min: self.ql_min_b.clone(),
            ql_max: self.ql_max_b.clone(),
            x_min_max: self.b_min_max,
            ste_fine_grained: self.ste_fine_grained_b,
            eps: self.eps,
            qr_min_init: self.qr_min_b_init.or(-6.0),
            qr_max_init: self.qr_max_b_init.or(6.0),
            fix_parameters: self.fix_parameters,
            ..Default::default()
        });
        let rule = rule.map(|rule| InRange { scope: "min_max_quantize_b", rule });
        let b = QuantizedParameter { name: "b", sizes: &outmaps, init: &self.b_init, usual: Usual::Constant(0.0) };
        let b = self.with_bias.then(|| b.of(&layer, rule)).transpose()?;
        Ok(vec![f::affine(x, &w, b.as_ref(), f::Affine { base_axis: self.base_axis })?])
    }
}

parametric! {
    /// A convolution whose weight and bias are used as levels of a range, see `min_max_quantize`.
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let y = pf::min_max_quantized_convolution("c1", &Variable::new([8, 3, 32, 32]), 16, [3, 3], pf::MinMaxQuantizedConvolution::default())?;
    /// assert_eq!(y.shape(), [8, 16, 30, 30].into());
    /// assert!(parameter::get_parameter("c1/min_max_quantized_conv/W_q").is_some());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    MinMaxQuantizedConvolution min_max_quantized_convolution in "min_max_quantized_conv"
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
        channel_last: bool = false, "Whether channels are the last axis.";
        w_init: Init = Init::default(), "Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.";
        b_init: Init = Init::default(), "Initial bias; by default zeros.";
        base_axis: i64 = 1, "First axis that is not a sample's number.";
        fix_parameters: bool = false, "Whether weight and bias stay as they are in training.";
        rng: Rng = Rng::default(), "Random generator of the initial weight.";
        with_bias: bool = true, "Whether there is a bias.";
        quantize_w: bool = true, "Whether the weight is quantized.";
        ql_min_w: Level = Level::Whole(0), "Least level of the weight.";
        ql_max_w: Level = Level::Whole(255), "Largest level of the weight.";
        w_min_max: bool = false, "Whether the range is that of the weight; if not, it is learned.";
        qr_min_w_init: Init = Init::default(), "Initial least number of the weight's range; by default -2.";
        qr_max_w_init: Init = Init::default(), "Initial largest number of the weight's range; by default 2.";
        ste_fine_grained_w: bool = true, "Whether numbers of the weight beyond the limits have gradient 0.";
        quantize_b: bool = true, "Whether the bias is quantized.";
        ql_min_b: Level = Level::Whole(0), "Least level of the bias.";
        ql_max_b: Level = Level::Whole(255), "Largest level of the bias.";
        b_min_max: bool = false, "Whether the range is that of the bias; if not, it is learned.";
        qr_min_b_init: Init = Init::default(), "Initial least number of the bias's range; by default -6.";
        qr_max_b_init: Init = Init::default(), "Initial largest number of the bias's range; by default 6.";
        ste_fine_grained_b: bool = true, "Whether numbers of the bias beyond the limits have gradient 0.";
        eps: f64 = 0.01, "The least size of a range.";
    }
    parameters {
        "W" "(outmaps, inmaps // group, *kernel), with channel_last (outmaps, *kernel, ...)": "Filters.";
        "b" "(outmaps,)": "Bias.";
        "W_q" "(outmaps, inmaps // group, *kernel), with channel_last (outmaps, *kernel, ...)", statistics: "The weight as it is used.";
        "b_q" "(outmaps,)", statistics: "The bias as it is used.";
        "min_max_quantize_w/min_max_quantize/qr_min" "(1, ..)": "Least number of the weight's range.";
        "min_max_quantize_w/min_max_quantize/qr_max" "(1, ..)": "Largest number of the weight's range.";
    }
    returns "Variable of shape (samples..., outmaps, *sizes)."
    example ">>> min_max_quantized_convolution(Variable((8, 3, 32, 32)), 16, (3, 3), pad=(1, 1)).shape\n(8, 16, 32, 32)"
}

impl MinMaxQuantizedConvolution {
    fn build(&self, x: &Variable, Size(outmaps): Size, Sizes(kernel): Sizes) -> Result<Vec<Variable>> {
        let (group, base_axis) = (self.group, self.base_axis);
        let weight = ConvolutionWeight { outmaps, kernel: &kernel, group, base_axis, channel_last: self.channel_last };
        let (sizes, usual) = weight.of(x)?;
        let layer = LayerParameters { fixed: self.fix_parameters, rng: self.rng.clone() };
        let rule = self.quantize_w.then(|| MinMaxQuantize {
            ql_min: self.ql_min_w.clone(),
            ql_max: self.ql_max_w.clone(),
            x_min_max: self.w_min_max,
            ste_fine_grained: self.ste_fine_grained_w,
            eps: self.eps,
            qr_min_init: self.qr_min_w_init.or(-2.0),
            qr_max_init: self.qr_max_w_init.or(2.0),
            fix_parameters: self.fix_parameters,
            ..Default::default()
        });
        let rule = rule.map(|rule| InRange { scope: "min_max_quantize_w", rule });
        let w = QuantizedParameter { name: "W", sizes: &sizes, init: &self.w_init, usual }.of(&layer, rule)?;
        let rule = self.quantize_b.then(|| MinMaxQuantize {
            ql_min: self.ql_min_b.clone(),
            ql_max: self.ql_max_b.clone(),
            x_min_max: self.b_min_max,
            ste_fine_grained: self.ste_fine_grained_b,
            eps: self.eps,
            qr_min_init: self.qr_min_b_init.or(-6.0),
            qr_max_init: self.qr_max_b_init.or(6.0),
            fix_parameters: self.fix_parameters,
            ..Default::default()
        });
        let rule = rule.map(|rule| InRange { scope: "min_max_quantize_b", rule });
        let b = QuantizedParameter { name: "b", sizes: &[outmaps], init: &self.b_init, usual: Usual::Constant(0.0) };
        let b = self.with_bias.then(|| b.of(&layer, rule)).transpose()?;
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
