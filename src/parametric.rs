//! Functions with parameters of their own: layers that make, name and find their weights in the current parameter scope.
//!
//! The first argument names the layer: `affine("fc", ..)` keeps its weight in `fc/affine/W`, as NNabla's
//! `PF.affine(.., name="fc")` does; with "" it is `affine/W`.

use crate::Shape;
use crate::functions as f;
use crate::graph::Variable;
use crate::initializer::{Constant, Initializer, Uniform, glorot};
use crate::parameter::{get_parameter_or_create, undoing_scope};
use nnrs_kernels::error::{Error, Result};

/// An initializer that may be given instead of the usual one.
pub type Init<'a> = Option<&'a dyn Initializer>;

/// Options of [`affine`].
#[derive(Clone, Copy)]
pub struct Affine<'a> {
    /// First axis that belongs to the vector; may count from the end.
    pub base_axis: i64,
    /// Initial weights; [`glorot`] if `None`.
    pub w_init: Init<'a>,
    /// Initial bias; zeros if `None`.
    pub b_init: Init<'a>,
    /// Whether the parameters stay as they are in training.
    pub fix_parameters: bool,
    /// Whether there is a bias.
    pub with_bias: bool,
}

impl Default for Affine<'_> {
    fn default() -> Self {
        Affine { base_axis: 1, w_init: None, b_init: None, fix_parameters: false, with_bias: true }
    }
}

/// Options of [`convolution`].
#[derive(Clone)]
pub struct Convolution<'a> {
    /// As in [`f::Convolution`]: padding, stride, dilation, groups, where the channels are.
    pub geometry: f::Convolution,
    /// Initial weights; [`glorot`] if `None`.
    pub w_init: Init<'a>,
    /// Initial bias; zeros if `None`.
    pub b_init: Init<'a>,
    /// Whether the parameters stay as they are in training.
    pub fix_parameters: bool,
    /// Whether there is a bias.
    pub with_bias: bool,
}

impl Default for Convolution<'_> {
    fn default() -> Self {
        let geometry = f::Convolution::default();
        Convolution { geometry, w_init: None, b_init: None, fix_parameters: false, with_bias: true }
    }
}

impl Convolution<'_> {
    /// With the same padding on all spatial axes.
    pub fn padded(pad: &[i64]) -> Self {
        let geometry = f::Convolution { pad: Some(pad.to_vec()), ..Default::default() };
        Convolution { geometry, ..Default::default() }
    }
}

/// Options of [`batch_normalization`].
#[derive(Clone, Default)]
pub struct BatchNormalization {
    /// As in [`f::BatchNormalization`]: axes, decay_rate, eps, batch_stat, no_scale, no_bias.
    pub rule: f::BatchNormalization,
    /// Whether the parameters stay as they are in training.
    pub fix_parameters: bool,
}

/// Options of [`layer_normalization`].
#[derive(Clone, Default)]
pub struct LayerNormalization {
    /// As in [`f::LayerNormalization`]: batch_axis, eps, no_scale, no_bias.
    pub rule: f::LayerNormalization,
    /// Whether the parameters stay as they are in training.
    pub fix_parameters: bool,
}

/// Options of [`embed`].
#[derive(Clone, Copy, Default)]
pub struct Embed<'a> {
    /// Initial table; uniform of variance 1 if `None`.
    pub initializer: Init<'a>,
    /// Whether the parameters stay as they are in training.
    pub fix_parameters: bool,
}

fn parameter(name: &str, shape: &[usize], init: &dyn Initializer, fixed: bool) -> Result<Variable> {
    let v = get_parameter_or_create(name, shape, init, true)?;
    Ok(if fixed { v.unlinked_with(Some(false)) } else { v })
}

fn bias(shape: &[usize], init: Init, with_bias: bool, fixed: bool) -> Result<Option<Variable>> {
    let init = init.unwrap_or(&Constant(0.0));
    with_bias.then(|| parameter("b", shape, init, fixed)).transpose()
}

/// Calls `function` in the scope of a layer's parameters; its errors say which function it is, and of what.
fn in_scope<R>(function: &str, scope: [&str; 2], x: &Variable, call: impl FnOnce() -> Result<R>) -> Result<R> {
    let inputs = || format!("x {} {}", x.shape(), x.raw_data().dtype());
    undoing_scope(&scope.join("/"), call).map_err(|e| e.function(function).inputs(inputs()))
}

