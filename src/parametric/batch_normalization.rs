//! `batch_normalization`, which keeps running statistics, and `fused_batch_normalization`, with a sum and an activation.

use super::argument_types::Inits;
use super::declare::parametric;
use super::layer::{LayerParameters, ParameterAxes, sizes_at};
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};

parametric! {
    /// Batch normalization: each channel is normalized over all other axes (Ioffe and Szegedy, 2015),
    /// `y = (x - mean) / sqrt(variance + eps) * gamma + beta`.
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let y = pf::batch_normalization("b", &Variable::new([8, 3, 4, 4]), pf::BatchNormalization::default())?;
    /// assert_eq!((y[0].shape(), parameter::get_parameters().len()), ([8, 3, 4, 4].into(), 2));
    /// assert_eq!(parameter::get_all_parameters().len(), 4);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    BatchNormalization batch_normalization in "bn", outputs several
    inputs { inp: "Input." }
    required {}
    options {
        axes: Vec<i64> = vec![1], "Axes that keep statistics of their own (the channels).";
        decay_rate: f64 = 0.9, "How much of the running statistics each step keeps.";
        eps: f64 = 1e-5, "Added to the variance.";
        batch_stat: bool = true, "Use this batch's statistics (training), else the running ones.";
        output_stat: bool = false, "Return mean and variance as well.";
        fix_parameters: bool = false, "Whether bias and scale stay as they are in training.";
        param_init: Inits = Inits::default(), "Initial values by name: 'beta', 'gamma', 'mean', 'var'; by default 0, 1, 0, 1.";
        no_scale: bool = false, "Leave out the scale.";
        no_bias: bool = false, "Leave out the bias.";
    }
    parameters {
        "beta" "<1, but inp's size at axes>": "Bias.";
        "gamma" "<1, but inp's size at axes>": "Scale.";
        "mean" "<1, but inp's size at axes>", statistics: "Running mean.";
        "var" "<1, but inp's size at axes>", statistics: "Running variance.";
    }
    returns "Variable of `inp`'s shape; with `output_stat` also batch mean and variance."
    example ">>> batch_normalization(Variable((8, 3, 4, 4))).shape\n(8, 3, 4, 4)"
}

parametric! {
    /// Batch normalization, the sum with another array, and an activation: `relu(batch_normalization(inp) + z)`.
    ///
    /// ```
    /// use nnrs::{parametric as pf, Variable};
    /// let x = Variable::new([8, 3, 4, 4]);
    /// let options = pf::FusedBatchNormalization { z: Some(x.clone()), ..Default::default() };
    /// assert_eq!(pf::fused_batch_normalization("b", &x, options)?[0].shape(), [8, 3, 4, 4].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    FusedBatchNormalization fused_batch_normalization in "bn", outputs several
    inputs { inp: "Input." }
    required {}
    options {
        z: Option<Variable> = None, "What is added, of the input's shape, or None.";
        axes: Vec<i64> = vec![1], "Axes that keep statistics of their own (the channels).";
        decay_rate: f64 = 0.9, "How much of the running statistics each step keeps.";
        eps: f64 = 1e-5, "Added to the variance.";
        batch_stat: bool = true, "Use this batch's statistics (training), else the running ones.";
        nonlinearity: String = "relu".to_string(), "The activation: \"relu\".";
        output_stat: bool = false, "Return mean and variance as well.";
        fix_parameters: bool = false, "Whether bias and scale stay as they are in training.";
        param_init: Inits = Inits::default(), "Initial values by name: 'beta', 'gamma', 'mean', 'var'; by default 0, 1, 0, 1.";
        no_scale: bool = false, "Leave out the scale.";
        no_bias: bool = false, "Leave out the bias.";
    }
    parameters {
        "beta" "<1, but inp's size at axes>": "Bias.";
        "gamma" "<1, but inp's size at axes>": "Scale.";
        "mean" "<1, but inp's size at axes>", statistics: "Running mean.";
        "var" "<1, but inp's size at axes>", statistics: "Running variance.";
    }
    returns "Variable of `inp`'s shape; with `output_stat` also batch mean and variance."
    example ">>> x = Variable((8, 3, 4, 4))\n>>> fused_batch_normalization(x, x).shape\n(8, 3, 4, 4)"
}

impl BatchNormalization {
    fn build(&self, x: &Variable) -> Result<Vec<Variable>> {
        let shape = sizes_at(x, &self.axes, "axes", ParameterAxes::AtAxes)?;
        let layer = LayerParameters { fixed: self.fix_parameters, ..Default::default() };
        let (beta, gamma) = layer.beta_gamma(&shape, &self.param_init, self.no_bias, self.no_scale)?;
        let mean = layer.statistic("mean", &shape, &self.param_init, 0.0)?;
        let var = layer.statistic("var", &shape, &self.param_init, 1.0)?;
        let rule = f::BatchNormalization {
            axes: self.axes.clone(),
            decay_rate: self.decay_rate,
            eps: self.eps,
            batch_stat: self.batch_stat,
            no_scale: self.no_scale,
            no_bias: self.no_bias,
            output_stat: self.output_stat,
        };
        f::batch_normalization(x, beta.as_ref(), gamma.as_ref(), Some(&mean), Some(&var), rule)
    }
}

impl FusedBatchNormalization {
    fn build(&self, x: &Variable) -> Result<Vec<Variable>> {
        if self.nonlinearity != "relu" {
            return Err(Error::arg("nonlinearity", "'relu'").actual(format!("'{}'", self.nonlinearity)));
        }
        if let Some(z) = self.z.as_ref().filter(|z| z.shape() != x.shape()) {
            return Err(Error::shape("z", format!("the input's shape {}", x.shape())).actual(z.shape()));
        }
        let mut made = self.normalization().build(x)?;
        let sum = self.z.as_ref().map_or_else(|| Ok(made[0].clone()), |z| &made[0] + z)?;
        made[0] = f::relu(&sum, f::ReLU::default())?;
        Ok(made)
    }

    fn normalization(&self) -> BatchNormalization {
        BatchNormalization {
            axes: self.axes.clone(),
            decay_rate: self.decay_rate,
            eps: self.eps,
            batch_stat: self.batch_stat,
            output_stat: self.output_stat,
            fix_parameters: self.fix_parameters,
            param_init: self.param_init.clone(),
            no_scale: self.no_scale,
            no_bias: self.no_bias,
        }
    }
}
