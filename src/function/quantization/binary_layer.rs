//! Layers that work with the signs of their weight: `binary_connect_affine`, `binary_connect_convolution`, and those that have a
//! scale for each output too, `binary_weight_affine`, `binary_weight_convolution`.

use super::inner_layer::{InnerLayer, check_like_weight};
use crate::function;
use crate::function::table::formulas;
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of};
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::binary_weights::{BinaryWeights, OutputScale};
use nnrs_kernels::shape::Shape;

function! {
    /// An affine layer with the signs of its weight (BinaryConnect, Courbariaux et al., 2015), `y = x sign(w) + b`. Each forward
    /// pass writes the signs to binary_weight. The gradient passes straight through the signs.
    BinaryConnectAffine binary_connect_affine in Quantization, any_device
    inputs {
        x: "Input of shape (M_0, .., M_{B-1}, D_B, .., D_N), B = base_axis.",
        weight: "Weight of shape (D_B * .. * D_N, L_0, .., L_I).",
        binary_weight: "Array of the weight's shape; forward writes the signs to it.",
        bias [optional]: "Bias of shape (L_0, .., L_I).",
    }
    args {
        base_axis: i64 = 1, "First axis that belongs to the vector; may count from the end.";
        quantize_zero_to: f64 = 1.0, "The sign of 0."
    }
    outputs { y: "Output of shape (M_0, .., M_{B-1}, L_0, .., L_I)." }
}

function! {
    /// A convolution with the signs of its weight (BinaryConnect, Courbariaux et al., 2015). Each forward pass writes the signs to
    /// binary_weight. The gradient passes straight through the signs.
    BinaryConnectConvolution binary_connect_convolution in Quantization, any_device
    inputs {
        x: "Images of shape (.., C, spatial..) with base_axis leading axes.",
        weight: "Kernels of shape (O, C / group, kernel..).",
        binary_weight: "Array of the weight's shape; forward writes the signs to it.",
        bias [optional]: "Bias of shape (O,).",
    }
    args {
        base_axis: i64 = 1, "Number of leading axes that only repeat the convolution; may count from the end.";
        pad: Option<Vec<i64>> = None, "Zeros on both ends of each spatial axis; None: no padding.";
        stride: Option<Vec<i64>> = None, "Distance of windows on each spatial axis; None: 1.";
        dilation: Option<Vec<i64>> = None, "Distance of a kernel's elements on each spatial axis; None: 1.";
        group: i64 = 1, "Number of groups of channels that are convolved apart.";
        quantize_zero_to: f64 = 1.0, "The sign of 0."
    }
    outputs { y: "Images of shape (.., O, new spatial..)." }
}

function! {
    /// An affine layer with the signs of its weight and a scale for each output (XNOR-Net, Rastegari et al., 2016),
    /// `y = x (sign(w) alpha) + b`, alpha being the mean `|w|` of each output. Each forward pass writes the signs to binary_weight, and
    /// alpha. The gradient passes straight through signs and scales: that of the weight is as if it had been used itself.
    BinaryWeightAffine binary_weight_affine in Quantization, any_device
    inputs {
        x: "Input of shape (M_0, .., M_{B-1}, D_B, .., D_N), B = base_axis.",
        weight: "Weight of shape (D_B * .. * D_N, L_0, .., L_I).",
        binary_weight: "Array of the weight's shape; forward writes the signs to it.",
        alpha: "Array of L_0 * .. * L_I elements; forward writes the scales to it.",
        bias [optional]: "Bias of shape (L_0, .., L_I).",
    }
    args {
        base_axis: i64 = 1, "First axis that belongs to the vector; may count from the end.";
        quantize_zero_to: f64 = 1.0, "The sign of 0."
    }
    outputs { y: "Output of shape (M_0, .., M_{B-1}, L_0, .., L_I)." }
}

function! {
    /// A convolution with the signs of its weight and a scale for each output channel (XNOR-Net, Rastegari et al., 2016), alpha, the mean
    /// `|w|` of each. Each forward pass writes the signs to binary_weight, and alpha. The gradient passes straight through signs
    /// and scales: that of the weight is as if it had been used itself.
    BinaryWeightConvolution binary_weight_convolution in Quantization, any_device
    inputs {
        x: "Images of shape (.., C, spatial..) with base_axis leading axes.",
        weight: "Kernels of shape (O, C / group, kernel..).",
        binary_weight: "Array of the weight's shape; forward writes the signs to it.",
        alpha: "Array of O elements; forward writes the scales to it.",
        bias [optional]: "Bias of shape (O,).",
    }
    args {
        base_axis: i64 = 1, "Number of leading axes that only repeat the convolution; may count from the end.";
        pad: Option<Vec<i64>> = None, "Zeros on both ends of each spatial axis; None: no padding.";
        stride: Option<Vec<i64>> = None, "Distance of windows on each spatial axis; None: 1.";
        dilation: Option<Vec<i64>> = None, "Distance of a kernel's elements on each spatial axis; None: 1.";
        group: i64 = 1, "Number of groups of channels that are convolved apart.";
        quantize_zero_to: f64 = 1.0, "The sign of 0."
    }
    outputs { y: "Images of shape (.., O, new spatial..)." }
}

