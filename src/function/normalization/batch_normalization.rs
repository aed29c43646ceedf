//! `batch_normalization` by the statistics of the batch, or by running ones.

use super::axes::{axes, check_shape, mask, others, sizes_at};
use super::rule::{NormalizationRule, inverse, mul, sub};
use crate::function;
use crate::function::array::sum_to;
use crate::function::{ArgValue, Call, Described, Function, Grad, Resolved, Shapes, call_of};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::kernel::normalization::{self as kernel, NormalizationLayout};
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Batch normalization (Ioffe and Szegedy, 2015): `y = (x - mean) / sqrt(variance + eps) * gamma + beta`, with a mean
    /// and a variance for each index of `axes`. With batch_stat they are those of x, and every forward pass moves the
    /// running ones: `mean = decay_rate mean + (1 - decay_rate) batch mean`, the variance likewise by the unbiased one.
    BatchNormalization batch_normalization in Normalization, any_device
    inputs {
        x: "N-D array.",
        beta [optional]: "Shift, of x's size at `axes` and size 1 elsewhere; left out if no_bias.",
        gamma [optional]: "Scale, of beta's shape; left out if no_scale.",
        mean [optional]: "Running mean, of beta's shape.",
        variance [optional]: "Running variance, of beta's shape.",
    }
    args {
        axes: Vec<i64> = vec![1], "Axes with statistics of their own; the others are averaged over.";
        decay_rate: f64 = 0.9, "How much of the running statistics each forward pass keeps.";
        eps: f64 = 1e-5, "Added to the variance.";
        batch_stat: bool = true, "Normalize by the statistics of x (training), not by the running ones.";
        no_scale: bool = false, "There is no gamma.";
        no_bias: bool = false, "There is no beta.";
        output_stat: bool = false, "Give mean and biased variance of the batch, too."
    }
    outputs { y: "Array of x's shape.", statistics [variadic]: "With output_stat: mean and variance of the batch, of mean's shape." }
}

impl BatchNormalization {
    /// Numbers of the inputs beta and gamma, and of the first after them.
    fn places(&self) -> (Option<usize>, Option<usize>, usize) {
        let beta = (!self.no_bias).then_some(1);
        let gamma = (!self.no_scale).then_some(1 + !self.no_bias as usize);
        (beta, gamma, 1 + !self.no_bias as usize + !self.no_scale as usize)
    }

    fn check_inputs(&self, n: usize) -> Result<()> {
        let (.., first) = self.places();
        if !self.batch_stat && n != first + 2 {
            return Err(Error::arg("batch_stat", "mean and variance, which are needed without batch_stat")
                .actual(format!("{n} inputs")));
        }
        if n != first && n != first + 2 {
            let want =
                format!("{first} or {} inputs with no_scale={} and no_bias={}", first + 2, self.no_scale, self.no_bias);
            return Err(Error::new(ErrorKind::Type, want).actual(n));
        }
        if self.output_stat && !self.batch_stat {
            return Err(Error::arg("output_stat", "batch_stat=True, since only a batch has statistics").actual("False"));
        }
        Ok(())
    }

    /// For functions that are this one without running statistics.
    pub(super) fn check_inputs_alone(&self, n: usize) -> Result<()> {
        let (.., want) = self.places();
        if n == want {
            return Ok(());
        }
        let want = format!("{want} inputs with no_scale={} and no_bias={}", self.no_scale, self.no_bias);
        Err(Error::new(ErrorKind::Type, want).actual(n))
    }

    pub(super) fn resolve_as(&self, x: &[Shape], names: [&str; 2]) -> Result<Resolved> {
        self.kernel(x, names).map(|(shapes, call)| Resolved::new(shapes, call))
    }

