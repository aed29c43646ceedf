//! Threads in teams, each of which works on a row: see `cuda/team.cuh`.

use super::Gpu;
use super::driver::LaunchGrid;
use crate::array::Data;
use crate::dtype::DType;

/// Threads of a block.
pub(crate) const THREADS: usize = 256;
/// Threads that keep a multiprocessor busy.
const BUSY: usize = 2048;

/// How many threads share a row of `n` elements, which are neighbours in memory, or lie beside those of the next row.
pub(crate) fn size(gpu: &Gpu, rows: usize, n: usize, neighbours: bool) -> usize {
    let busy = gpu.properties().processors * BUSY;
    if !neighbours {
        return if n < 8 || rows >= busy { 1 } else { 8 };
    }
    let most = if n > 1024 || rows * 32 < busy { THREADS } else { 32 };
    n.div_ceil(4).next_power_of_two().min(most)
}

/// Blocks of teams of that size for all rows.
pub(crate) fn grid(rows: usize, size: usize) -> LaunchGrid {
    LaunchGrid::new(rows.div_ceil(THREADS / size), THREADS)
}

/// The kernel of `double` or of float numbers.
pub(crate) fn named(stem: &str, double: bool) -> String {
    format!("{stem}_{}", if double { "f64" } else { "f32" })
}

/// Whether kernels compute in double.
pub(crate) fn is_double(x: &Data) -> bool {
    x.dtype() == DType::F64
}
