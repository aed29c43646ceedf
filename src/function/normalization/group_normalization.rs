//! `group_normalization` and `instance_normalization`: groups of channels of a sample by their own statistics.

use super::axes::{axes, check_shape, mask, sizes_at};
use super::rule::{NormalizationRule, mul};
use crate::function::array::sum_to;
use crate::function::{ArgValue, Call, Described, Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::kernel::normalization::{self as kernel, NormalizationLayout};
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Group normalization (Wu and He, 2018): `y = (x - mean) / sqrt(variance + eps) * gamma + beta`, with a mean and a
    /// variance for each group of neighbouring channels of each sample.
    GroupNormalization group_normalization in Normalization, any_device
    inputs {
        x: "N-D array.",
        beta [optional]: "Shift, of x's size at the channel axis and size 1 elsewhere; left out if no_bias.",
        gamma [optional]: "Scale, of beta's shape; left out if no_scale.",
    }
    args {
        num_groups: i64 = 1, "Number of groups, a divisor of the number of channels.";
        channel_axis: i64 = 1, "Axis of the channels; may count from the end.";
        batch_axis: Vec<i64> = vec![0], "Axes that number the samples; they may count from the end.";
        eps: f64 = 1e-5, "Added to the variance.";
        no_scale: bool = false, "There is no gamma.";
        no_bias: bool = false, "There is no beta.";
        output_stat: bool = false, "Give mean and biased variance, too."
    }
    outputs {
        y: "Array of x's shape.",
        statistics [variadic]: "With output_stat: mean and variance of the groups, of x's shape with the channel axis cut into (num_groups, 1) and size 1 at all axes that are not batch axes.",
    }
}

function! {
    /// Instance normalization (Ulyanov et al., 2016): `y = (x - mean) / sqrt(variance + eps) * gamma + beta`, with a mean and a
    /// variance for each channel of each sample.
    InstanceNormalization instance_normalization in Normalization, any_device
    inputs {
        x: "N-D array.",
        beta [optional]: "Shift, of x's size at the channel axis, and at the batch axes x's size or 1, and size 1 elsewhere; left out if no_bias.",
        gamma [optional]: "Scale, of beta's shape; left out if no_scale.",
    }
    args {
        channel_axis: i64 = 1, "Axis of the channels; may count from the end.";
        batch_axis: Vec<i64> = vec![0], "Axes that number the samples; they may count from the end.";
        eps: f64 = 1e-5, "Added to the variance.";
        no_scale: bool = false, "There is no gamma.";
        no_bias: bool = false, "There is no beta.";
        output_stat: bool = false, "Give mean and biased variance, too."
    }
    outputs {
        y: "Array of x's shape.",
        statistics [variadic]: "With output_stat: mean and variance, of x's size at batch and channel axes and size 1 elsewhere.",
    }
}

/// What both functions say.
struct GroupArguments<'a> {
    /// `None`: each channel is a group.
    groups: Option<i64>,
    channel_axis: i64,
    batch_axis: &'a [i64],
    eps: f64,
    no_scale: bool,
    no_bias: bool,
    output_stat: bool,
}

/// The arguments of either function.
macro_rules! group_arguments {
    ($f:expr, $groups:expr) => {
        GroupArguments {
            groups: $groups,
            channel_axis: $f.channel_axis,
            batch_axis: &$f.batch_axis,
            eps: $f.eps,
            no_scale: $f.no_scale,
            no_bias: $f.no_bias,
            output_stat: $f.output_stat,
        }
    };
}