/// Fully connected layer, `y = x W + b`, with `n_outmaps` outputs: the axes of `x` from `base_axis` on become one of that
/// size. Parameters: `affine/W` (inputs, outputs) and `affine/b` (outputs).
///
/// # Errors
/// An axis that `x` does not have; there is a parameter of that name and another shape.
///
/// ```
/// use nnrs::{parameter, parametric as pf, Variable};
/// let y = pf::affine("fc", &Variable::new([8, 3, 5]), 10, pf::Affine::default())?;
/// assert_eq!(y.shape(), [8, 10].into());
/// assert_eq!(parameter::get_parameter("fc/affine/W").unwrap().shape(), [15, 10].into());
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn affine(name: &str, x: &Variable, n_outmaps: usize, o: Affine) -> Result<Variable> {
    in_scope("affine", [name, "affine"], x, || {
        let shape = x.shape();
        let inmaps = shape.size_from(shape.axis(o.base_axis, "base_axis")?);
        let usual = glorot(inmaps, n_outmaps, &[]);
        let w = parameter("W", &[inmaps, n_outmaps], o.w_init.unwrap_or(&usual), o.fix_parameters)?;
        let b = bias(&[n_outmaps], o.b_init, o.with_bias, o.fix_parameters)?;
        f::affine(x, &w, b.as_ref(), f::Affine { base_axis: o.base_axis })
    })
}

/// Convolution with `outmaps` output channels and a window of sizes `kernel`. Parameters: `conv/W` (outputs, channels of a
/// group, kernel..) and `conv/b` (outputs).
///
/// # Errors
/// As [`f::convolution`]; groups that do not divide the channels; there is a parameter of that name and another shape.
///
/// ```
/// use nnrs::{parameter, parametric as pf, Variable};
/// let x = Variable::new([8, 3, 32, 32]);
/// let y = pf::convolution("c1", &x, 16, &[3, 3], pf::Convolution::padded(&[1, 1]))?;
/// assert_eq!(y.shape(), [8, 16, 32, 32].into());
/// parameter::clear_parameters();
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn convolution(name: &str, x: &Variable, outmaps: usize, kernel: &[usize], o: Convolution) -> Result<Variable> {
    in_scope("convolution", [name, "conv"], x, || {
        let (shape, g) = (x.shape(), &o.geometry);
        let axis = if g.channel_last { shape.axis(-1, "x")? } else { shape.axis(g.base_axis, "base_axis")? };
        let channels = shape[axis];
        let depth = depth(channels, outmaps, g.group)?;
        let mut sizes = vec![outmaps, depth];
        sizes.extend(kernel);
        if g.channel_last {
            sizes[1..].rotate_left(1);
        }
        let usual = glorot(channels, outmaps, kernel);
        let w = parameter("W", &sizes, o.w_init.unwrap_or(&usual), o.fix_parameters)?;
        let b = bias(&[outmaps], o.b_init, o.with_bias, o.fix_parameters)?;
        f::convolution(x, &w, b.as_ref(), o.geometry)
    })
}

/// Channels of a group.
fn depth(channels: usize, outmaps: usize, group: i64) -> Result<usize> {
    match usize::try_from(group) {
        Ok(g) if g > 0 && channels.is_multiple_of(g) && outmaps.is_multiple_of(g) => Ok(channels / g),
        _ => Err(Error::arg("group", format!("a divisor of the {channels} input channels and of outmaps {outmaps}"))
            .actual(group)),
    }
}

/// Rows of a table of features, looked up by index: `x` of any shape gives (x.., n_features). Parameter: `embed/W`
/// (n_inputs, n_features).
///
/// # Errors
/// There is a parameter of that name and another shape.
///
/// ```
/// use nnrs::{parametric as pf, Variable};
/// let words = Variable::from_slice(&[3i32, 0, 3, 1], [2, 2].into())?;
/// assert_eq!(pf::embed("e", &words, 10, 4, pf::Embed::default())?.shape(), [2, 2, 4].into());
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn embed(name: &str, x: &Variable, n_inputs: usize, n_features: usize, o: Embed) -> Result<Variable> {
    in_scope("embed", [name, "embed"], x, || {
        let usual = Uniform(-(3f64.sqrt()), 3f64.sqrt());
        let w = parameter("W", &[n_inputs, n_features], o.initializer.unwrap_or(&usual), o.fix_parameters)?;
        f::embed(x, &w)
    })
}

