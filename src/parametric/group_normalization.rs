//! `group_normalization` and `instance_normalization`.

use super::argument_types::Inits;
use super::declare::parametric;
use super::layer::{LayerParameters, ParameterAxes, sizes_at};
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::Result;

parametric! {
    /// Group normalization: groups of channels of each sample are normalized by themselves (Wu and He, 2018),
    /// `y = (x - mean) / sqrt(variance + eps) * gamma + beta`.
    ///
    /// ```
    /// use nnrs::{parametric as pf, Variable};
    /// let y = pf::group_normalization("g", &Variable::new([8, 6, 4]), 3, pf::GroupNormalization::default())?;
    /// assert_eq!(y[0].shape(), [8, 6, 4].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    GroupNormalization group_normalization in "group_normalization", outputs several
    inputs { inp: "Input." }
    required { num_groups: i64, "Number of groups, a divisor of the number of channels."; }
    options {
        channel_axis: i64 = 1, "Axis of the channels.";
        batch_axis: Vec<i64> = vec![0], "Axis or axes that number the samples.";
        eps: f64 = 1e-5, "Added to the variance.";
        output_stat: bool = false, "Return mean and variance as well.";
        fix_parameters: bool = false, "Whether bias and scale stay as they are in training.";
        param_init: Inits = Inits::default(), "Initial values by name: 'beta', 'gamma'; by default 0 and 1.";
        no_scale: bool = false, "Leave out the scale.";
        no_bias: bool = false, "Leave out the bias.";
    }
    parameters {
        "beta" "<1, but inp's size at channel_axis>": "Bias.";
        "gamma" "<1, but inp's size at channel_axis>": "Scale.";
    }
    returns "Variable of `inp`'s shape; with `output_stat` also mean and variance."
    example ">>> group_normalization(Variable((8, 6, 4)), 3).shape\n(8, 6, 4)"
}

parametric! {
    /// Instance normalization: each channel of each sample is normalized by itself (Ulyanov et al., 2016),
    /// `y = (x - mean) / sqrt(variance + eps) * gamma + beta`.
    ///
    /// ```
    /// use nnrs::{parametric as pf, Variable};
    /// let y = pf::instance_normalization("i", &Variable::new([8, 6, 4]), pf::InstanceNormalization::default())?;
    /// assert_eq!(y[0].shape(), [8, 6, 4].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    InstanceNormalization instance_normalization in "instance_normalization", outputs several
    inputs { inp: "Input." }
    required {}
    options {
        channel_axis: i64 = 1, "Axis of the channels.";
        batch_axis: Vec<i64> = vec![0], "Axis or axes that number the samples.";
        eps: f64 = 1e-5, "Added to the variance.";
        output_stat: bool = false, "Return mean and variance as well.";
        fix_parameters: bool = false, "Whether bias and scale stay as they are in training.";
        param_init: Inits = Inits::default(), "Initial values by name: 'beta', 'gamma'; by default 0 and 1.";
        no_scale: bool = false, "Leave out the scale.";
        no_bias: bool = false, "Leave out the bias.";
    }
    parameters {
        "beta" "<1, but inp's size at channel_axis>": "Bias.";
        "gamma" "<1, but inp's size at channel_axis>": "Scale.";
    }
    returns "Variable of `inp`'s shape; with `output_stat` also mean and variance."
    example ">>> instance_normalization(Variable((8, 6, 4))).shape\n(8, 6, 4)"
}

/// Calls the function of the same name, with an argument of its own or without.
macro_rules! build {
    ($self:ident, $x:ident, $name:ident, $call:path $(, $arg:ident)?) => {{
        let shape = sizes_at($x, &[$self.channel_axis], "channel_axis", ParameterAxes::AtAxes)?;
        let layer = LayerParameters { fixed: $self.fix_parameters, ..Default::default() };
        let (beta, gamma) = layer.beta_gamma(&shape, &$self.param_init, $self.no_bias, $self.no_scale)?;
        let rule = f::$name {
            $($arg,)?
            channel_axis: $self.channel_axis,
            batch_axis: $self.batch_axis.clone(),
            eps: $self.eps,
            no_scale: $self.no_scale,
            no_bias: $self.no_bias,
            output_stat: $self.output_stat,
        };
        $call($x, beta.as_ref(), gamma.as_ref(), rule)
    }};
}

impl GroupNormalization {
    fn build(&self, x: &Variable, num_groups: i64) -> Result<Vec<Variable>> {
        build!(self, x, GroupNormalization, f::group_normalization, num_groups)
    }
}

impl InstanceNormalization {
    fn build(&self, x: &Variable) -> Result<Vec<Variable>> {
        build!(self, x, InstanceNormalization, f::instance_normalization)
    }
}
