//! `layer_normalization`.

use super::argument_types::Inits;
use super::declare::parametric;
use super::layer::{LayerParameters, ParameterAxes, sizes_at};
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::Result;

parametric! {
    /// Layer normalization: each sample is normalized over all its other axes (Ba et al., 2016),
    /// `y = (x - mean) / sqrt(variance + eps) * gamma + beta`.
    ///
    /// ```
    /// use nnrs::{parametric as pf, Variable};
    /// let y = pf::layer_normalization("l", &Variable::new([8, 16]), pf::LayerNormalization::default())?;
    /// assert_eq!(y[0].shape(), [8, 16].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    LayerNormalization layer_normalization in "layer_normalization", outputs several
    inputs { inp: "Input." }
    required {}
    options {
        batch_axis: Vec<i64> = vec![0], "Axis or axes that number the samples.";
        eps: f64 = 1e-5, "Added to the variance.";
        output_stat: bool = false, "Return mean and variance as well.";
        fix_parameters: bool = false, "Whether bias and scale stay as they are in training.";
        param_init: Inits = Inits::default(), "Initial values by name: 'beta', 'gamma'; by default 0 and 1.";
        no_scale: bool = false, "Leave out the scale.";
        no_bias: bool = false, "Leave out the bias.";
    }
    parameters {
        "beta" "<inp's size, but 1 at batch_axis>": "Bias.";
        "gamma" "<inp's size, but 1 at batch_axis>": "Scale.";
    }
    returns "Variable of `inp`'s shape; with `output_stat` also mean and variance."
    example ">>> layer_normalization(Variable((8, 3, 4))).shape\n(8, 3, 4)"
}

impl LayerNormalization {
    fn build(&self, x: &Variable) -> Result<Vec<Variable>> {
        let shape = sizes_at(x, &self.batch_axis, "batch_axis", ParameterAxes::Elsewhere)?;
        let layer = LayerParameters { fixed: self.fix_parameters, ..Default::default() };
        let (beta, gamma) = layer.beta_gamma(&shape, &self.param_init, self.no_bias, self.no_scale)?;
        let rule = f::LayerNormalization {
            batch_axis: self.batch_axis.clone(),
            eps: self.eps,
            no_scale: self.no_scale,
            no_bias: self.no_bias,
            output_stat: self.output_stat,
        };
        f::layer_normalization(x, beta.as_ref(), gamma.as_ref(), rule)
    }
}
