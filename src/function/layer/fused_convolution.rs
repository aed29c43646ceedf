//! `fused_convolution`: a convolution with what mostly follows it, as a graph: batch normalization, a sum, an activation.

use crate::function::{ArgValue, Args, Function, find};
use crate::functions as f;
use crate::graph::{self, Variable};
use nnrs_kernels::array::NdArray;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use std::sync::Arc;

/// Options of [`fused_convolution`].
#[derive(Clone, Debug)]
pub struct FusedConvolution {
    /// The convolution's arguments. `pad` has a number for each spatial axis, or two for each of the last axes, as
    /// [`pad`](f::pad) takes them.
    pub convolution: f::Convolution,
    /// What images are padded with: "constant", "reflect" or "repeat".
    pub pad_mode: String,
    /// The constant.
    pub constant_value: f64,
    /// Bias of shape (O,), where there is no batch normalization.
    pub bias: Option<Variable>,
    /// Shift, scale, running mean and running variance of the batch normalization, each of O elements at the channels' axis
    /// and size 1 elsewhere.
    pub normalization: Option<[Variable; 4]>,
    /// How much of the running statistics each forward pass keeps.
    pub decay_rate: f64,
    /// Added to the variance.
    pub eps: f64,
    /// Normalize by the statistics of the batch and move the running ones; if not, by the running ones.
    pub batch_stat: bool,
    /// What is added before the activation, of y's shape.
    pub z: Option<Variable>,
    /// The activation: "identity" or "", "relu", "sigmoid", "tanh", "leaky_relu", "elu" or "relu6".
    pub nonlinearity: String,
    /// For "leaky_relu" and "elu" alpha, else nothing.
    pub nonlinearity_args: Vec<f64>,
}

impl Default for FusedConvolution {
    fn default() -> Self {
        FusedConvolution {
            convolution: f::Convolution::default(),
            pad_mode: "constant".into(),
            constant_value: 0.0,
            bias: None,
            normalization: None,
            decay_rate: 0.9,
            eps: 1e-5,
            batch_stat: true,
            z: None,
            nonlinearity: "relu".into(),
            nonlinearity_args: Vec::new(),
        }
    }
}

/// Padding, convolution, batch normalization, sum and activation: `y = relu(batch_normalization(x * weight) + z)`.
///
/// `x` and `weight` are those of [`convolution`](f::convolution).
///
/// # Errors
/// Shapes that do not fit, a bias beside a batch normalization, another activation or mode.
///
/// ```
/// use nnrs::{functions as f, Variable};
/// let (x, w) = (Variable::new([8, 3, 5, 5]), Variable::new([4, 3, 3, 3]));
/// let convolution = f::Convolution { pad: Some(vec![1, 1]), ..Default::default() };
/// let options = f::FusedConvolution { convolution, bias: Some(Variable::new([4])), ..Default::default() };
/// assert_eq!(f::fused_convolution(&x, &w, options)?.shape(), [8, 4, 5, 5].into());
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn fused_convolution(x: &Variable, weight: &Variable, options: FusedConvolution) -> Result<Variable> {
    fused_convolution_into(x, weight, options, None)
}

/// As [`fused_convolution`], with an array for y's data.
pub(crate) fn fused_convolution_into(
    x: &Variable,
    weight: &Variable,
    options: FusedConvolution,
    into: Option<NdArray>,
) -> Result<Variable> {
    let of_parts = ["axes", "alpha", "pad_width"];
    let made = options.made(x, weight, into);
    made.map_err(|e| e.part_of("fused_convolution", |argument| !of_parts.contains(&argument)))
}