impl GroupArguments<'_> {
    /// Numbers of the inputs beta and gamma.
    fn places(&self) -> (Option<usize>, Option<usize>) {
        ((!self.no_bias).then_some(1), (!self.no_scale).then_some(1 + !self.no_bias as usize))
    }

    fn input_name(&self, i: usize) -> &'static str {
        match i {
            0 => "x",
            i if Some(i) == self.places().0 => "beta",
            _ => "gamma",
        }
    }

    fn groups(&self, channels: usize) -> Result<usize> {
        let Some(groups) = self.groups else { return Ok(channels.max(1)) };
        match usize::try_from(groups) {
            Ok(g) if g > 0 && channels.is_multiple_of(g) => Ok(g),
            _ => Err(Error::arg("num_groups", format!("a divisor of the {channels} channels")).actual(groups)),
        }
    }

    /// Checks beta and gamma, and says whether they belong to samples.
    fn check_scales(&self, x: &[Shape], kept: &[bool], by_channel: &Shape) -> Result<bool> {
        let (beta, gamma) = self.places();
        let by_sample = sizes_at(&x[0], kept, true);
        let mut named = [(beta, "beta"), (gamma, "gamma")].into_iter().filter_map(|(i, name)| Some((&x[i?], name)));
        let given = named.clone().next().map(|(s, _)| s);
        if self.groups.is_none() && given.is_some_and(|s| *s == by_sample && by_sample != *by_channel) {
            named.try_for_each(|(s, name)| check_shape(name, s, &by_sample))?;
            return Ok(true);
        }
        named.try_for_each(|(s, name)| check_shape(name, s, by_channel))?;
        Ok(false)
    }

    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let channel = x[0].axis(self.channel_axis, "channel_axis")?;
        let batch_axes = axes("batch_axis", self.batch_axis, &x[0])?;
        if batch_axes.contains(&channel) {
            let want = format!("axes other than channel_axis={}", self.channel_axis);
            return Err(Error::arg("batch_axis", want).actual(format!("{:?}", self.batch_axis)));
        }
        let (beta, gamma) = self.places();
        let want = 1 + beta.is_some() as usize + gamma.is_some() as usize;
        if x.len() != want {
            let want = format!("{want} inputs with no_scale={} and no_bias={}", self.no_scale, self.no_bias);
            return Err(Error::new(ErrorKind::Type, want).actual(x.len()));
        }
        let groups = self.groups(x[0][channel])?;
        let batch = mask(&x[0], &batch_axes);
        let kept: Vec<bool> = (0..x[0].ndim()).map(|i| batch[i] || i == channel).collect();
        let by_sample = self.check_scales(x, &kept, &sizes_at(&x[0], &mask(&x[0], &[channel]), true))?;
        let (layout, sizes) = NormalizationLayout::of_groups(&x[0], &batch, channel, groups, by_sample);
        let statistic = self.statistic(&sizes_at(&x[0], &kept, true), channel, groups);
        let shapes = match self.output_stat {
            true => smallvec![x[0].clone(), statistic.clone(), statistic],
            false => smallvec![x[0].clone()],
        };
        let size = x[0].size();
        let call = kernel::GroupNormalization {
            batch: batch_axes,
            channel,
            layout,
            groups: sizes,
            size,
            beta,
            gamma,
            eps: self.eps,
        };
        Ok(Resolved::new(shapes, call))
    }

    /// The shape of the statistics.
    fn statistic(&self, kept: &Shape, channel: usize, groups: usize) -> Shape {
        if self.groups.is_none() {
            return kept.clone();
        }
        kept[..channel].iter().copied().chain([groups, 1]).chain(kept[channel + 1..].iter().copied()).collect()
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (beta, gamma) = self.places();
        let (x, gy, call) = (&g.x[0], &g.gy[0], g.call::<kernel::GroupNormalization>());
        let (shape, c) = (x.shape(), call.channel);
        // The channel axis as two: groups, and the channels of one.
        let cut = |v: &Variable| {
            let s = v.shape();
            let (groups, width) = (call.groups.groups, call.groups.width);
            let sizes = s[..c].iter().copied().chain([groups, width]).chain(s[c + 1..].iter().copied());
            f::reshape(v, f::Reshape::to(&sizes.collect()))
        };
        let whole = |v: &Variable| f::reshape(v, f::Reshape::to(&shape));
        let is_batch = |i: usize| call.batch.contains(&(if i > c { i - 1 } else { i }));
        let reduced = (0..=shape.ndim()).filter(|&i| i != c && (i == c + 1 || !is_batch(i))).map(|i| i as i64);
        let normal = NormalizationRule::new(&cut(x)?, reduced.collect(), self.eps)?;
        let scaled = match gamma {
            Some(i) => mul(gy, &g.x[i])?,
            None => gy.clone(),
        };
        let statistics = match self.output_stat {
            true if self.groups.is_none() => Some((cut(&g.gy[1])?, cut(&g.gy[2])?)),
            true => Some((g.gy[1].clone(), g.gy[2].clone())),
            false => None,
        };
        let of_x = || whole(&normal.gradient(&cut(&scaled)?, statistics.as_ref().map(|s| (&s.0, &s.1)))?);
        let mut grads: Vec<Option<Variable>> = vec![None; g.x.len()];
        grads[0] = g.want[0].then(of_x).transpose()?;
        if let Some(i) = beta.filter(|&i| g.want[i]) {
            grads[i] = Some(sum_to(gy, &g.x[i].shape())?);
        }
        if let Some(i) = gamma.filter(|&i| g.want[i]) {
            grads[i] = Some(sum_to(&mul(gy, &whole(&normal.norm)?)?, &g.x[i].shape())?);
        }
        Ok(grads)
    }
}

/// Both functions ask what they say in common.
macro_rules! by_groups {
    ($name:ident, $groups:expr) => {
        impl $name {
            fn all(&self) -> GroupArguments<'_> {
                let groups: fn(&$name) -> Option<i64> = $groups;
                group_arguments!(self, groups(self))
            }
        }

        impl Function for $name {
            fn input_name(&self, i: usize) -> &'static str {
                self.all().input_name(i)
            }

            fn widens_grad(&self) -> bool {
                true
            }

            fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
                self.all().resolve(x)
            }

            fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
                self.arguments().into_iter().filter(|(name, _)| *name != "output_stat").collect()
            }

            fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
                self.all().grad(g)
            }
        }
    };
}

by_groups!(GroupNormalization, |f| Some(f.num_groups));
by_groups!(InstanceNormalization, |_| None);
