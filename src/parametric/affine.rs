//! `affine`: a fully connected layer.

use super::argument_types::{Apply, Init, Rng, Sizes};
use super::declare::parametric;
use super::layer::{LayerParameters, affine_weight};
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::Result;

parametric! {
    /// Affine layer (fully connected layer), `y = x W + b`.
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let y = pf::affine("fc", &Variable::new([8, 3, 5]), 10, pf::Affine::default())?;
    /// assert_eq!(y.shape(), [8, 10].into());
    /// assert_eq!(parameter::get_parameter("fc/affine/W").unwrap().shape(), [15, 10].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    Affine affine in "affine"
    inputs { inp: "Input; its axes from `base_axis` on count as one." }
    required { n_outmaps: Sizes, "Number of outputs, or the shape of them." }
    options {
        base_axis: i64 = 1, "First axis that is not a sample's number; may count from the end.";
        w_init: Init = Init::default(), "Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.";
        b_init: Init = Init::default(), "Initial bias; by default zeros.";
        fix_parameters: bool = false, "Whether weight and bias stay as they are in training.";
        rng: Rng = Rng::default(), "Random generator of the initial weight.";
        with_bias: bool = true, "Whether there is a bias.";
        apply_w: Apply = Apply::default(), "Function applied to the weight before its use.";
        apply_b: Apply = Apply::default(), "Function applied to the bias before its use.";
    }
    parameters {
        "W" "(inmaps, *n_outmaps)": "Weight matrix.";
        "b" "n_outmaps": "Bias.";
    }
    returns "Variable of shape `inp.shape[:base_axis] + n_outmaps`."
    example ">>> affine(Variable((8, 3, 4)), 5, name=\"fc\").shape\n(8, 5)"
}

impl Affine {
    fn build(&self, x: &Variable, Sizes(outmaps): Sizes) -> Result<Vec<Variable>> {
        let (sizes, usual) = affine_weight(x, self.base_axis, &outmaps)?;
        let layer = LayerParameters { fixed: self.fix_parameters, rng: self.rng.clone() };
        let w = layer.weight(&sizes, &self.w_init, usual, &self.apply_w)?;
        let b = layer.bias(&outmaps, &self.b_init, &self.apply_b, self.with_bias)?;
        Ok(vec![f::affine(x, &w, b.as_ref(), f::Affine { base_axis: self.base_axis })?])
    }
}
