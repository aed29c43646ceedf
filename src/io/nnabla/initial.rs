//! Initial values that a network asks for by the name of their kind.

use super::message::Message;
use crate::initializer::{
    Constant, Initializer, Normal, Uniform, calc_normal_std_glorot, calc_normal_std_he_backward,
    calc_normal_std_he_forward, calc_uniform_lim_glorot,
};
use nnrs_kernels::array::NdArray;
use nnrs_kernels::error::Result;
use nnrs_kernels::shape::Shape;

/// Makes the initial values of a variable; `None` where its network asks for none that is known.
pub(super) fn values(variable: &Message, shape: &Shape) -> Result<Option<NdArray>> {
    let Some(wanted) = variable.message("initializer") else { return Ok(None) };
    let factor = f64::from(wanted.number("multiplier") as f32);
    let kind = wanted.text("type");
    let made: Box<dyn Initializer> = match kind {
        "Constant" => Box::new(Constant(factor)),
        "Normal" => Box::new(Normal(factor)),
        "Uniform" => Box::new(Uniform(-factor, factor)),
        "Range" => return range(shape, factor).map(Some),
        _ => match scaled(kind, shape, factor) {
            Some(made) => made,
            None => return Ok(None),
        },
    };
    made.make(shape).map(Some)
}

/// Values whose spread goes by the sizes of a layer.
fn scaled(kind: &str, shape: &Shape, factor: f64) -> Option<Box<dyn Initializer>> {
    let (is_uniform, rest) = match (kind.strip_prefix("Normal"), kind.strip_prefix("Uniform")) {
        (Some(rest), _) => (false, rest),
        (_, Some(rest)) => (true, rest),
        _ => return None,
    };
    let layers = [("Affine", 0), ("Convolution", 1), ("CLConv", 2)];
    let (layer, rule) = layers.iter().find_map(|(name, layer)| Some((*layer, rest.strip_prefix(name)?)))?;
    let n = shape.len();
    let (inmaps, outmaps, kernel): (usize, usize, &[usize]) = match layer {
        0 => (*shape.first()?, shape[1..].iter().product(), &[1, 1]),
        1 if n >= 3 => (shape[n - 3], shape[0], &shape[n - 2..]),
        2 if n >= 3 => (shape[n - 1], shape[0], &shape[1..3]),
        _ => return None,
    };
    if is_uniform {
        let (_, limit) = calc_uniform_lim_glorot(inmaps, outmaps, kernel);
        return (rule == "Glorot").then(|| Box::new(Uniform(-limit * factor, limit * factor)) as _);
    }
    let spread = match rule {
        "He" | "HeForward" => calc_normal_std_he_forward(inmaps, outmaps, kernel),
        "HeBackward" => calc_normal_std_he_backward(inmaps, outmaps, kernel),
        "Glorot" => calc_normal_std_glorot(inmaps, outmaps, kernel),
        _ => return None,
    };
    Some(Box::new(Normal(spread * factor)))
}

fn range(shape: &Shape, factor: f64) -> Result<NdArray> {
    let last = shape.last().copied().unwrap_or(1).max(1);
    let values: Vec<f32> = (0..shape.size()).map(|i| ((i % last) as f64 * factor) as f32).collect();
    NdArray::from_slice(&values, shape.clone())
}
