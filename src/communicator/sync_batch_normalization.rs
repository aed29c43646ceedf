//! Batch normalization by the statistics of the batches of several ranks together.

use super::arrays::described;
use super::membership::{GroupMember, Membership};
use super::reductions::{all_reduce_arrays, summing};
use super::shared_normalization::SharedStatistics;
use super::{Communicator, WORLD};
use crate::functions as f;
use crate::graph::{Variable, mode};
use nnrs_kernels::array::{Data, NdArray};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::normalization::SumOverRanks;
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
    let made = mode::statically(plain)?; // which is not run: it makes the checks
    let f = made[0].parent().ok_or_else(|| Error::graph("a function that is made has outputs"))?;
    let all = Arc::new(MemberSums { members: comm.members.clone(), group });
    SharedStatistics { all, group: options.group.into(), on_gpu: false }.normalization(&f)
}

/// Sums over the ranks of a communicator's group.
struct MemberSums {
    members: Arc<Membership>,
    group: GroupMember,
}

impl SumOverRanks for MemberSums {
    fn sum(&self, values: &Data) -> Result<()> {
        let array = NdArray::from_slice(values.as_slice::<f64>(), [values.len()].into())?;
        let arrays = [array.clone()];
        self.members.collective("sync_batch_normalization", &self.group, &described(&arrays), |t, memory| {
            all_reduce_arrays(t, &arrays, true, 1.0, memory, summing(t, false))
        })?;
        values.as_mut_slice().copy_from_slice(&array.to_vec::<f64>()?);
        Ok(())
    }
}
