//! Sorting on a GPU: stable, so the result does not depend on timing.

use crate::array::Data;
use crate::cuda::driver::LaunchGrid;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Elements of a block, as in `cuda/gather_sort.cu`.
const TILE: usize = 2048;

/// Numbers in order, and where each of them was.
pub struct Sorted {
    pub keys: Data,
    pub order: Data,
}

/// Sorts row numbers (`i64`) below `rows`; all others become `rows`, and so come last.
pub fn rows(x: &Data, rows: usize) -> Result<Sorted> {
    let n = x.len();
    if n.max(rows) >= 1 << 31 {
        return Err(Error::unsupported("sorting 2^31 numbers and more has no kernel on a GPU"));
    }
    let (gpu, blocks) = (x.gpu(), n.div_ceil(TILE));
    let scratch = |n: usize| Data::new_at(x.place(), DType::U32, n);
    let pair = || Ok::<_, Error>(Sorted { keys: scratch(n)?, order: scratch(n)? });
    let (mut from, mut to, counts) = (pair()?, pair()?, scratch(256 * blocks)?);
    let launch = gpu.launch("gather_sort", "sort_keys")?.data(x).size(n).size(rows).data(&from.keys).data(&from.order);
    // SAFETY: the arrays have n elements.
    unsafe { launch.run(gpu.grid(n))? };
    let bits = (usize::BITS - rows.leading_zeros()) as usize;
    for shift in (0..bits).step_by(8) {
        let tiles = LaunchGrid::new(blocks, 256);
        let launch = gpu.launch("gather_sort", "sort_count")?.data(&from.keys).size(n).size(shift).data(&counts);
        // SAFETY: a count for each digit and block; n keys.
        unsafe { launch.run(tiles)? };
        // SAFETY: that many counts.
        unsafe {
            gpu.launch("gather_sort", "sort_scan")?.data(&counts).size(counts.len()).run(LaunchGrid::new(1, 1024))?
        };
        let launch = gpu.launch("gather_sort", "sort_place")?.data(&from.keys).data(&from.order).size(n).size(shift);
        // SAFETY: n keys and places on both sides; the counts lead to each of them once.
        unsafe { launch.data(&counts).data(&to.keys).data(&to.order).run(tiles)? };
        std::mem::swap(&mut from, &mut to);
    }
    Ok(from)
}
