//! Normalization on a GPU: statistics of channels and of rows, and what is done with them, forward and backward.

mod groups;
mod shared;

use super::cpu::{Channels, LayerRows};
use crate::array::Data;
use crate::array::Output;
use crate::cuda::driver::LaunchGrid;
use crate::cuda::team::{self, THREADS, is_double, named};
use crate::cuda::{Gpu, convert};
use crate::dtype::DType;
use crate::dtype::compute_dtype;
use crate::error::Result;
pub(super) use groups::{groups_backward, groups_forward};
pub(super) use shared::{SharedDeviceStatistics, SharedSums, shared_backward, shared_forward, shared_mean};

/// Channels whose elements lie in shorter pieces are worked on side by side.
const SHORT: usize = 8;
/// Channels side by side.
const WIDE: usize = 32;
/// Threads that join the parts of a channel, as in `cuda/normalization.cu`.
const JOINING: usize = 32;

/// What forward keeps for backward: for each channel or row mean and `1 / sqrt(variance + eps)`, in double.
pub(super) struct DeviceStatistics {
    mean: Data,
    inverse: Data,
}

impl DeviceStatistics {
    fn new(like: &Data, n: usize) -> Result<DeviceStatistics> {
        let new = || Data::new_at(like.place(), DType::F64, n);
        Ok(DeviceStatistics { mean: new()?, inverse: new()? })
    }
}

