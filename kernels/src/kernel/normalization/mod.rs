//! Normalization by the statistics of batches or samples.

mod batch;
mod cpu;
mod cuda;
mod group;
mod layer;
mod layout;
mod shared;

use crate::array::{Data, Output};
use crate::call::{GradMut, View, ViewMut};
use crate::dtype::{Element, Real};
use crate::error::{Error, Result};
use crate::kernel::ops;
pub use batch::BatchNormalization;
pub use cpu::ChannelGroups;
pub use group::GroupNormalization;
pub use layer::LayerNormalization;
pub use layout::NormalizationLayout;
pub use shared::{SharedBatchNormalization, SharedMean, SumOverRanks};

/// What forward keeps for backward.
struct SavedStatistics {
    mean: Vec<f64>,
    /// `1 / sqrt(variance + eps)`
    inverse: Vec<f64>,
}

impl SavedStatistics {
    fn new(mean: Vec<f64>, variance: &[f64], eps: f64) -> SavedStatistics {
        SavedStatistics { mean, inverse: cpu::inverse_deviations(variance, eps) }
    }
}

/// There are no statistics to go back with.
fn no_forward() -> Error {
    Error::graph("the statistics of the forward pass are missing").hint("call forward() before backward()")
}

/// The numbers of view `i`, if it is there.
fn slice_at<'a, T: Element>(views: &'a [Option<View>], i: Option<usize>) -> Option<&'a [T]> {
    views.get(i?)?.as_ref().map(|v| v.slice())
}

/// The data of view `i`, if it is there.
fn at<'a>(views: &'a [Option<View>], i: Option<usize>) -> Option<&'a Data> {
    views.get(i?)?.as_ref().map(|v| &v.data)
}

fn target<'a>(gx: &'a [Option<GradMut>], i: Option<usize>) -> Option<(&'a Data, Output)> {
    gx.get(i?)?.as_ref().map(|g| (&g.data, g.output))
}

fn on_gpu(gx: &[Option<GradMut>]) -> bool {
    gx.iter().flatten().any(|g| g.data.place().gpu().is_some())
}

/// Mean and variance among the outputs.
fn statistics<'a>(y: &'a [ViewMut]) -> Option<[&'a Data; 2]> {
    y.get(2).map(|variance| [&y[1].data, &variance.data])
}

/// The gradient of y on a GPU, or zeros where none has come.
fn gradient_of_y(gy: &[Option<View>], gx: &[Option<GradMut>], n: usize) -> Result<Option<Data>> {
    if let Some(gy) = at(gy, Some(0)) {
        return Ok(Some(gy.clone()));
    }
    let like = gy.iter().flatten().map(|v| &v.data).chain(gx.iter().flatten().map(|g| &g.data)).next();
    let zeros = |like: &Data| {
        let zeros = Data::new_at(like.place(), like.dtype(), n)?;
        ops::fill(&zeros, 0.0)?;
        Ok(zeros)
    };
    like.map(zeros).transpose()
}

/// Writes or adds numbers to a gradient.
fn deliver<T: Real>(to: Option<&mut GradMut>, from: impl Iterator<Item = f64>) {
    let Some(to) = to else { return };
    let output = to.output;
    for (to, v) in to.slice::<T>().iter_mut().zip(from) {
        *to = if output == Output::Write { T::from_f64(v) } else { *to + T::from_f64(v) };
    }
}
