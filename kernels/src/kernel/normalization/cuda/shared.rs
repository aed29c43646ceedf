//! Statistics that the GPUs of several ranks share: what each finds in its part, and what it does with those of all.

use super::{
    DeviceStatistics, JOINING, NormalizationBackward, NormalizationForward, Taking, ThreadSplit, backward_table,
    coefficients, forward_table, map, moments, sums,
};
use crate::array::{Data, Output};
use crate::cuda::team::{self, is_double, named};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::normalization::SumOverRanks;
use crate::kernel::normalization::cpu::Channels;

/// What all ranks have found: for each channel the sum, and last how many elements each has; squared deviations.
#[derive(Clone)]
pub(in super::super) struct SharedTotals {
    totals: Data,
    squares: Data,
}

/// What forward keeps for backward, and to run again.
pub(in super::super) struct SharedDeviceStatistics {
    pub all: SharedTotals,
    own: DeviceStatistics,
}

/// Normalizes by the statistics of all ranks: those that are `known`, or those that they find together now.
pub(in super::super) fn shared_forward(
    c: Channels,
    f: NormalizationForward,
    known: Option<&SharedTotals>,
    all: &dyn SumOverRanks,
) -> Result<SharedDeviceStatistics> {
    let gpu = f.x.gpu();
    let found = match known {
        Some(known) => known.clone(),
        None => find(c, f, all)?,
    };
    let (own, by) = (DeviceStatistics::new(f.x, c.channels)?, coefficients(f.x, c)?);
    if c.channels > 0 {
        let table = forward_table(c, &f, &ThreadSplit::new(gpu, c, Taking::new(c, &[f.x])));
        let launch =
            gpu.launch("normalization_shared", &named("shared_statistics", is_double(f.x)))?.table(&table.0)?;
        let launch = launch.data(&found.totals).data(&found.squares).data(&own.mean).data(&own.inverse).data(&by);
        // SAFETY: all arrays of the table and the launch have an element for each channel, the totals one more.
        unsafe { launch.run(gpu.grid(c.channels))? };
        map(c, f.x, None, f.y, &by, Output::Write)?;
    }
    Ok(SharedDeviceStatistics { all: found, own })
}

/// What all ranks find together.
fn find(c: Channels, f: NormalizationForward, all: &dyn SumOverRanks) -> Result<SharedTotals> {
    let (gpu, place) = (f.x.gpu(), f.x.place());
    let found = SharedTotals {
        totals: Data::new_at(place, DType::F64, c.channels + 1)?,
        squares: Data::new_at(place, DType::F64, c.channels)?,
    };
    if c.channels == 0 {
        return Ok(found);
    }
    let split = ThreadSplit::new(gpu, c, Taking::new(c, &[f.x]));
    let parts = moments(c, f.x, &split)?;
    let (table, grid) = (forward_table(c, &f, &split), team::grid(c.channels, JOINING));
    let launch = gpu.launch("normalization_shared", "own_totals")?.table(&table.0)?.data(&parts).data(&found.totals);
    // SAFETY: `parts` has an element for each part and channel, the totals one for each channel and one more.
    unsafe { launch.run(grid)? };
    all.sum(&found.totals)?;
    let launch = gpu.launch("normalization_shared", "own_squares")?.table(&table.0)?.data(&parts);
    // SAFETY: as above; the squares have an element for each channel.
    unsafe { launch.data(&found.totals).data(&found.squares).run(grid)? };
    all.sum(&found.squares)?;
    Ok(found)
}

/// The gradients of x, beta and gamma. That of x may lie over that of y.
pub(in super::super) fn shared_backward(
    c: Channels,
    s: &SharedDeviceStatistics,
    b: NormalizationBackward,
    all: &dyn SumOverRanks,
) -> Result<()> {
    let (gpu, double) = (b.gy.gpu(), is_double(b.gy));
    if c.channels == 0 {
        return Ok(());
    }
    let (mean, inverse) = (&s.own.mean, &s.own.inverse);
    let split = ThreadSplit::new(gpu, c, Taking::new(c, &[&[b.gy], b.x.as_slice()].concat()));
    let found = split.found(b.gy, c.channels)?;
    sums(c, b.gy, b.x, mean, 1, &split, &found)?;
    let slopes = Data::new_at(b.gy.place(), DType::F64, 2 * c.channels)?;
    let launch = gpu
        .launch("normalization_shared", &named("own_slopes", double))?
        .table(&backward_table(c, &b, split.parts).0)?;
    let launch = launch.data(&found).data(&s.all.totals).data(inverse).data(&slopes);
    // SAFETY: all arrays have their elements for each channel, `found` for each part, too.
    unsafe { launch.run(team::grid(c.channels, JOINING))? };
    let Some((gx, output)) = b.to_x else { return Ok(()) };
    all.sum(&slopes)?;
    let by = coefficients(b.gy, c)?;
    let launch =
        gpu.launch("normalization_shared", &named("by_slopes", double))?.maybe_array(b.gamma).data(mean).data(inverse);
    // SAFETY: as above.
    unsafe { launch.data(&slopes).data(&by).size(c.channels).run(gpu.grid(c.channels))? };
    map(c, b.gy, b.x, gx, &by, output)
}

/// Sums over all ranks, and last how many elements they are of.
pub(in super::super) struct SharedSums(Data);

/// `y` becomes the sums of `x` over all ranks, those that are `known` or that they find now, by how many elements they are of:
/// of this rank `count`.
pub(in super::super) fn shared_mean(
    x: &Data,
    count: usize,
    y: &Data,
    known: Option<&SharedSums>,
    all: &dyn SumOverRanks,
) -> Result<SharedSums> {
    let (gpu, n) = (x.gpu(), x.len());
    let sums = match known {
        Some(known) => known.0.clone(),
        None => Data::new_at(x.place(), DType::F64, n + 1)?,
    };
    if known.is_none() {
        let launch = gpu.launch("normalization_shared", "share")?.array(x).size(n).double(count as f64).data(&sums);
        // SAFETY: x has n elements, the sums one more.
        unsafe { launch.run(gpu.grid(n + 1))? };
        all.sum(&sums)?;
    }
    let launch = gpu.launch("normalization_shared", "shared_mean")?.data(&sums).array(y).size(n);
    // SAFETY: as above; y is as large as x.
    unsafe { launch.run(gpu.grid(n))? };
    Ok(SharedSums(sums))
}
