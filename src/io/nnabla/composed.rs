//! Functions of NNabla that are several functions here: fused and synchronized batch normalization.

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
        "FusedConvolution" | "Einsum" => Some(Err(Error::unsupported(format!(
            "'{}' cannot be loaded from a file: save the network on nnrs, which takes it apart",
            function.text("type")
        )))),
        _ => None,
    }
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
    let empty = Message::new("FusedBatchNormalizationParameter")?;
    let p = function.message(field).unwrap_or(&empty);
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
