//! Largest and smallest elements over axes on a GPU, and the gradient of products.

use super::{ReductionWalk, split, table};
use crate::array::Data;
use crate::array::Output;
use crate::cuda::driver::LaunchGrid;
use crate::cuda::team::{self, is_double, named};
use crate::cuda::{Gpu, convert};
use crate::dtype::DType;
use crate::dtype::compute_dtype;
use crate::error::Result;
use crate::kernel::reduction::cpu::Extremum;
use crate::shape::Shape;

/// Elements of a part, where there are too few outputs to fill the device.
const PART: usize = 1 << 14;

/// Where the winners go: their values, and their numbers among the reduced elements.
#[derive(Clone, Copy, Default)]
pub struct ArgmaxOutputs<'a> {
    pub values: Option<&'a Data>,
    pub indices: Option<&'a Data>,
}

/// A reduction: merged axes, outputs, elements of each.
struct ExtremeGeometry {
    table: Vec<u8>,
    outputs: usize,
    n: usize,
    /// The elements of an output are neighbours.
    neighbours: bool,
}

impl ExtremeGeometry {
    fn new(shape: &Shape, mask: &[bool]) -> Result<ExtremeGeometry> {
        let (kept, reduced) = split(shape, mask);
        let count = |w: &ReductionWalk| w.iter().map(|a| a.0).product();
        let neighbours = reduced.last().is_none_or(|a| a.1 == 1);
        Ok(ExtremeGeometry { table: table(&kept, &reduced)?, outputs: count(&kept), n: count(&reduced), neighbours })
    }

    fn is_empty(&self) -> bool {
        self.outputs == 0 || self.n == 0
    }
}

fn smallest(order: Extremum) -> bool {
    order == Extremum::Smallest
}

/// How many blocks share in one output.
fn parts(gpu: &Gpu, outputs: usize, n: usize) -> usize {
    let idle = (gpu.properties().processors * 4).div_ceil(outputs);
    n.div_ceil(PART).min(idle).clamp(1, 1024)
}

/// Finds the winner of each output; NaN loses, of equal elements the first wins.
pub fn search(order: Extremum, x: &Data, shape: &Shape, mask: &[bool], to: ArgmaxOutputs) -> Result<()> {
    let axes = ExtremeGeometry::new(shape, mask)?;
    if axes.is_empty() {
        return Ok(());
    }
    let parts = parts(x.gpu(), axes.outputs, axes.n);
    if parts == 1 {
        return search_parts(order, x, &axes, 1, to);
    }
    let values = Data::new_at(x.place(), compute_dtype(x.dtype()), parts * axes.outputs)?;
    let indices = Data::new_at(x.place(), DType::I64, values.len())?;
    let found = ArgmaxOutputs { values: Some(&values), indices: Some(&indices) };
    search_parts(order, x, &axes, parts, found)?;
    let gpu = x.gpu();
    let launch = gpu.launch("reduction_extreme", &named("choose", is_double(x)))?.flag(smallest(order)).data(&values);
    let launch = launch.data(&indices).size(parts).size(axes.outputs);
    let launch = launch.maybe_array(to.values).maybe_array(to.indices);
    // SAFETY: each of the arrays has an element for each output, those of the parts for each part.
    unsafe { launch.run(gpu.grid(axes.outputs)) }
}

fn search_parts(order: Extremum, x: &Data, axes: &ExtremeGeometry, parts: usize, to: ArgmaxOutputs) -> Result<()> {
    let (gpu, n) = (x.gpu(), axes.n.div_ceil(parts));
    let size = team::size(gpu, axes.outputs * parts, n, axes.neighbours);
    let launch = gpu.launch("reduction_extreme", &named("search", is_double(x)))?.flag(smallest(order)).array(x);
    let launch = launch.table(&axes.table)?.size(axes.n).size(axes.outputs).size(size).flag(axes.neighbours);
    let launch = launch.maybe_array(to.values).maybe_array(to.indices);
    let LaunchGrid { blocks: [blocks, ..], threads } = team::grid(axes.outputs, size);
    // SAFETY: x has the elements that the axes walk over; the others have one for each output and part.
    unsafe { launch.run(LaunchGrid { blocks: [blocks, parts as u32, 1], threads }) }
}

/// Writes or adds each output's gradient, 1 without `gy`, at its winner.
pub fn spread(
    order: Extremum,
    x: &Data,
    shape: &Shape,
    mask: &[bool],
    gy: Option<&Data>,
    gx: &Data,
    output: Output,
) -> Result<()> {
    if output == Output::Write {
        convert::fill(gx, 0.0)?;
    }
    let axes = ExtremeGeometry::new(shape, mask)?;
    if axes.is_empty() {
        return Ok(());
    }
    let gpu = gx.gpu();
    let index = Data::new_at(gx.place(), DType::I64, axes.outputs)?;
    search(order, x, shape, mask, ArgmaxOutputs { values: None, indices: Some(&index) })?;
    let launch = gpu.launch("reduction_extreme", &named("spread", is_double(gx)))?.data(&index).table(&axes.table)?;
    // SAFETY: gx has the elements that the axes walk over; `search` made the indices.
    unsafe { launch.size(axes.outputs).maybe_array(gy).array(gx).run(gpu.grid(axes.outputs)) }
}

/// The gradient of a product over axes.
pub fn product_backward(x: &Data, shape: &Shape, mask: &[bool], gy: &Data, gx: &Data, output: Output) -> Result<()> {
    let axes = ExtremeGeometry::new(shape, mask)?;
    if axes.is_empty() {
        return Ok(());
    }
    let gpu = x.gpu();
    let left = Data::new_at(x.place(), compute_dtype(x.dtype()), x.len())?;
    let size = axes.n.div_ceil(8).next_power_of_two().min(team::THREADS);
    let launch =
        gpu.launch("reduction_extreme", &named("product_backward", is_double(x)))?.array(x).table(&axes.table)?;
    let launch = launch.size(axes.n).size(axes.outputs).size(size).array(gy).array(gx).data(&left);
    // SAFETY: x, gx and the scratch have the elements that the axes walk over, gy one for each output.
    unsafe { launch.flag(output == Output::Accumulate).run(team::grid(axes.outputs, size)) }
}
