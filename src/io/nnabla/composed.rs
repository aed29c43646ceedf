//! Functions of NNabla that are several functions here: fused convolution, fused and synchronized batch normalization.

use super::arguments::shortest;
use super::message::Message;
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};

/// Applies a function of this kind; `None` for all others.
pub(super) fn apply(function: &Message, x: &[&Variable]) -> Option<Result<Vec<Variable>>> {
    match function.text("type") {
        "FusedBatchNormalization" => Some(fused(function, x)),
        "SyncBatchNormalization" => Some(synchronized(function, x)),
        "FusedConvolution" => Some(convolved(function, x).map(|y| vec![y])),
        _ => None,
    }
}

/// The message of a function's arguments. What is not set is 0 or empty, as in NNabla.
fn parameters(function: &Message, field: &str, kind: &str) -> Result<Message> {
    function.message(field).cloned().map_or_else(|| Message::new(kind), Ok)
}

fn convolved(function: &Message, x: &[&Variable]) -> Result<Variable> {
    let p = parameters(function, "fused_convolution_param", "FusedConvolutionParameter")?;
    let wrong = || {
        let expected = "x and weight, then a bias or beta, gamma, mean and variance or neither, then z or nothing";
        Error::arg("input", expected).actual(format!("{} inputs", x.len())).function("fused_convolution")
    };
    let [x, weight, rest @ ..] = x else { return Err(wrong()) };
    // The file has those that were given, and nothing that tells which: NNabla goes by how many and by the bias's one axis.
    let (bias, normalization, z) = match *rest {
        [] => (None, None, None),
        [bias] if bias.ndim() == 1 => (Some(bias), None, None),
        [z] => (None, None, Some(z)),
        [bias, z] => (Some(bias), None, Some(z)),
        [beta, gamma, mean, variance] => (None, Some([beta, gamma, mean, variance]), None),
        [beta, gamma, mean, variance, z] => (None, Some([beta, gamma, mean, variance]), Some(z)),
        _ => return Err(wrong()),
    };
    let sizes = |name| Some(p.sizes(name).to_vec()).filter(|sizes| !sizes.is_empty());
    let convolution = f::Convolution {
        base_axis: p.int("base_axis"),
        pad: sizes("pad"),
        stride: sizes("stride"),
        dilation: sizes("dilation"),
        group: p.int("group"),
        channel_last: p.int("channel_last") != 0,
    };
    let options = f::FusedConvolution {
        convolution,
        pad_mode: p.text("pad_mode").into(),
        constant_value: shortest(p.number("constant_value") as f32),
        bias: bias.cloned(),
        normalization: normalization.map(|all| all.map(Variable::clone)),
        decay_rate: shortest(p.number("decay_rate") as f32),
        eps: shortest(p.number("eps") as f32),
        batch_stat: p.int("batch_stat") != 0,
        z: z.cloned(),
        nonlinearity: p.text("nonlinearity").into(),
        nonlinearity_args: p.floats("nonlinearity_args").iter().map(|n| shortest(*n)).collect(),
    };
    f::fused_convolution(x, weight, options)
}

/// Normalized, a second input added, rectified.
fn fused(function: &Message, x: &[&Variable]) -> Result<Vec<Variable>> {
    let outputs = function.texts("output").len();
    let mut y = normalized(function, "fused_batch_normalization_param", x, outputs)?;
    if let Some(z) = x.get(5) {
        y[0] = f::add2(&y[0], z, f::Add2::default())?;
    }
    y[0] = f::relu(&y[0], f::ReLU::default())?;
    Ok(y)
}

/// One process has the statistics of all.
fn synchronized(function: &Message, x: &[&Variable]) -> Result<Vec<Variable>> {
    normalized(function, "sync_batch_normalization_param", x, function.texts("output").len())
}

fn normalized(function: &Message, field: &str, x: &[&Variable], outputs: usize) -> Result<Vec<Variable>> {
    let [x, beta, gamma, mean, variance, ..] = x else {
        return Err(Error::arg("input", "5 inputs: x, beta, gamma, mean and variance").actual(x.len()));
    };
    let p = parameters(function, field, "FusedBatchNormalizationParameter")?;
    let args = f::BatchNormalization {
        axes: p.ints("axes").to_vec(),
        decay_rate: shortest(p.number("decay_rate") as f32),
        eps: shortest(p.number("eps") as f32),
        batch_stat: p.int("batch_stat") != 0,
        output_stat: outputs > 1,
        ..Default::default()
    };
    f::batch_normalization(x, Some(beta), Some(gamma), Some(mean), Some(variance), args)
}
