//! Rows of a table by their numbers on a GPU, and the gradient of the table.

use super::driver::Grid;
use super::{kernels, sort};
use crate::array::Data;
use crate::context::compute_dtype;
use crate::dtype::DType;
use crate::error::Result;
use crate::function::Output;

/// `y[i] = w[x[i]]` for rows of `width` elements. A number that is no row's gives NaN: looking for one would have the host
/// wait for the device.
pub(crate) fn gather(x: &Data, w: &Data, width: usize, y: &Data) -> Result<()> {
    if y.is_empty() {
        return Ok(());
    }
    let (gpu, bytes) = (y.gpu(), width * w.dtype().size());
    let fits = |size: &usize| [bytes as u64, w.address(), y.address()].iter().all(|v| v.is_multiple_of(*size as u64));
    let size = [16, 8, 4].into_iter().find(fits).unwrap_or(2);
    let (words, n) = (bytes / size, y.len() * w.dtype().size() / size);
    let launch = gpu.launch("embed", "embed")?.data(x).data(w).size(w.len() / width).size(words).data(y).size(size);
    // SAFETY: y has a row for each number, and w rows of that many words.
    unsafe { launch.size(n).run(gpu.grid(n)) }
}

/// Threads of a block.
const THREADS: usize = 256;

/// Adds rows to those they came from: `gw[x[i]] += gy[i]`. Numbers that are no row's are left out.
pub(crate) fn scatter(x: &Data, gy: &Data, width: usize, gw: &Data, output: Output) -> Result<()> {
    if gw.is_empty() {
        return Ok(());
    }
    if output == Output::Write {
        kernels::fill(gw, 0.0)?;
    }
    let (n, rows) = (x.len(), gw.len() / width);
    if n == 0 {
        return Ok(());
    }
    let (gpu, sorted) = (gw.gpu(), sort::rows(x, rows)?);
    // Chunks that one thread sums on its own: so many that summing the chunks of one number does not take longer.
    let length = n.isqrt().next_power_of_two().clamp(32, 1024);
    let chunks = n.div_ceil(length);
    let wide = width.next_power_of_two().min(THREADS);
    let parts = Data::new_at(gw.place(), compute_dtype(gw.dtype()), 2 * chunks * width)?;
    let blocks = [chunks.div_ceil(THREADS / wide) as u32, width.div_ceil(wide) as u32, 1];
    let grid = Grid { blocks, threads: [THREADS as u32, 1, 1] };
    let double = gw.dtype() == DType::F64;
    let add = output == Output::Accumulate;
    let name = if double { "embed_runs_f64" } else { "embed_runs_f32" };
    let launch = gpu.launch("embed", name)?.data(&sorted.keys).data(&sorted.order).size(n).size(rows).size(length);
    let launch = launch.size(wide).array(gy).size(width).data(&parts).array(gw).flag(add);
    // SAFETY: n keys, each with a row of gy; a row of gw for each key below `rows`; two rows of parts for each chunk.
    unsafe { launch.run(grid)? };
    if chunks == 1 {
        return Ok(());
    }
    let name = if double { "embed_joins_f64" } else { "embed_joins_f32" };
    let launch = gpu.launch("embed", name)?.data(&sorted.keys).size(n).size(rows).size(length).size(wide).size(width);
    // SAFETY: as above.
    unsafe { launch.data(&parts).array(gw).flag(add).run(grid) }
}