/// A forward pass over channels.
#[derive(Clone, Copy)]
pub(super) struct NormalizationForward<'a> {
    pub x: &'a Data,
    pub y: &'a Data,
    pub gamma: Option<&'a Data>,
    pub beta: Option<&'a Data>,
    /// Running mean and variance; those to normalize by if x's own are not used.
    pub running: Option<[&'a Data; 2]>,
    /// Normalize by the statistics of x.
    pub own: bool,
    /// Move the running statistics.
    pub update: bool,
    /// Where mean and variance of the batch go.
    pub statistics: Option<[&'a Data; 2]>,
    pub eps: f64,
    pub decay: f64,
}

/// A backward pass over channels.
#[derive(Clone, Copy)]
pub(super) struct NormalizationBackward<'a> {
    pub gy: &'a Data,
    pub x: Option<&'a Data>,
    pub gamma: Option<&'a Data>,
    /// Gradients of mean and variance themselves.
    pub gmean: Option<&'a Data>,
    pub gvariance: Option<&'a Data>,
    /// Whether gradients flow through the statistics.
    pub own: bool,
    pub to_x: Option<(&'a Data, Output)>,
    pub to_beta: Option<(&'a Data, Output)>,
    pub to_gamma: Option<(&'a Data, Output)>,
}

/// How kernels take the numbers of channels, as in `cuda/normalization.cu`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taking {
    Single,
    /// Four neighbours of a channel.
    Along,
    /// Those of four channels that lie side by side.
    Across,
}

impl Taking {
    /// Of all these arrays, the first of which says what is computed in.
    fn new(c: Channels, arrays: &[&Data]) -> Taking {
        let begins_at_four = |x: &&Data| x.address().is_multiple_of(4 * x.dtype().size() as u64);
        match c.inner {
            _ if is_double(arrays[0]) || !arrays.iter().all(begins_at_four) => Taking::Single,
            1 if c.channels.is_multiple_of(4) => Taking::Across,
            inner if inner > 0 && inner.is_multiple_of(4) => Taking::Along,
            _ => Taking::Single,
        }
    }

    /// The channels in places, each of them one or four numbers.
    fn places(self, c: Channels) -> Channels {
        match self {
            Taking::Single => c,
            Taking::Along => Channels { inner: c.inner / 4, ..c },
            Taking::Across => Channels { channels: c.channels / 4, ..c },
        }
    }

    fn named(self, stem: &str, double: bool) -> String {
        match self {
            Taking::Single => named(stem, double),
            Taking::Along => format!("{stem}_along_f32"),
            Taking::Across => format!("{stem}_across_f32"),
        }
    }
}

/// How the elements of channels are shared out: threads for a channel (or four), and parts.
struct ThreadSplit {
    taking: Taking,
    size: usize,
    parts: usize,
    grid: LaunchGrid,
}

impl ThreadSplit {
    /// A sum for each channel.
    fn new(gpu: &Gpu, c: Channels, taking: Taking) -> ThreadSplit {
        let places = taking.places(c);
        let size = match taking {
            Taking::Across => THREADS / places.channels.next_power_of_two().clamp(1, WIDE),
            _ if c.inner < SHORT => THREADS / WIDE,
            _ => THREADS,
        };
        let LaunchGrid { blocks: [blocks, ..], threads } = team::grid(places.channels, size);
        let wanted = (gpu.properties().processors * 8).div_ceil(blocks.max(1) as usize);
        let parts = places.count().div_ceil(size * 16).min(wanted).clamp(1, 1024);
        ThreadSplit { taking, size, parts, grid: LaunchGrid { blocks: [blocks, parts as u32, 1], threads } }
    }

    /// Two numbers for each part and row.
    fn found(&self, like: &Data, rows: usize) -> Result<Data> {
        Data::new_at(like.place(), DType::F64, 2 * self.parts * rows)
    }
}

/// Addresses, types and numbers as the kernels' tables have them.
#[derive(Default)]
struct Table(Vec<u8>);

impl Table {
    fn list(mut self, data: Option<&Data>) -> Table {
        let words = data.map_or([0, 0], |d| [d.address(), d.dtype() as u64]);
        self.0.extend(words.iter().flat_map(|w| w.to_le_bytes()));
        self
    }

    fn double(mut self, v: f64) -> Table {
        self.0.extend(v.to_le_bytes());
        self
    }

    fn size(mut self, v: usize) -> Table {
        self.0.extend((v as u64).to_le_bytes());
        self
    }
}

/// Four numbers for each channel, in the type to compute in.
fn coefficients(like: &Data, c: Channels) -> Result<Data> {
    Data::new_at(like.place(), compute_dtype(like.dtype()), 4 * c.channels)
}

/// `y = (x - mean) / sqrt(variance + eps) * gamma + beta`
pub(super) fn forward(c: Channels, f: NormalizationForward) -> Result<DeviceStatistics> {
    let (s, by) = statistics_of(c, f)?;
    if c.channels > 0 {
        map(c, f.x, None, f.y, &by, Output::Write)?;
    }
    Ok(s)
}

/// What backward needs, and the coefficients of the channels.
fn statistics_of(c: Channels, f: NormalizationForward) -> Result<(DeviceStatistics, Data)> {
    let (gpu, double) = (f.x.gpu(), is_double(f.x));
    let (s, by) = (DeviceStatistics::new(f.x, c.channels)?, coefficients(f.x, c)?);
    if c.channels == 0 {
        return Ok((s, by));
    }
    let split = ThreadSplit::new(gpu, c, Taking::new(c, &[f.x]));
    let found = if f.own { Some(moments(c, f.x, &split)?) } else { None };
    let table = forward_table(c, &f, &split);
    let launch = gpu.launch("normalization", &named("forward", double))?.table(&table.0)?.maybe(found.as_ref());
    let launch = launch.data(&s.mean).data(&s.inverse).data(&by);
    // SAFETY: all arrays of the table and the launch have an element for each channel, `found` one for each part, too.
    unsafe { launch.run(team::grid(c.channels, JOINING))? };
    Ok((s, by))
}

fn forward_table(c: Channels, f: &NormalizationForward, split: &ThreadSplit) -> Table {
    let (running, own) = (f.running, f.statistics);
    let table = Table::default().list(f.gamma).list(f.beta).list(running.map(|r| r[0])).list(running.map(|r| r[1]));
    let table = table.list(own.map(|s| s[0])).list(own.map(|s| s[1])).double(f.eps).double(f.decay);
    let table = table.size(c.channels).size(c.count()).size(split.parts).size(f.update as usize);
    table.size(if split.taking == Taking::Along { 4 } else { 1 })
}

fn backward_table(c: Channels, b: &NormalizationBackward, parts: usize) -> Table {
    let table = Table::default().list(b.gamma).list(b.gmean).list(b.gvariance);
    let table = table.list(b.to_beta.map(|t| t.0)).list(b.to_gamma.map(|t| t.0)).size(adds(b.to_beta));
    table.size(adds(b.to_gamma)).size(c.channels).size(c.count()).size(parts).size(b.own as usize)
}

fn moments(c: Channels, x: &Data, split: &ThreadSplit) -> Result<Data> {
    let (found, places) = (split.found(x, c.channels)?, split.taking.places(c));
    let launch = x.gpu().launch("normalization", &split.taking.named("moments", is_double(x)))?.array(x);
    let launch = launch.size(places.channels).size(places.inner.max(1)).size(places.count()); // no division by 0
    // SAFETY: x has the sizes; there is room for each part and channel.
    unsafe { launch.size(split.size).data(&found).run(split.grid)? };
    Ok(found)
}

/// The sums of gy and of gy * (x - mean) of each part and channel; `width` neighbouring channels share a mean.
fn sums(
    c: Channels,
    gy: &Data,
    x: Option<&Data>,
    mean: &Data,
    width: usize,
    split: &ThreadSplit,
    found: &Data,
) -> Result<()> {
    let (places, name) = (split.taking.places(c), split.taking.named("sums", is_double(gy)));
    let launch = gy.gpu().launch("normalization", &name)?.array(gy).maybe_array(x).data(mean);
    let launch = launch.size(width).size(places.channels).size(places.inner).size(places.count());
    // SAFETY: the arrays have the sizes; there is room for each part and channel.
    unsafe { launch.size(split.size).data(found).run(split.grid) }
}

/// Applies the coefficients of the channels.
fn map(c: Channels, a: &Data, x: Option<&Data>, y: &Data, by: &Data, output: Output) -> Result<()> {
    if y.is_empty() {
        return Ok(());
    }
    let gpu = y.gpu();
    let taking = Taking::new(c, &[&[y, a], x.as_slice()].concat());
    let places = taking.places(c);
    let n = places.size();
    let launch = gpu.launch("normalization", &taking.named("map", is_double(y)))?.array(a).maybe_array(x).array(y);
    let launch = launch.size(n).size(places.channels).size(places.inner).data(by).flag(output == Output::Accumulate);
    // SAFETY: the arrays have the sizes of the channels.
    unsafe { launch.run(gpu.grid(n)) }
}

fn adds(to: Option<(&Data, Output)>) -> usize {
    to.is_some_and(|(_, output)| output == Output::Accumulate) as usize
}

/// The gradients of x, beta and gamma. That of x may lie over that of y.
pub(super) fn backward(c: Channels, s: &DeviceStatistics, b: NormalizationBackward) -> Result<()> {
    let (gpu, double) = (b.gy.gpu(), is_double(b.gy));
    if c.channels == 0 {
        return Ok(());
    }
    let split = ThreadSplit::new(gpu, c, Taking::new(c, &[&[b.gy], b.x.as_slice()].concat()));
    let found = split.found(b.gy, c.channels)?;
    if c.count() > 0 {
        sums(c, b.gy, b.x, &s.mean, 1, &split, &found)?;
    }
    let parts = if c.count() > 0 { split.parts } else { 0 };
    let table = backward_table(c, &b, parts);
    let by = coefficients(b.gy, c)?;
    let launch = gpu.launch("normalization", &named("backward", double))?.table(&table.0)?.data(&found);
    let launch = launch.data(&s.mean).data(&s.inverse).data(&by);
    // SAFETY: as in `forward`.
    unsafe { launch.run(team::grid(c.channels, JOINING))? };
    match b.to_x {
        Some((gx, output)) => map(c, b.gy, b.x.filter(|_| b.own), gx, &by, output),
        None => Ok(()),
    }
}

/// Normalizes rows, whose elements have a scale and a shift each; mean and variance of the rows go to `statistics`.
pub(super) fn rows_forward(
    layer: LayerRows,
    x: &Data,
    y: &Data,
    [gamma, beta]: [Option<&Data>; 2],
    statistics: Option<[&Data; 2]>,
    eps: f64,
) -> Result<DeviceStatistics> {
    let gpu = x.gpu();
    let s = DeviceStatistics::new(x, layer.rows)?;
    if layer.rows == 0 {
        return Ok(s);
    }
    let size = team::size(gpu, layer.rows, layer.width, true);
    let launch = gpu.launch("normalization", &named("rows_forward", is_double(x)))?.array(x).array(y);
    let launch = launch.maybe_array(gamma).maybe_array(beta).data(&s.mean).data(&s.inverse);
    let launch = launch.maybe(statistics.map(|s| s[0])).maybe_array(statistics.map(|s| s[1]));
    let launch = launch.size(layer.rows).size(layer.width).double(eps).size(size);
    // SAFETY: the arrays have the sizes of the rows.
    unsafe { launch.run(team::grid(layer.rows, size))? };
    Ok(s)
}

/// What the gradients of rows are made of.
#[derive(Clone, Copy)]
pub(super) struct RowsBackward<'a> {
    pub gy: &'a Data,
    pub x: &'a Data,
    pub gamma: Option<&'a Data>,
    pub gmean: Option<&'a Data>,
    pub gvariance: Option<&'a Data>,
    pub to_x: Option<(&'a Data, Output)>,
    pub to_beta: Option<(&'a Data, Output)>,
    pub to_gamma: Option<(&'a Data, Output)>,
}

/// The gradients of x, beta and gamma. That of x may lie over that of y.
pub(super) fn rows_backward(layer: LayerRows, s: &DeviceStatistics, b: RowsBackward) -> Result<()> {
    let gpu = b.gy.gpu();
    if b.to_beta.is_some() || b.to_gamma.is_some() {
        sums_of_rows(layer, s, b)?;
    }
    let Some((gx, output)) = b.to_x.filter(|(gx, _)| !gx.is_empty()) else { return Ok(()) };
    let size = team::size(gpu, layer.rows, layer.width, true);
    let launch = gpu.launch("normalization", &named("rows_backward", is_double(gx)))?.array(b.gy).array(b.x);
    let launch = launch.maybe_array(b.gamma).data(&s.mean).data(&s.inverse);
    let launch = launch.maybe_array(b.gmean).maybe_array(b.gvariance).array(gx);
    let launch = launch.size(layer.rows).size(layer.width).size(size).flag(output == Output::Accumulate);
    // SAFETY: the arrays have the sizes of the rows.
    unsafe { launch.run(team::grid(layer.rows, size)) }
}

/// The gradients of beta and gamma.
fn sums_of_rows(layer: LayerRows, s: &DeviceStatistics, b: RowsBackward) -> Result<()> {
    let (gpu, double, width) = (b.gy.gpu(), is_double(b.gy), layer.width);
    if width == 0 || layer.rows == 0 {
        let zero = |(to, output): (&Data, Output)| match output {
            Output::Write => convert::fill(to, 0.0),
            Output::Accumulate => Ok(()),
        };
        return [b.to_beta, b.to_gamma].into_iter().flatten().try_for_each(zero);
    }
    let columns = Channels { outer: layer.rows, channels: width, inner: 1 };
    let split = ThreadSplit::new(gpu, columns, Taking::Single);
    let found = split.found(b.gy, width)?;
    let x = b.to_gamma.map(|_| b.x);
    let launch = gpu.launch("normalization", &named("rows_sums", double))?.array(b.gy).maybe_array(x);
    let launch = launch.data(&s.mean).data(&s.inverse).size(layer.rows).size(width).size(split.size).data(&found);
    // SAFETY: the arrays have the sizes of the rows; there is room for each part and column.
    unsafe { launch.run(split.grid)? };
    let launch =
        gpu.launch("normalization", &named("rows_deliver", double))?.data(&found).size(split.parts).size(width);
    let launch = launch.maybe_array(b.to_beta.map(|t| t.0)).size(adds(b.to_beta));
    let launch = launch.maybe_array(b.to_gamma.map(|t| t.0)).size(adds(b.to_gamma));
    // SAFETY: as above.
    unsafe { launch.run(gpu.grid(width)) }
}
