//! Batch normalization by the statistics of the batches of several ranks together.

use super::all_reduce_function::{AllReduceSum, ChannelCount, MoveStatistics};
use super::{Communicator, WORLD};
use crate::function::{call, call_one};
use crate::functions as f;
use crate::graph::{Variable, mode};
use nnrs_kernels::error::Result;
use nnrs_kernels::shape::Shape;
use std::sync::Arc;

/// Arguments of [`sync_batch_normalization`], named as those of [`BatchNormalization`](crate::functions::BatchNormalization).
///
/// ```
/// let options = nnrs::communicator::SyncBatchNormalization::default();
/// assert_eq!((options.axes, options.batch_stat, options.group), (vec![1], true, "world"));
/// ```
#[derive(Clone, Debug)]
pub struct SyncBatchNormalization<'a> {
    /// Which ranks.
    pub group: &'a str,
    /// Axes with statistics of their own; the others are averaged over.
    pub axes: Vec<i64>,
    /// How much of the running statistics each forward pass keeps.
    pub decay_rate: f64,
    /// Added to the variance.
    pub eps: f64,
    /// Normalize by the statistics of the batches and move the running ones; if not, by the running ones.
    pub batch_stat: bool,
    /// Give mean and biased variance of the batches, too.
    pub output_stat: bool,
}

impl Default for SyncBatchNormalization<'_> {
    fn default() -> Self {
        let (axes, decay_rate, eps) = (vec![1], 0.9, 1e-5);
        SyncBatchNormalization { group: WORLD, axes, decay_rate, eps, batch_stat: true, output_stat: false }
    }
}

/// Batch normalization by the statistics of the batches of all ranks of a communicator together: what
/// [`batch_normalization`](crate::functions::batch_normalization) gives for the whole batch.
///
/// In a group of one rank, and without `batch_stat`, it is that function. The batches of the ranks may have different sizes. The
/// gradient of `x` has what `x` adds to the losses of all ranks; those of `beta` and `gamma` are this rank's. All ranks run
/// forward and backward together.
///
/// # Errors
/// Shapes or axes that do not fit; no statistics to use; an unknown group.
///
/// ```
/// use nnrs::communicator::{SyncBatchNormalization, Threads, sync_batch_normalization};
/// use nnrs::Variable;
/// let normalized = Threads::run(2, |comm| {
///     let x = Variable::from_slice(&[comm.rank() as f32 * 2.0, 0.0], [1, 2].into())?;
///     let y = sync_batch_normalization(&x, None, None, None, None, &comm, SyncBatchNormalization::default())?;
///     y[0].forward()?;
///     Ok(y[0].to_vec::<f32>()?.iter().map(|v| v.round()).collect::<Vec<_>>())
/// })?;
/// assert_eq!(normalized, [[-1.0, 0.0], [1.0, 0.0]]);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn sync_batch_normalization(
    x: &Variable,
    beta: Option<&Variable>,
    gamma: Option<&Variable>,
    mean: Option<&Variable>,
    variance: Option<&Variable>,
    comm: &Communicator,
    options: SyncBatchNormalization,
) -> Result<Vec<Variable>> {
    let group = comm.members.member("sync_batch_normalization", options.group)?;
    let plain = || {
        let args = f::BatchNormalization {
            axes: options.axes.clone(),
            decay_rate: options.decay_rate,
            eps: options.eps,
            batch_stat: options.batch_stat,
            no_scale: gamma.is_none(),
            no_bias: beta.is_none(),
            output_stat: options.output_stat,
        };
        f::batch_normalization(x, beta, gamma, mean, variance, args)
    };
    if !options.batch_stat || group.transport.as_ref().is_none_or(|t| t.size() == 1) {
        return plain();
    }
    mode::statically(plain)?; // which is not run: it makes the checks
    let total = |v: &Variable| call_one(AllReduceSum::new(&comm.members, &group), &[v]);
    let running = mean.zip(variance);
    let context = mode::context();
    let wide = Arc::new(context.widened()?);
    let is_half = wide.dtype() != context.dtype();
    let make = || -> Result<Vec<Variable>> {
        let (normal, statistics) = normalized(x, total, running, &options)?;
        let scaled = gamma.map_or(Ok(normal.clone()), |gamma| &normal * gamma)?;
        let y = beta.map_or(Ok(scaled.clone()), |beta| &scaled + beta)?;
        Ok([[y].as_slice(), &statistics].concat())
    };
    let mut made = mode::in_context(wide, make)?;
    made.truncate(if options.output_stat { 3 } else { 1 });
    // Stored as other functions' outputs are.
    let stored = |v| f::mul_scalar(v, f::MulScalar { val: 1.0, inplace: false });
    if is_half { made.iter().map(stored).collect() } else { Ok(made) }
}

/// `x` less its mean by the square root of its variance; and both, of the whole batch.
fn normalized(
    x: &Variable,
    total: impl Fn(&Variable) -> Result<Variable>,
    running: Option<(&Variable, &Variable)>,
    options: &SyncBatchNormalization,
) -> Result<(Variable, [Variable; 2])> {
    let reduced = others(&x.shape(), &options.axes)?;
    let sum = |v: &Variable| f::sum(v, f::Sum { axis: Some(reduced.clone()), keepdims: true });
    let own = sum(x)?;
    let count = total(&call_one(ChannelCount::new(own.size().max(1)), &[x])?)?;
    let number = f::reshape(&count, f::Reshape { shape: vec![1; x.ndim()], inplace: true })?;
    let mut mean = (total(&own)? / &number)?;
    let mut centred = (x - &mean)?;
    let mut variance = (total(&sum(&(&centred * &centred)?)?)? / &number)?;
    if let Some((m, v)) = running {
        let moved = call(MoveStatistics::new(m, v, options.decay_rate), &[&mean, &variance, &count])?;
        // Made once: to make them again would move the running ones twice.
        moved.iter().for_each(|v| v.set_persistent(true));
        (mean, variance) = (moved[0].clone(), moved[1].clone());
        centred = (x - &mean)?;
    }
    let inverse = f::pow_scalar(&(&variance + options.eps)?, f::PowScalar { val: -0.5, inplace: false })?;
    Ok(((&centred * &inverse)?, [mean, variance]))
}

/// The axes that are averaged over.
fn others(shape: &Shape, axes: &[i64]) -> Result<Vec<i64>> {
    let kept = axes.iter().map(|&a| shape.axis(a, "axes")).collect::<Result<Vec<_>>>()?;
    Ok((0..shape.ndim()).filter(|a| !kept.contains(a)).map(|a| a as i64).collect())
}
