//! Collectives over a transport. Sums are made here, not by the transport: each rank gets one part of the numbers from all
//! others, adds them up in the order of ranks, and gives the sum to those that want it; of few numbers each gets all. So the
//! bits depend on the numbers and on how many ranks there are, and on nothing else: not on the transport, or how arrays were
//! packed. It costs what a ring costs: each number travels twice.

use super::arrays::{KeptMemory, groups};
use super::transport::{Transport, block_cuts, even_cuts};
use nnrs_kernels::array::{Data, NdArray};
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::ordered_sum::{SumBy, ordered_sum};

/// Numbers that a rank sums at a time, so that they stay in its cache.
const SEGMENT: usize = 1 << 19;
/// Numbers that all ranks sum at a time, at most: what there is memory for.
const MOST: usize = 1 << 24;
/// Up to so many numbers, counted over all ranks, one exchange of all is quicker than two of parts.
const FEW: usize = 1 << 13;

/// How sums are made: what they are divided by, and by which threads.
#[derive(Clone, Copy)]
pub(super) struct Summing {
    pub(super) divide_by: usize,
    pub(super) by: SumBy,
}

/// As a communicator sums on the thread of its caller.
pub(super) fn summing(t: &dyn Transport, division: bool) -> Summing {
    Summing { divide_by: if division { t.size() } else { 1 }, by: SumBy::Pool }
}

/// Each array, times `scale`, becomes the sum of it over all ranks.
pub(super) fn all_reduce_arrays(
    t: &dyn Transport,
    arrays: &[NdArray],
    inplace: bool,
    scale: f64,
    memory: &mut KeptMemory,
    how: Summing,
) -> Result<()> {
    if t.size() == 1 && scale == 1.0 {
        return Ok(());
    }
    for group in groups(arrays, inplace)? {
        let flat = group.load(memory, scale)?;
        all_reduce(t, &flat.data, memory, how)?;
        group.store(&flat)?;
    }
    Ok(())
}

/// `x` becomes the sum over all ranks, everywhere.
fn all_reduce(t: &dyn Transport, x: &Data, memory: &mut KeptMemory, how: Summing) -> Result<()> {
    if t.size() == 1 || x.is_empty() {
        return Ok(());
    }
    if x.len().saturating_mul(t.size()) <= FEW {
        return all_reduce_few(t, x, memory, how);
    }
    for part in segments(t, x) {
        let cuts = even_cuts(part.len(), part.dtype().size(), t.size());
        sum_own_part(t, &part, &cuts, memory, how)?;
        t.all_gather(part.bytes_mut(), &cuts)?;
    }
    Ok(())
}

fn all_reduce_few(t: &dyn Transport, x: &Data, memory: &mut KeptMemory, how: Summing) -> Result<()> {
    let rows = memory.get("received", x.dtype(), x.len() * t.size())?;
    rows.within(t.rank() * x.len(), x.len()).copy_from(x);
    t.all_gather(rows.bytes_mut(), &block_cuts(x.bytes(), t.size()))?;
    ordered_sum(&rows, x, how.divide_by, how.by);
    Ok(())
}

/// `x` becomes the sum over all ranks on rank `dst`, and stays what it was elsewhere.
pub(super) fn reduce(t: &dyn Transport, x: &Data, dst: usize, memory: &mut KeptMemory, how: Summing) -> Result<()> {
    for mut part in segments(t, x) {
        if t.rank() != dst {
            let copied = memory.get("copied", part.dtype(), part.len())?;
            copied.copy_from(&part);
            part = copied;
        }
        let cuts = even_cuts(part.len(), part.dtype().size(), t.size());
        sum_own_part(t, &part, &cuts, memory, how)?;
        t.gather(part.bytes_mut(), &cuts, dst)?;
    }
    Ok(())
}

/// `x` becomes that of rank `src`.
pub(super) fn bcast(t: &dyn Transport, x: &Data, src: usize) -> Result<()> {
    segments(t, x).try_for_each(|part| t.bcast(part.bytes_mut(), src))
}

/// Of `x`, which has a row for each rank, row `i` becomes that of rank `i`, everywhere.
pub(super) fn all_gather(t: &dyn Transport, x: &Data) -> Result<()> {
    t.all_gather(x.bytes_mut(), &block_cuts(x.bytes() / t.size(), t.size()))
}

/// Of `x`, which has a row for each rank, this rank's row becomes the sum of it over all ranks.
pub(super) fn reduce_scatter(t: &dyn Transport, x: &Data, memory: &mut KeptMemory, how: Summing) -> Result<()> {
    sum_own_part(t, x, &block_cuts(x.bytes() / t.size(), t.size()), memory, how)
}

/// This rank's part of `x` becomes the sum over all.
fn sum_own_part(t: &dyn Transport, x: &Data, cuts: &[usize], memory: &mut KeptMemory, how: Summing) -> Result<()> {
    let (from, to) = (cuts[t.rank()], cuts[t.rank() + 1]);
    let bytes = x.dtype().size();
    let own = x.within(from / bytes, (to - from) / bytes);
    let received = memory.get("received", x.dtype(), own.len() * t.size())?;
    t.all_to_all(x.bytes_mut(), cuts, received.bytes_mut())?;
    ordered_sum(&received, &own, how.divide_by, how.by);
    Ok(())
}

fn segments<'a>(t: &dyn Transport, x: &'a Data) -> impl Iterator<Item = Data> + use<'a> {
    let step = SEGMENT.saturating_mul(t.size()).min(MOST);
    (0..x.len()).step_by(step).map(move |start| x.within(start, step.min(x.len() - start)))
}
