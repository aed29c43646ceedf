//! What layers are made of: their scope, their parameters, sizes from arguments.

use super::argument_types::{Apply, Init, Inits, Rng};
use super::declare::LayerDef;
use crate::graph::Variable;
use crate::initializer::{Initializer, Usual};
use crate::parameter::{generator, undoing_scope, use_parameter};
use crate::{NdArray, Shape};
use nnrs_kernels::error::{Error, Result};
use std::sync::Arc;

/// Calls a layer in the scope of its parameters; errors say which layer it is, and of what.
pub(super) fn in_scope<R>(
    layer: &LayerDef,
    name: &str,
    x: &[(&str, &Variable)],
    call: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let shown = |(name, v): &(&str, &Variable)| format!("{name} {} {}", v.shape(), v.raw_data().dtype());
    let inputs = || x.iter().map(shown).collect::<Vec<_>>().join(", ");
    undoing_scope(&format!("{name}/{}", layer.scope), call).map_err(|e| layer.told(e).inputs(inputs()))
}

/// How a layer's trained parameters are made and used.
#[derive(Default)]
pub(super) struct LayerParameters {
    /// They stay as they are in training.
    pub(super) fixed: bool,
    pub(super) rng: Rng,
}

impl LayerParameters {
    /// The initializer of the usual values.
    fn usual(&self, usual: Usual) -> Arc<dyn Initializer> {
        self.rng.0.clone().unwrap_or_else(generator).initializer(usual)
    }

    /// A parameter that is used like a trained one, and may not be one.
    pub(super) fn used_as_trained(
        &self,
        name: &str,
        shape: &[usize],
        init: &Init,
        usual: Usual,
        is_trained: bool,
    ) -> Result<Variable> {
        let init = init.0.clone().unwrap_or_else(|| self.usual(usual));
        use_parameter(name, shape, &*init, is_trained, !self.fixed)
    }

    /// A trained parameter as this call uses it.
    pub(super) fn parameter(&self, name: &str, shape: &[usize], init: &Init, usual: Usual) -> Result<Variable> {
        self.parameter_or(name, shape, init, self.usual(usual))
    }

    /// As [`parameter`](Self::parameter), with another initializer where none is given.
    pub(super) fn parameter_or(
        &self,
        name: &str,
        shape: &[usize],
        init: &Init,
        usual: Arc<dyn Initializer>,
    ) -> Result<Variable> {
        use_parameter(name, shape, &*init.0.clone().unwrap_or(usual), true, !self.fixed)
    }

    /// What a function writes itself.
    pub(super) fn untrained(&self, name: &str, shape: &[usize], init: &Init, usual: Usual) -> Result<Variable> {
        use_parameter(name, shape, &*init.0.clone().unwrap_or_else(|| self.usual(usual)), false, false)
    }

    /// The parameter `W`, changed by `apply`.
    pub(super) fn weight(&self, shape: &[usize], init: &Init, usual: Usual, apply: &Apply) -> Result<Variable> {
        apply.to(self.parameter("W", shape, init, usual)?)
    }

    /// The parameter `b`, changed by `apply`, if there is a bias.
    pub(super) fn bias(
        &self,
        shape: &[usize],
        init: &Init,
        apply: &Apply,
        with_bias: bool,
    ) -> Result<Option<Variable>> {
        let make = || apply.to(self.parameter("b", shape, init, Usual::Constant(0.0))?);
        with_bias.then(make).transpose()
    }

    /// Shift and scale of a normalization, each `None` where it is not wanted.
    pub(super) fn beta_gamma(
        &self,
        shape: &Shape,
        inits: &Inits,
        no_bias: bool,
        no_scale: bool,
    ) -> Result<(Option<Variable>, Option<Variable>)> {
        let make = |name: &str, usual: f64| self.parameter(name, shape, &inits.of(name), Usual::Constant(usual));
        let beta = (!no_bias).then(|| make("beta", 0.0)).transpose()?;
        let gamma = (!no_scale).then(|| make("gamma", 1.0)).transpose()?;
        Ok((beta, gamma))
    }

    /// Running statistics: what a function writes itself.
    pub(super) fn statistic(&self, name: &str, shape: &Shape, inits: &Inits, usual: f64) -> Result<Variable> {
        self.untrained(name, shape, &inits.of(name), Usual::Constant(usual))
    }
}

impl Inits {
    pub(super) fn of(&self, name: &str) -> Init {
        self.0.get(name).cloned().unwrap_or_default()
    }
}

/// A size given as a whole number.
pub(super) fn size(argument: &str, n: i64) -> Result<usize> {
    usize::try_from(n).map_err(|_| Error::arg(argument, "0 or more").actual(n))
}

/// The number of groups of a convolution, which divides its channels.
pub(super) fn groups(group: i64, channels: usize, outmaps: usize) -> Result<usize> {
    match size("group", group)? {
        g if g > 0 && channels.is_multiple_of(g) && outmaps.is_multiple_of(g) => Ok(g),
        _ => Err(Error::arg("group", format!("a divisor of the {channels} input channels and of outmaps={outmaps}"))
            .actual(group)),
    }
}

