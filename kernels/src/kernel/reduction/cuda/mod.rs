//! Reductions over axes on a GPU.

mod extreme;

use crate::array::Data;
use crate::array::Output;
use crate::cuda::driver::LaunchGrid;
use crate::dtype::DType;
use crate::dtype::compute_dtype;
use crate::error::{Error, Result};
use crate::shape::Shape;
pub(super) use extreme::{ArgmaxOutputs, product_backward, search, spread};
use smallvec::SmallVec;

/// What is made of the elements; the numbers are those of `Reduction` in `cuda/reduction.cu`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum DeviceReduction {
    Sum,
    Product,
    Max,
    Min,
    SumAbs,
    SumSquares,
    CountInf,
    CountNan,
    CountOdd,
}

/// Sizes and strides.
pub type ReductionWalk = SmallVec<[(usize, usize); 8]>;

/// Axes that a kernel has room for, on each side.
const AXES: usize = 8;
/// Elements that one thread reduces on its own.
const SHORT: usize = 32;
/// Elements of a part, where there are too few outputs to fill the device.
const PART: usize = 1 << 11;

/// The axes of `shape` that stay and those that are reduced, neighbours merged.
pub fn split(shape: &Shape, mask: &[bool]) -> (ReductionWalk, ReductionWalk) {
    let (mut kept, mut reduced) = (ReductionWalk::new(), ReductionWalk::new());
    let mut before = None;
    for ((&n, stride), &r) in shape.iter().zip(shape.strides()).zip(mask).filter(|((n, _), _)| **n != 1) {
        let list = if r { &mut reduced } else { &mut kept };
        match list.last_mut() {
            Some(last) if before == Some(r) => *last = (last.0 * n, stride),
            _ => list.push((n, stride)),
        }
        before = Some(r);
    }
    (kept, reduced)
}

pub fn table(kept: &ReductionWalk, reduced: &ReductionWalk) -> Result<Vec<u8>> {
    if kept.len().max(reduced.len()) > AXES {
        return Err(Error::unsupported(format!(
            "a reduction over more than {AXES} separate axes has no kernel on a GPU"
        )));
    }
    let column = |walk: &ReductionWalk, pick: fn(&(usize, usize)) -> usize| -> Vec<u64> {
        walk.iter().map(|a| pick(a) as u64).chain(std::iter::repeat(0)).take(AXES).collect()
    };
    let mut words = vec![kept.len() as u64, reduced.len() as u64];
    for walk in [kept, reduced] {
        words.extend(column(walk, |a| a.0));
        words.extend(column(walk, |a| a.1));
    }
    Ok(words.into_iter().flat_map(u64::to_le_bytes).collect())
}

/// Reduces `x` of `shape` over the axes of `mask` into `y`, times `scale`; in double if `y` is.
pub fn reduce(
    op: DeviceReduction,
    x: &Data,
    shape: &Shape,
    mask: &[bool],
    y: &Data,
    scale: f64,
    output: Output,
) -> Result<()> {
    let (kept, reduced) = split(shape, mask);
    let (outputs, n): (usize, usize) = (kept.iter().map(|a| a.0).product(), reduced.iter().map(|a| a.0).product());
    assert_eq!(outputs, y.len(), "a reduction's outputs");
    if outputs == 0 {
        return Ok(());
    }
    let parts = parts(x, outputs, n);
    if parts == 1 {
        return launch(op, x, &table(&kept, &reduced)?, n, outputs, 1, y, scale, output);
    }
    // The sums of the parts lie one after the other: outputs as rows.
    let sums = Data::new_at(x.place(), compute_dtype(y.dtype()), parts * outputs)?;
    launch(op, x, &table(&kept, &reduced)?, n, outputs, parts, &sums, 1.0, Output::Write)?;
    let whole = if op as usize > DeviceReduction::Min as usize { DeviceReduction::Sum } else { op };
    let rows = table(&[(outputs, 1)].into_iter().collect(), &[(parts, outputs)].into_iter().collect())?;
    launch(whole, &sums, &rows, parts, outputs, 1, y, scale, output)
}

/// How many blocks share in one output.
fn parts(x: &Data, outputs: usize, n: usize) -> usize {
    let idle = (x.gpu().properties().processors * 2).div_ceil(outputs);
    n.div_ceil(PART).min(idle).clamp(1, 1024)
}

fn launch(
    op: DeviceReduction,
    x: &Data,
    axes: &[u8],
    n: usize,
    outputs: usize,
    parts: usize,
    y: &Data,
    scale: f64,
    output: Output,
) -> Result<()> {
    let gpu = x.gpu();
    let double = y.dtype() == DType::F64;
    let short = n <= SHORT;
    let name = match (short, double) {
        (true, false) => "reduce_short_f32",
        (true, true) => "reduce_short_f64",
        (false, false) => "reduce_f32",
        (false, true) => "reduce_f64",
    };
    let launch = gpu.launch("reduction", name)?.long(op as i64).array(x).table(axes)?.size(n);
    let launch = if short { launch.size(outputs) } else { launch };
    let launch = launch.array(y).double(scale).flag(output == Output::Accumulate);
    let threads = n.next_power_of_two().clamp(32, 256);
    let grid = if short {
        gpu.grid(outputs)
    } else {
        LaunchGrid { blocks: [outputs as u32, parts as u32, 1], threads: [threads as u32, 1, 1] }
    };
    // SAFETY: x has the elements that the axes walk over, y one for each output and part.
    unsafe { launch.run(grid) }
}

/// Sums `x` of shape `from` down to shape `to`, which broadcasts to it.
pub fn sum_to(x: &Data, from: &Shape, y: &Data, to: &Shape, output: Output) -> Result<()> {
    let lead = from.ndim() - to.ndim();
    let mask: SmallVec<[bool; 6]> = (0..from.ndim()).map(|i| i < lead || (to[i - lead] == 1 && from[i] != 1)).collect();
    reduce(DeviceReduction::Sum, x, from, &mask, y, 1.0, output)
}
