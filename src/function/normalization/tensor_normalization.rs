//! `tensor_normalization` and `weight_standardization`: batch normalization without running statistics.

use super::batch_normalization::BatchNormalization;
use crate::function;
use crate::function::{ArgValue, Call, Described, Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::Result;
use nnrs_kernels::shape::Shape;

function! {
    /// Normalization with a mean and a variance for each index of `axes`:
    /// `y = (x - mean) / sqrt(variance + eps) * gamma + beta`.
    TensorNormalization tensor_normalization in Normalization, any_device
    inputs {
        x: "N-D array.",
        beta [optional]: "Shift, of x's size at `axes` and size 1 elsewhere; left out if no_bias.",
        gamma [optional]: "Scale, of beta's shape; left out if no_scale.",
    }
    args {
        axes: Vec<i64> = vec![1], "Axes with statistics of their own; the others are averaged over.";
        eps: f64 = 1e-5, "Added to the variance.";
        no_scale: bool = false, "There is no gamma.";
        no_bias: bool = false, "There is no beta.";
        output_stat: bool = false, "Give mean and biased variance, too."
    }
    outputs { y: "Array of x's shape.", statistics [variadic]: "With output_stat: mean and variance, of x's size at axes and size 1 elsewhere." }
}

function! {
    /// Weight standardization (Qiao et al., 2019): `y = (w - mean) / sqrt(variance + eps)`, with a mean and a variance for each
    /// output channel.
    WeightStandardization weight_standardization in Normalization, any_device
    inputs { w: "Weight, an N-D array." }
    args {
        channel_axis: i64 = 0, "Axis of the output channels; may count from the end.";
        eps: f64 = 1e-5, "Added to the variance.";
        output_stat: bool = false, "Give mean and biased variance, too."
    }
    outputs { y: "Array of w's shape.", statistics [variadic]: "With output_stat: mean and variance, of w's size at channel_axis and size 1 elsewhere." }
}

/// Both functions are a batch normalization.
macro_rules! by_batch {
    ($name:ident, $names:expr, $as_batch:expr) => {
        impl $name {
            fn as_batch(&self) -> BatchNormalization {
                let make: fn(&$name) -> BatchNormalization = $as_batch;
                make(self)
            }
        }

        impl Function for $name {
            fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
                self.as_batch().check_inputs_alone(x.len())?;
                self.as_batch().resolve_as(x, $names)
            }

            fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
                self.arguments().into_iter().filter(|(name, _)| *name != "output_stat").collect()
            }

            fn input_name(&self, i: usize) -> &'static str {
                if i == 0 { $names[1] } else { self.as_batch().input_name(i) }
            }

            fn widens_grad(&self) -> bool {
                true
            }

            fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
                self.as_batch().grad(g)
            }
        }
    };
}

by_batch!(TensorNormalization, ["axes", "x"], |f| BatchNormalization {
    axes: f.axes.clone(),
    eps: f.eps,
    no_scale: f.no_scale,
    no_bias: f.no_bias,
    output_stat: f.output_stat,
    ..Default::default()
});
by_batch!(WeightStandardization, ["channel_axis", "w"], |f| BatchNormalization {
    axes: vec![f.channel_axis],
    eps: f.eps,
    no_scale: true,
    no_bias: true,
    output_stat: f.output_stat,
    ..Default::default()
});
