//! Rows of a table by their numbers on a GPU, and the gradient of the table: also for `gather` and its kin.

pub mod indices;
mod sort;

use super::Picks;
use crate::array::Data;
use crate::array::Output;
use crate::cuda::convert;
use crate::cuda::driver::LaunchGrid;
use crate::dtype::DType;
use crate::dtype::compute_dtype;
use crate::error::{Error, Result};
use std::borrow::Cow;

/// What becomes of a row whose number is none of the table's: looking for one would have the host wait for the device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OutOfRange {
    Nan,
    Zero,
}

/// The largest words of 16 bytes at most in which `bytes` bytes can be copied between the arrays.
fn word(bytes: usize, arrays: &[&Data]) -> usize {
    let whole =
        |size: usize| bytes.is_multiple_of(size) && arrays.iter().all(|a| a.address().is_multiple_of(size as u64));
    [16, 8, 4].into_iter().find(|&size| whole(size)).unwrap_or(2)
}

/// The rows of `w` that the numbers `x` name, one after the other.
pub fn gather(p: &Picks, x: &Data, w: &Data, y: &Data, absent: OutOfRange) -> Result<()> {
    if y.is_empty() {
        return Ok(());
    }
    let (gpu, bytes) = (y.gpu(), p.inner * w.dtype().size());
    let size = word(bytes, &[w, y]);
    let n = y.len() * w.dtype().size() / size;
    let launch = gpu.launch("gather", "gather")?.data(x).data(w).size(p.outer).size(p.n).size(p.picks);
    let launch = launch.size(bytes / size).data(y).size(size).flag(absent == OutOfRange::Nan);
    // SAFETY: y has a row for each number and block, and w rows of that many words.
    unsafe { launch.size(n).run(gpu.grid(n)) }
}

/// Writes rows of `width` elements to those of `y` at the indices `numbers`, zeros if there is no `x`. Of several for one the
/// last one stays; numbers that are no row's are left out.
pub fn put(numbers: &Data, x: Option<&Data>, width: usize, y: &Data) -> Result<()> {
    if y.is_empty() || numbers.is_empty() {
        return Ok(());
    }
    let (gpu, rows, bytes) = (y.gpu(), y.len() / width, width * y.dtype().size());
    if numbers.len() >= u32::MAX as usize {
        return Err(Error::unsupported("writing to 2^32 places and more has no kernel on a GPU"));
    }
    let last = Data::new_at(y.place(), DType::U32, rows)?;
    convert::fill(&last, 0.0)?;
    let launch = gpu.launch("gather", "gather_last")?.data(numbers).size(rows).data(&last);
    // SAFETY: one element for each row; other numbers are left out.
    unsafe { launch.size(numbers.len()).run(gpu.grid(numbers.len()))? };
    let size = word(bytes, &[x.unwrap_or(y), y]);
    let n = numbers.len() * bytes / size;
    let launch = gpu.launch("gather", "gather_put")?.data(numbers).data(&last).maybe(x).size(rows);
    // SAFETY: x has a row for each number, y that many rows.
    unsafe { launch.size(bytes / size).data(y).size(size).size(n).run(gpu.grid(n)) }
}

/// Threads of a block.
const THREADS: usize = 256;

/// Adds rows to those they came from: the reverse of [`gather`]. Numbers that are no row's are left out.
pub fn scatter(p: &Picks, x: &Data, gy: &Data, gw: &Data, output: Output) -> Result<()> {
    if gw.is_empty() {
        return Ok(());
    }
    if output == Output::Write {
        convert::fill(gw, 0.0)?;
    }
    if x.is_empty() {
        return Ok(());
    }
    // Blocks of a batch are as columns: their numbers are the same.
    let (n, rows, width) = (x.len(), p.batch * p.n, p.outer * p.inner);
    let numbers = match p.batch {
        1 => Cow::Borrowed(x),
        _ => Cow::Owned(indices::along(x, &[p.batch, p.picks], &[p.n, 1], 1, p.n)?),
    };
    let (gpu, sorted) = (gw.gpu(), sort::rows(&numbers, rows)?);
    // Chunks that one thread sums on its own: so many that summing the chunks of one number does not take longer.
    let length = n.isqrt().next_power_of_two().clamp(32, 1024);
    let chunks = n.div_ceil(length);
    let wide = width.next_power_of_two().min(THREADS);
    let kept = if chunks == 1 { 1 } else { 2 * chunks * width };
    let parts = Data::new_at(gw.place(), compute_dtype(gw.dtype()), kept)?;
    let grid = LaunchGrid::new(chunks.div_ceil(THREADS / wide) * width.div_ceil(wide), THREADS);
    let double = gw.dtype() == DType::F64;
    let add = output == Output::Accumulate;
    let name = if double { "gather_runs_f64" } else { "gather_runs_f32" };
    let launch = gpu.launch("gather", name)?.data(&sorted.keys).data(&sorted.order).size(n).size(rows).size(length);
    let launch = launch.size(wide).array(gy).size(p.outer).size(p.n).size(p.picks).size(width);
    // SAFETY: n keys, each with a row of gy; a row of gw for each key below `rows`; two rows of parts for each chunk.
    unsafe { launch.data(&parts).array(gw).flag(add).run(grid)? };
    if chunks == 1 {
        return Ok(());
    }
    let name = if double { "gather_joins_f64" } else { "gather_joins_f32" };
    let launch = gpu.launch("gather", name)?.data(&sorted.keys).size(n).size(rows).size(length).size(wide);
    let launch = launch.size(p.outer).size(p.n).size(p.picks).size(width);
    // SAFETY: as above.
    unsafe { launch.data(&parts).array(gw).flag(add).run(grid) }
}
