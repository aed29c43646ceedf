//! `layer_normalization`: each sample by its own statistics.

use super::axes::{axes, check_shape, mask, others, sizes_at};
use super::rule::{NormalizationRule, mul};
use crate::function;
use crate::function::array::sum_to;
use crate::function::{ArgValue, Call, Described, Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::kernel::normalization::{self as kernel, NormalizationLayout};
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Layer normalization (Ba et al., 2016): `y = (x - mean) / sqrt(variance + eps) * gamma + beta`, with mean and
    /// variance over all axes but the batch axes.
    LayerNormalization layer_normalization in Normalization, any_device
    inputs {
        x: "N-D array.",
        beta [optional]: "Shift, of x's size but 1 at the batch axes; left out if no_bias.",
        gamma [optional]: "Scale, of beta's shape; left out if no_scale.",
    }
    args {
        batch_axis: Vec<i64> = vec![0], "Axes that number the samples; they may count from the end.";
        eps: f64 = 1e-5, "Added to the variance.";
        no_scale: bool = false, "There is no gamma.";
        no_bias: bool = false, "There is no beta.";
        output_stat: bool = false, "Give mean and biased variance, too."
    }
    outputs { y: "Array of x's shape.", statistics [variadic]: "With output_stat: mean and variance of the samples, of size 1 beside the batch axes." }
}

impl LayerNormalization {
    /// Numbers of the inputs beta and gamma.
    fn places(&self) -> (Option<usize>, Option<usize>) {
        ((!self.no_bias).then_some(1), (!self.no_scale).then_some(1 + !self.no_bias as usize))
    }
}

impl Function for LayerNormalization {
    fn input_name(&self, i: usize) -> &'static str {
        match i {
            0 => "x",
            i if Some(i) == self.places().0 => "beta",
            _ => "gamma",
        }
    }

    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let axes = axes("batch_axis", &self.batch_axis, &x[0])?;
        let batch = mask(&x[0], &axes);
        let (beta, gamma) = self.places();
        let want = 1 + beta.is_some() as usize + gamma.is_some() as usize;
        if x.len() != want {
            let want = format!("{want} inputs with no_scale={} and no_bias={}", self.no_scale, self.no_bias);
            return Err(Error::new(ErrorKind::Type, want).actual(x.len()));
        }
        for (i, name) in [(beta, "beta"), (gamma, "gamma")] {
            if let Some(i) = i {
                check_shape(name, &x[i], &sizes_at(&x[0], &batch, false))?;
            }
        }
        let statistic = sizes_at(&x[0], &batch, true);
        let shapes = match self.output_stat {
            true => smallvec![x[0].clone(), statistic.clone(), statistic],
            false => smallvec![x[0].clone()],
        };
        let (layout, size) = (NormalizationLayout::of_rows(&x[0], &batch), x[0].size());
        let call = kernel::LayerNormalization { axes, layout, size, beta, gamma, eps: self.eps };
        Ok(Resolved::new(shapes, call))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        self.arguments().into_iter().filter(|(name, _)| *name != "output_stat").collect()
    }

    fn widens_grad(&self) -> bool {
        true
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (beta, gamma) = self.places();
        let (x, gy) = (&g.x[0], &g.gy[0]);
        let reduced = others(&x.shape(), &g.call::<kernel::LayerNormalization>().axes);
        let normal = NormalizationRule::new(x, reduced, self.eps)?;
        let scaled = match gamma {
            Some(i) => mul(gy, &g.x[i])?,
            None => gy.clone(),
        };
        let statistics = self.output_stat.then(|| (&g.gy[1], &g.gy[2]));
        let mut grads: Vec<Option<Variable>> = vec![None; g.x.len()];
        grads[0] = g.want[0].then(|| normal.gradient(&scaled, statistics)).transpose()?;
        if let Some(i) = beta.filter(|&i| g.want[i]) {
            grads[i] = Some(sum_to(gy, &g.x[i].shape())?);
        }
        if let Some(i) = gamma.filter(|&i| g.want[i]) {
            grads[i] = Some(sum_to(&mul(gy, &normal.norm)?, &g.x[i].shape())?);
        }
        Ok(grads)
    }
}