formulas! {
    /// `value`, whose gradient goes to x instead: internal, for gradients.
    StraightThrough straight_through in Special (value: "What it is.", x: "Where its gradient goes, of value's shape.")
        |_, [value, _x]| value.clone()
        => |[_value, _x], _y, g| [None, Some(g.clone())];
}

/// Which axis of the weight, as a matrix of `w[0]` rows, is over the outputs.
const AFFINE: usize = 1;
const CONVOLUTION: usize = 0;

/// A layer with signs; with the axis of the outputs where each has a scale.
struct BinaryLayer<L> {
    inner: InnerLayer<L>,
    zero: f64,
    axis: Option<usize>,
}

impl<L: Function> BinaryLayer<L> {
    fn new(layer: L, zero: f64, axis: Option<usize>) -> Self {
        BinaryLayer { inner: InnerLayer { layer, extra: 1 + axis.is_some() as usize }, zero, axis }
    }

    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let (shapes, layer) = self.inner.resolve(x)?;
        check_like_weight(x, "binary_weight")?;
        let matrix = [x[1][0], x[1].size_from(1)];
        let scale = self.axis.map(|axis| OutputScale { matrix, axis });
        if let Some(n) = self.axis.map(|a| matrix[a]).filter(|&n| n != x[3].size()) {
            return Err(Error::shape("alpha", format!("{n} elements, one for each output")).actual(&x[3]));
        }
        Ok(Resolved::new(shapes, BinaryWeights { layer, weight: x[1].clone(), zero: self.zero, scale }))
    }

    /// What the layer works with, whose gradient is the weight's.
    fn weight(&self, w: &Variable) -> Result<Variable> {
        let signs = f::sign(w, f::Sign { alpha: self.zero })?;
        let Some(axis) = self.axis else { return Ok(signs) };
        let to = |v: &Variable, shape: &Shape| f::reshape(v, f::Reshape::to(shape));
        let matrix: Shape = [w.shape()[0], w.shape().size_from(1)].into();
        let over = f::Mean { axis: Some(vec![1 - axis as i64]), keepdims: true };
        let scales = f::mean(&to(&f::abs(w)?, &matrix)?, over)?;
        let scaled = f::mul2(&to(&signs, &matrix)?, &scales, f::Mul2::default())?;
        straight_through(&to(&scaled, &w.shape())?, w)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let weight = self.weight(&g.x[1])?;
        self.inner.grad(g, weight)
    }
}

macro_rules! convolution {
    ($f:ident) => {
        f::Convolution {
            base_axis: $f.base_axis,
            pad: $f.pad.clone(),
            stride: $f.stride.clone(),
            dilation: $f.dilation.clone(),
            group: $f.group,
            channel_last: false,
        }
    };
}
pub(super) use convolution;

macro_rules! binary_layers {
    ($($name:ident |$f:ident| $layer:expr, $axis:expr;)*) => {$(
        impl $name {
            fn layer(&self) -> BinaryLayer<impl Function + use<>> {
                let $f = self;
                BinaryLayer::new($layer, self.quantize_zero_to, $axis)
            }
        }

        impl Function for $name {
            fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
                self.layer().resolve(x)
            }

            fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
                self.layer().inner.used(self, &*call_of::<BinaryWeights>(call).layer)
            }

            fn has_state(&self) -> bool {
                true
            }

            fn updates_input(&self, i: usize) -> bool {
                (2..2 + self.layer().inner.extra).contains(&i)
            }

            fn differentiable(&self, i: usize) -> bool {
                !self.updates_input(i)
            }

            fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
                self.layer().grad(g)
            }
        }
    )*};
}

binary_layers! {
    BinaryConnectAffine |f| f::Affine { base_axis: f.base_axis }, None;
    BinaryConnectConvolution |f| convolution!(f), None;
    BinaryWeightAffine |f| f::Affine { base_axis: f.base_axis }, Some(AFFINE);
    BinaryWeightConvolution |f| convolution!(f), Some(CONVOLUTION);
}