impl FusedConvolution {
    fn made(self, x: &Variable, weight: &Variable, into: Option<NdArray>) -> Result<Variable> {
        let activation = self.activation()?;
        let FusedConvolution { bias, normalization, z, decay_rate, eps, batch_stat, .. } = &self;
        if let (Some(bias), Some(_)) = (bias, normalization) {
            let expected = "none beside a batch normalization, whose beta it is";
            return Err(Error::arg("bias", expected).actual(bias.shape()));
        }
        let mut y = self.convolved(x, weight)?;
        let shape = y.shape();
        // Before the normalization: a call that is refused does not move the running statistics.
        if let Some(z) = z.as_ref().filter(|z| z.shape() != shape) {
            return Err(Error::shape("z", format!("y's shape {shape}")).actual(z.shape()));
        }
        if let Some(given) = into.as_ref().map(NdArray::shape).filter(|given| *given != shape) {
            return Err(Error::shape("outputs", format!("shape {shape}")).actual(given));
        }
        if let Some([beta, gamma, mean, variance]) = normalization {
            let convolution = &self.convolution;
            let axis = if convolution.channel_last { shape.ndim() as i64 - 1 } else { convolution.base_axis };
            let (decay_rate, eps, batch_stat) = (*decay_rate, *eps, *batch_stat);
            let args = f::BatchNormalization { axes: vec![axis], decay_rate, eps, batch_stat, ..Default::default() };
            y = f::batch_normalization(&y, Some(beta), Some(gamma), Some(mean), Some(variance), args)?.swap_remove(0);
        }
        if let Some(z) = z {
            y = f::add2(&y, z, f::Add2::default())?;
        }
        Ok(graph::apply_into(activation, &[&y], into.map(|array| vec![array]), None)?.swap_remove(0))
    }

    fn activation(&self) -> Result<Arc<dyn Function>> {
        let name = match &*self.nonlinearity {
            "" => "identity",
            name => name,
        };
        let by_alpha = ["leaky_relu", "elu"].contains(&name);
        let def = find(name).filter(|_| by_alpha || ["identity", "relu", "sigmoid", "tanh", "relu6"].contains(&name));
        let def = def.ok_or_else(|| {
            let expected = "'identity', 'relu', 'sigmoid', 'tanh', 'leaky_relu', 'elu' or 'relu6'";
            Error::arg("nonlinearity", expected).actual(format!("'{name}'"))
        })?;
        let given = &self.nonlinearity_args;
        if given.len() != usize::from(by_alpha) {
            let expected = if by_alpha { "[alpha] for" } else { "no numbers for" };
            let e = Error::arg("nonlinearity_args", format!("{expected} '{name}'"));
            return Err(e.actual(format!("{given:?}")));
        }
        (def.build)(&mut Args::new(given.iter().map(|alpha| ("alpha", ArgValue::Float(*alpha))).collect()))
    }

    /// The convolution, of the padded images where the padding is not its own, zeros.
    fn convolved(&self, x: &Variable, weight: &Variable) -> Result<Variable> {
        if !["constant", "reflect", "repeat"].contains(&&*self.pad_mode) {
            let e = Error::arg("pad_mode", "'constant', 'reflect' or 'repeat'");
            return Err(e.actual(format!("'{}'", self.pad_mode)));
        }
        let (bias, mut convolution) = (self.bias.as_ref(), self.convolution.clone());
        let Some(widths) = self.widths(&x.shape())? else {
            return f::convolution(x, weight, bias, convolution);
        };
        convolution.pad = None;
        let (mode, constant_value) = (self.pad_mode.clone(), self.constant_value);
        let padded = f::pad(x, f::Pad { pad_width: widths.into(), mode, constant_value })?;
        f::convolution(&padded, weight, bias, convolution)
    }

    /// Widths for `pad`, which is about the last axes; `None` where a convolution can pad so itself.
    fn widths(&self, shape: &Shape) -> Result<Option<Vec<i64>>> {
        let Some(pad) = &self.convolution.pad else { return Ok(None) };
        let axes = shape.ndim() - shape.axis(self.convolution.base_axis, "base_axis")? - 1;
        let is_each = pad.len() == axes;
        if is_each && self.pad_mode == "constant" && self.constant_value == 0.0 {
            return Ok(None);
        }
        let is_in_pairs = pad.len().is_multiple_of(2) && pad.len() <= 2 * shape.ndim();
        if !is_each && !is_in_pairs || pad.iter().any(|n| *n < 0) {
            let expected =
                format!("{axes} numbers, one for each spatial axis, or two for each of the last axes, 0 or more");
            return Err(Error::arg("pad", expected).actual(format!("{pad:?}")));
        }
        if !is_each {
            return Ok(Some(pad.clone()));
        }
        let both = pad.iter().flat_map(|&n| [n, n]);
        let channels: &[i64] = if self.convolution.channel_last { &[0, 0] } else { &[] };
        Ok(Some(both.chain(channels.iter().copied()).collect()))
    }
}