/// The limits of the uniform distribution that weights usually begin with (Glorot and Bengio, 2010).
pub(super) fn glorot(inmaps: usize, outmaps: usize, kernel: &[usize]) -> Usual {
    let (low, high) = crate::initializer::calc_uniform_lim_glorot(inmaps, outmaps, kernel);
    Usual::Uniform(low, high)
}

/// Numbers of several initializers side by side, each for as many columns as it is given with.
pub(super) fn side_by_side<const N: usize>(
    layer: &LayerParameters,
    parts: [(usize, Usual); N],
) -> Arc<dyn Initializer> {
    Arc::new(SideBySide(parts.map(|(n, usual)| (n, layer.usual(usual))).into()))
}

struct SideBySide(Vec<(usize, Arc<dyn Initializer>)>);

impl Initializer for SideBySide {
    fn make(&self, shape: &Shape) -> Result<NdArray> {
        let Some((_, before)) = shape.split_last() else { return Err(Error::shape("shape", "1 axis or more")) };
        let make = |(n, init): &(usize, Arc<dyn Initializer>)| {
            Ok((*n, init.make(&[before, &[*n]].concat().into())?.to_vec::<f64>()?))
        };
        let parts = self.0.iter().map(make).collect::<Result<Vec<_>>>()?;
        let mut values: Vec<f32> = Vec::with_capacity(shape.size());
        for row in 0..before.iter().product() {
            for (n, part) in &parts {
                values.extend(part[row * n..(row + 1) * n].iter().map(|&v| v as f32));
            }
        }
        NdArray::from_slice(&values, shape.clone())
    }
}

/// Sizes of the weight of an affine layer, and what it usually begins with.
pub(super) fn affine_weight(x: &Variable, base_axis: i64, outmaps: &[usize]) -> Result<(Vec<usize>, Usual)> {
    let shape = x.shape();
    let inmaps = shape.size_from(shape.axis(base_axis, "base_axis")?);
    let usual = glorot(inmaps, outmaps.iter().product(), &[]);
    Ok((std::iter::once(inmaps).chain(outmaps.iter().copied()).collect(), usual))
}

/// What the weight of a convolution follows from.
pub(super) struct ConvolutionWeight<'a> {
    pub(super) outmaps: usize,
    pub(super) kernel: &'a [usize],
    pub(super) group: i64,
    pub(super) base_axis: i64,
    pub(super) channel_last: bool,
}

impl ConvolutionWeight<'_> {
    /// Its sizes, and what it usually begins with.
    pub(super) fn of(&self, x: &Variable) -> Result<(Vec<usize>, Usual)> {
        let &ConvolutionWeight { outmaps, kernel, .. } = self;
        if kernel.contains(&0) {
            return Err(Error::arg("kernel", "sizes of 1 or more").actual(format!("{kernel:?}")));
        }
        let shape = x.shape();
        let base_axis = shape.axis(self.base_axis, "base_axis")?;
        let channels = shape[if self.channel_last { shape.ndim() - 1 } else { base_axis }];
        let depth = channels / groups(self.group, channels, outmaps)?;
        let mut sizes: Vec<usize> = [outmaps, depth].into_iter().chain(kernel.iter().copied()).collect();
        if self.channel_last {
            sizes[1..].rotate_left(1);
        }
        Ok((sizes, glorot(channels, outmaps, kernel)))
    }
}

/// Where a normalization's parameters have the input's sizes; they have 1 on the other axes.
#[derive(PartialEq)]
pub(super) enum ParameterAxes {
    AtAxes,
    Elsewhere,
}

/// The shape of a normalization's parameters.
pub(super) fn sizes_at(x: &Variable, axes: &[i64], argument: &str, kept: ParameterAxes) -> Result<Shape> {
    let shape = x.shape();
    let axes = axes.iter().map(|&a| shape.axis(a, argument)).collect::<Result<Vec<usize>>>()?;
    let keep = |i: usize| axes.contains(&i) == (kept == ParameterAxes::AtAxes);
    Ok(shape.iter().enumerate().map(|(i, &n)| if keep(i) { n } else { 1 }).collect())
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    nnrs_kernels::unit_test!(columns_have_numbers_of_their_own);
    fn columns_have_numbers_of_their_own() {
        let parts = [(2, Usual::Constant(1.0)), (0, Usual::Constant(3.0)), (1, Usual::Constant(2.0))];
        let init = side_by_side(&LayerParameters::default(), parts);
        let made = init.make(&[2, 1, 3].into()).unwrap();
        assert_eq!(
            (made.shape(), made.to_vec::<f32>().unwrap()),
            ([2, 1, 3].into(), vec![1.0, 1.0, 2.0, 1.0, 1.0, 2.0])
        );
        assert!(init.make(&Shape::default()).is_err());
    }
}