/// Batch normalization: each channel is normalized over all other axes. Keeps running statistics, `bn/mean` and `bn/var`,
/// beside the parameters `bn/beta` and `bn/gamma`.
///
/// # Errors
/// As [`f::batch_normalization`]; there is a parameter of that name and another shape.
///
/// ```
/// use nnrs::{parameter, parametric as pf, Variable};
/// let y = pf::batch_normalization("b", &Variable::new([8, 3, 4, 4]), pf::BatchNormalization::default())?;
/// assert_eq!((y.shape(), parameter::get_parameters().len()), ([8, 3, 4, 4].into(), 2));
/// assert_eq!(parameter::get_all_parameters().len(), 4);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn batch_normalization(name: &str, x: &Variable, o: BatchNormalization) -> Result<Variable> {
    in_scope("batch_normalization", [name, "bn"], x, || {
        let shape = sizes(x, &o.rule.axes, "axes", Sizes::AtAxes)?;
        let (beta, gamma) = beta_gamma(&shape, o.rule.no_bias, o.rule.no_scale, o.fix_parameters)?;
        let mean = get_parameter_or_create("mean", shape.clone(), &Constant(0.0), false)?;
        let var = get_parameter_or_create("var", shape, &Constant(1.0), false)?;
        let rule = f::BatchNormalization { output_stat: false, ..o.rule };
        first(f::batch_normalization(x, beta.as_ref(), gamma.as_ref(), Some(&mean), Some(&var), rule)?)
    })
}

/// Layer normalization: each sample is normalized over all its other axes. Parameters: `layer_normalization/beta` and
/// `layer_normalization/gamma`.
///
/// # Errors
/// As [`f::layer_normalization`]; there is a parameter of that name and another shape.
///
/// ```
/// use nnrs::{parametric as pf, Variable};
/// let y = pf::layer_normalization("l", &Variable::new([8, 16]), pf::LayerNormalization::default())?;
/// assert_eq!(y.shape(), [8, 16].into());
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn layer_normalization(name: &str, x: &Variable, o: LayerNormalization) -> Result<Variable> {
    in_scope("layer_normalization", [name, "layer_normalization"], x, || {
        let shape = sizes(x, &o.rule.batch_axis, "batch_axis", Sizes::Elsewhere)?;
        let (beta, gamma) = beta_gamma(&shape, o.rule.no_bias, o.rule.no_scale, o.fix_parameters)?;
        let rule = f::LayerNormalization { output_stat: false, ..o.rule };
        first(f::layer_normalization(x, beta.as_ref(), gamma.as_ref(), rule)?)
    })
}

/// The result itself, without statistics.
fn first(mut y: Vec<Variable>) -> Result<Variable> {
    Ok(y.swap_remove(0))
}

/// Where a normalization's parameters have the input's sizes; they have 1 on the other axes.
#[derive(PartialEq)]
enum Sizes {
    AtAxes,
    Elsewhere,
}

fn sizes(x: &Variable, axes: &[i64], arg: &str, kept: Sizes) -> Result<Shape> {
    let shape = x.shape();
    let axes = axes.iter().map(|&a| shape.axis(a, arg)).collect::<Result<Vec<usize>>>()?;
    let keep = |i: usize| axes.contains(&i) == (kept == Sizes::AtAxes);
    Ok(shape.iter().enumerate().map(|(i, &n)| if keep(i) { n } else { 1 }).collect())
}

/// Shift and scale, each `None` where it is not wanted.
fn beta_gamma(
    shape: &Shape,
    no_bias: bool,
    no_scale: bool,
    fixed: bool,
) -> Result<(Option<Variable>, Option<Variable>)> {
    let beta = (!no_bias).then(|| parameter("beta", shape, &Constant(0.0), fixed)).transpose()?;
    let gamma = (!no_scale).then(|| parameter("gamma", shape, &Constant(1.0), fixed)).transpose()?;
    Ok((beta, gamma))
}
