//! `inq_affine` and `inq_convolution`: layers whose weights become powers of two by and by.

use super::argument_types::{Init, Rng, Size, Sizes};
use super::declare::parametric;
use super::layer::{ConvolutionWeight, LayerParameters, affine_weight};
use crate::functions as f;
use crate::graph::Variable;
use crate::initializer::Usual;
use nnrs_kernels::error::Result;

parametric! {
    /// An affine layer whose weights become powers of two by and by (INQ, Zhou et al., 2017).
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let y = pf::inq_affine("fc", &Variable::new([8, 3, 5]), 10, pf::INQAffine::default())?;
    /// assert_eq!(y.shape(), [8, 10].into());
    /// assert!(parameter::get_parameter("fc/inq_affine/I").is_some());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    INQAffine inq_affine in "inq_affine"
    inputs { inp: "Input; its axes from `base_axis` on count as one." }
    required { n_outmaps: Sizes, "Number of outputs, or the shape of them." }
    options {
        base_axis: i64 = 1, "First axis that is not a sample's number; may count from the end.";
        num_bits: i64 = 4, "Bits of a weight, 2 or more: one for the sign, one for zero.";
        inq_iterations: Vec<i64> = vec![], "Numbers of the forward passes, from 0, that fix half of the weights; the last one fixes all.";
        selection_algorithm: String = "random".to_string(), "Which half is fixed: 'largest_abs' or 'random'.";
        seed: i64 = -1, "Seed of the random choice; -1: the global random stream.";
        w_init: Init = Init::default(), "Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.";
        i_init: Init = Init::default(), "Initial indicators; by default zeros: no weight is fixed.";
        b_init: Init = Init::default(), "Initial bias; by default zeros.";
        fix_parameters: bool = false, "Whether weight and bias stay as they are in training.";
        rng: Rng = Rng::default(), "Random generator of the initial weight.";
        with_bias: bool = true, "Whether there is a bias.";
    }
    parameters {
        "W" "(inmaps, *n_outmaps)": "Weight matrix.";
        "I" "(inmaps, *n_outmaps)", statistics: "1 where the weight is fixed, else 0.";
        "b" "n_outmaps": "Bias.";
    }
    returns "Variable of shape `inp.shape[:base_axis] + n_outmaps`."
    example ">>> inq_affine(Variable((8, 3, 4)), 5).shape\n(8, 5)"
}

impl INQAffine {
    fn build(&self, x: &Variable, Sizes(outmaps): Sizes) -> Result<Vec<Variable>> {
        let (sizes, usual) = affine_weight(x, self.base_axis, &outmaps)?;
        let layer = LayerParameters { fixed: self.fix_parameters, rng: self.rng.clone() };
        let w = layer.parameter("W", &sizes, &self.w_init, usual)?;
        let i = layer.untrained("I", &sizes, &self.i_init, Usual::Constant(0.0))?;
        let b =
            self.with_bias.then(|| layer.parameter("b", &outmaps, &self.b_init, Usual::Constant(0.0))).transpose()?;
        let rule = f::INQAffine {
            base_axis: self.base_axis,
            num_bits: self.num_bits,
            inq_iterations: self.inq_iterations.clone().into(),
            selection_algorithm: self.selection_algorithm.clone(),
            seed: self.seed.into(),
        };
        Ok(vec![f::inq_affine(x, &w, &i, b.as_ref(), rule)?])
    }
}

parametric! {
    /// A convolution whose weights become powers of two by and by (INQ, Zhou et al., 2017).
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let y = pf::inq_convolution("c1", &Variable::new([8, 3, 32, 32]), 16, [3, 3], pf::INQConvolution::default())?;
    /// assert_eq!(y.shape(), [8, 16, 30, 30].into());
    /// assert!(parameter::get_parameter("c1/inq_conv/I").is_some());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    INQConvolution inq_convolution in "inq_conv"
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
        num_bits: i64 = 4, "Bits of a weight, 2 or more: one for the sign, one for zero.";
        inq_iterations: Vec<i64> = vec![], "Numbers of the forward passes, from 0, that fix half of the weights; the last one fixes all.";
        selection_algorithm: String = "random".to_string(), "Which half is fixed: 'largest_abs' or 'random'.";
        seed: i64 = -1, "Seed of the random choice; -1: the global random stream.";
        w_init: Init = Init::default(), "Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.";
        i_init: Init = Init::default(), "Initial indicators; by default zeros: no weight is fixed.";
        b_init: Init = Init::default(), "Initial bias; by default zeros.";
        base_axis: i64 = 1, "First axis that is not a sample's number.";
        fix_parameters: bool = false, "Whether weight and bias stay as they are in training.";
        rng: Rng = Rng::default(), "Random generator of the initial weight.";
        with_bias: bool = true, "Whether there is a bias.";
    }
    parameters {
        "W" "(outmaps, inmaps // group, *kernel)": "Filters.";
        "I" "(outmaps, inmaps // group, *kernel)", statistics: "1 where the weight is fixed, else 0.";
        "b" "(outmaps,)": "Bias.";
    }
    returns "Variable of shape (samples..., outmaps, *sizes)."
    example ">>> inq_convolution(Variable((8, 3, 32, 32)), 16, (3, 3), pad=(1, 1)).shape\n(8, 16, 32, 32)"
}

impl INQConvolution {
    fn build(&self, x: &Variable, Size(outmaps): Size, Sizes(kernel): Sizes) -> Result<Vec<Variable>> {
        let (group, base_axis) = (self.group, self.base_axis);
        let weight = ConvolutionWeight { outmaps, kernel: &kernel, group, base_axis, channel_last: false };
        let (sizes, usual) = weight.of(x)?;
        let layer = LayerParameters { fixed: self.fix_parameters, rng: self.rng.clone() };
        let w = layer.parameter("W", &sizes, &self.w_init, usual)?;
        let i = layer.untrained("I", &sizes, &self.i_init, Usual::Constant(0.0))?;
        let b =
            self.with_bias.then(|| layer.parameter("b", &[outmaps], &self.b_init, Usual::Constant(0.0))).transpose()?;
        let rule = f::INQConvolution {
            base_axis: self.base_axis,
            pad: self.pad.clone(),
            stride: self.stride.clone(),
            dilation: self.dilation.clone(),
            group: self.group,
            num_bits: self.num_bits,
            inq_iterations: self.inq_iterations.clone().into(),
            selection_algorithm: self.selection_algorithm.clone(),
            seed: self.seed.into(),
        };
        Ok(vec![f::inq_convolution(x, &w, &i, b.as_ref(), rule)?])
    }
}