    /// What the function does; the names of the argument with the axes and of the first input, for messages.
    pub(crate) fn kernel(&self, x: &[Shape], [name, input]: [&str; 2]) -> Result<(Shapes, kernel::BatchNormalization)> {
        let axes = axes(name, &self.axes, &x[0])?;
        self.check_inputs(x.len())?;
        let kept = mask(&x[0], &axes);
        let statistic = sizes_at(&x[0], &kept, true);
        self.check_shapes(x, &statistic)?;
        let layout = NormalizationLayout::of_channels(&x[0], &kept);
        if self.batch_stat && layout.count() == 0 {
            return Err(Error::shape(input, "at least one element for each mean").actual(&x[0]));
        }
        let shapes = match self.output_stat {
            true => smallvec![x[0].clone(), statistic.clone(), statistic],
            false => smallvec![x[0].clone()],
        };
        let (beta, gamma, first) = self.places();
        let call = kernel::BatchNormalization {
            axes,
            layout,
            size: x[0].size(),
            beta,
            gamma,
            running: (x.len() > first).then_some(first),
            own: self.batch_stat,
            eps: self.eps,
            decay: self.decay_rate,
        };
        Ok((shapes, call))
    }

    /// `arguments` as the function uses them over these axes.
    pub(crate) fn used_over(
        &self,
        arguments: Vec<(&'static str, ArgValue)>,
        axes: &[usize],
    ) -> Vec<(&'static str, ArgValue)> {
        let counted = |(name, v)| match name {
            "axes" => (name, ArgValue::Ints(axes.iter().map(|&a| a as i64).collect())),
            _ => (name, v),
        };
        arguments.into_iter().filter(|(name, _)| *name != "output_stat").map(counted).collect()
    }

    /// The gradients; `rule` says what normalizes x by the statistics of batches.
    pub(crate) fn grad_over(
        &self,
        g: &Grad,
        axes: &[usize],
        rule: impl FnOnce(&Variable, Vec<i64>, f64) -> Result<NormalizationRule>,
    ) -> Result<Vec<Option<Variable>>> {
        let (beta, gamma, first) = self.places();
        let (x, gy) = (&g.x[0], &g.gy[0]);
        let scaled = match gamma {
            Some(i) => mul(gy, &g.x[i])?,
            None => gy.clone(),
        };
        let mut grads: Vec<Option<Variable>> = vec![None; g.x.len()];
        let norm = if self.batch_stat {
            let reduced = others(&x.shape(), axes);
            let normal = rule(x, reduced, self.eps)?;
            let statistics = self.output_stat.then(|| (&g.gy[1], &g.gy[2]));
            grads[0] = g.want[0].then(|| normal.gradient(&scaled, statistics)).transpose()?;
            normal.norm
        } else {
            let inverse = inverse(&g.x[first + 1], self.eps)?;
            grads[0] = g.want[0].then(|| mul(&scaled, &inverse)).transpose()?;
            mul(&sub(x, &g.x[first])?, &inverse)?
        };
        if let Some(i) = beta.filter(|&i| g.want[i]) {
            grads[i] = Some(sum_to(gy, &g.x[i].shape())?);
        }
        if let Some(i) = gamma.filter(|&i| g.want[i]) {
            grads[i] = Some(sum_to(&mul(gy, &norm)?, &g.x[i].shape())?);
        }
        Ok(grads)
    }

    fn check_shapes(&self, x: &[Shape], statistic: &Shape) -> Result<()> {
        let (beta, gamma, first) = self.places();
        let named = [(beta, "beta"), (gamma, "gamma"), (Some(first), "mean"), (Some(first + 1), "variance")];
        for (i, name) in named {
            if let Some(s) = i.and_then(|i| x.get(i)) {
                check_shape(name, s, statistic)?;
            }
        }
        Ok(())
    }
}

impl Function for BatchNormalization {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        self.resolve_as(x, ["axes", "x"])
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        self.used_over(self.arguments(), &call_of::<kernel::BatchNormalization>(call).axes)
    }

    fn has_state(&self) -> bool {
        self.batch_stat // else it only reads the running statistics
    }

    fn updates_input(&self, i: usize) -> bool {
        self.batch_stat && i >= self.places().2
    }

    fn input_name(&self, i: usize) -> &'static str {
        let (beta, gamma, mean) = self.places();
        match i {
            0 => "x",
            i if Some(i) == beta => "beta",
            i if Some(i) == gamma => "gamma",
            i if i == mean => "mean",
            _ => "variance",
        }
    }

    fn differentiable(&self, i: usize) -> bool {
        i < self.places().2
    }

    fn widens_grad(&self) -> bool {
        true
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        self.grad_over(g, &g.call::<kernel::BatchNormalization>().axes, NormalizationRule::new)
    }
}
