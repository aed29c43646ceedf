//! On a GPU: bitonic sorting of keys and places, lines padded to a power of two. Steps between elements of one tile are done
//! in shared memory, the others in a launch each.

use super::{Order, TopK};
use crate::array::Data;
use crate::cuda::driver::LaunchGrid;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::axis::Axis;

/// Elements that a block sorts in shared memory, as in `cuda/sort.cu`, and its threads.
const TILE: usize = 1024;
const THREADS: usize = TILE / 2;

/// Lines in order, `width` entries apart: the first ones are the line's.
struct SortedLines {
    keys: Data,
    places: Data,
    width: usize,
}

fn entries(at: Axis, order: Order, x: &Data) -> Result<SortedLines> {
    let (gpu, lines, width) = (x.gpu(), at.outer * at.inner, at.n.next_power_of_two());
    let total = lines.checked_mul(width).and_then(|n| n.checked_next_multiple_of(TILE));
    let total = total.ok_or_else(|| Error::unsupported("sorting so many elements has no kernel on a GPU"))?;
    let keys = Data::new_at(x.place(), DType::U64, total)?;
    let places = Data::new_at(x.place(), DType::U32, total)?;
    let launch = gpu.launch("sort", "line_keys")?.array(x).size(lines).size(at.n).size(at.inner).size(width);
    let launch = launch.flag(order.magnitudes).flag(order.reverse).data(&keys).data(&places).size(total);
    // SAFETY: x has the sizes around the axis; `total` keys and places.
    unsafe { launch.run(gpu.grid(total))? };
    let tiles = LaunchGrid::new(total / TILE, THREADS);
    let launch = |name, size: usize, gap: usize| {
        Ok::<_, Error>(gpu.launch("sort", name)?.data(&keys).data(&places).size(width).size(size).size(gap))
    };
    // SAFETY: whole tiles.
    unsafe { launch("line_tiles", 2, 0)?.run(tiles)? };
    let mut size = 2 * TILE;
    while size <= width {
        let mut gap = size / 2;
        while gap >= TILE {
            // SAFETY: a pair of elements for each thread.
            unsafe { launch("line_step", size, gap)?.size(total / 2).run(gpu.grid(total / 2))? };
            gap /= 2;
        }
        // SAFETY: whole tiles.
        unsafe { launch("line_tiles", size, 0)?.run(tiles)? };
        size *= 2;
    }
    Ok(SortedLines { keys, places, width })
}

/// The places of the elements of each line in order, `at.n` to the next power of two a line: those of its own come first.
pub(in crate::kernel) fn order_of_lines(at: Axis, order: Order, x: &Data) -> Result<Data> {
    Ok(entries(at, order, x)?.places)
}

pub(super) fn sort(at: Axis, order: Order, x: &Data, values: Option<&Data>, indices: Option<&Data>) -> Result<()> {
    if x.is_empty() {
        return Ok(());
    }
    let (gpu, found) = (x.gpu(), entries(at, order, x)?);
    let launch = gpu.launch("sort", "line_values")?.data(&found.places).size(found.width).array(x).maybe_array(values);
    let launch = launch.maybe(indices).size(x.len()).size(at.n).size(at.inner);
    // SAFETY: arrays of x's size; a place for each element.
    unsafe { launch.run(gpu.grid(x.len())) }
}

pub(super) fn top_k(c: &TopK, x: &Data, y: &Data, indices: Option<&Data>) -> Result<()> {
    if x.is_empty() {
        return Ok(());
    }
    let (gpu, count) = (x.gpu(), c.rows * c.k);
    let found = entries(Axis { outer: c.rows, n: c.n, inner: 1 }, c.order, x)?;
    let launch = gpu.launch("sort", "top_values")?.data(&found.places).size(found.width).array(x).array(y);
    let launch = launch.maybe(indices).size(count).size(c.n).size(c.k).flag(c.reduce);
    // SAFETY: rows of n elements; k places each.
    unsafe { launch.run(gpu.grid(count)) }
}

pub(super) fn prune(rank: usize, x: &Data, y: &Data) -> Result<()> {
    if x.is_empty() {
        return Ok(());
    }
    let order = Order { magnitudes: true, reverse: false };
    let found = entries(Axis { outer: 1, n: x.len(), inner: 1 }, order, x)?;
    let gpu = x.gpu();
    let launch = gpu.launch("sort", "prune")?.data(&found.keys).data(&found.places).size(rank).array(x).array(y);
    // SAFETY: arrays of one size; as many keys.
    unsafe { launch.size(x.len()).run(gpu.grid(x.len())) }
}
