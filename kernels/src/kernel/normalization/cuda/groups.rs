//! Groups of channels on a GPU: statistics of rows, and what is done with them for each channel of a row.

use super::{
    DeviceStatistics, NormalizationBackward, NormalizationForward, Table, Taking, ThreadSplit, adds, coefficients, map,
    statistics_of, sums,
};
use crate::array::{Data, Output};
use crate::cuda::convert;
use crate::cuda::team::{self, is_double, named};
use crate::error::Result;
use crate::kernel::normalization::cpu::{ChannelGroups, Channels};

/// Normalizes the rows; their mean and variance go to `statistics`.
pub(in super::super) fn groups_forward(
    g: ChannelGroups,
    x: &Data,
    y: &Data,
    [gamma, beta]: [Option<&Data>; 2],
    statistics: Option<[&Data; 2]>,
    eps: f64,
) -> Result<DeviceStatistics> {
    let rows = Channels { outer: 1, channels: g.rows(), inner: g.length() };
    let plain = NormalizationForward {
        x,
        y,
        gamma: None,
        beta: None,
        running: None,
        own: true,
        update: false,
        statistics,
        eps,
        decay: 0.0,
    };
    let (s, _) = statistics_of(rows, plain)?;
    let c = g.channels();
    if c.size() == 0 {
        return Ok(s);
    }
    let (gpu, by) = (x.gpu(), coefficients(x, c)?);
    let launch = gpu.launch("normalization", &named("groups_scale", is_double(x)))?.data(&s.mean).data(&s.inverse);
    let launch = launch.maybe_array(gamma).maybe_array(beta).data(&by).size(c.channels).size(g.width);
    let launch = launch.size(g.groups).size(g.after).flag(g.by_sample);
    // SAFETY: the arrays have the sizes of the rows, of the scales and of all channels.
    unsafe { launch.run(gpu.grid(c.channels))? };
    map(c, x, None, y, &by, Output::Write)?;
    Ok(s)
}

/// The gradients of x, beta and gamma. That of x may lie over that of y.
pub(in super::super) fn groups_backward(
    g: ChannelGroups,
    s: &DeviceStatistics,
    b: NormalizationBackward,
) -> Result<()> {
    let (gpu, double, c) = (b.gy.gpu(), is_double(b.gy), g.channels());
    if c.size() == 0 {
        let zero = |(to, output): (&Data, Output)| match output {
            Output::Write => convert::fill(to, 0.0),
            Output::Accumulate => Ok(()),
        };
        return [b.to_beta, b.to_gamma].into_iter().flatten().try_for_each(zero);
    }
    let split = ThreadSplit::new(gpu, c, Taking::new(c, &[&[b.gy], b.x.as_slice()].concat()));
    let found = split.found(b.gy, c.channels)?;
    sums(c, b.gy, b.x, &s.mean, g.width, &split, &found)?;
    if b.to_beta.is_some() || b.to_gamma.is_some() {
        let scales = g.scales();
        let launch = gpu.launch("normalization", &named("groups_deliver", double))?.data(&found).data(&s.inverse);
        let launch = launch.maybe_array(b.to_beta.map(|t| t.0)).size(adds(b.to_beta));
        let launch = launch.maybe_array(b.to_gamma.map(|t| t.0)).size(adds(b.to_gamma));
        let launch = launch.size(scales).size(split.parts).size(c.channels).size(g.width).size(g.groups);
        let launch = launch.size(g.after).flag(g.by_sample);
        // SAFETY: `found` has the parts of all channels, the gradients the scales' sizes.
        unsafe { launch.run(gpu.grid(scales))? };
    }
    let Some((gx, output)) = b.to_x else { return Ok(()) };
    let by = coefficients(b.gy, c)?;
    let size = team::size(gpu, g.rows(), g.width, true);
    let table = Table::default().list(b.gamma).list(b.gmean).list(b.gvariance).size(g.rows()).size(g.length());
    let table = table.size(split.parts).size(g.width).size(g.groups).size(g.after).size(g.by_sample as usize);
    let launch = gpu.launch("normalization", &named("groups_backward", double))?.table(&table.0)?.data(&found);
    let launch = launch.data(&s.mean).data(&s.inverse).data(&by).size(size);
    // SAFETY: as above; the coefficients are those of all channels.
    unsafe { launch.run(team::grid(g.rows(), size))? };
    map(c, b.gy, b.x, gx, &by, output)
}
