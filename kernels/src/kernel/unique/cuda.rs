//! On a GPU: slices in their order by bitonic sorting, then the places where one differs from the one before it.

use super::Unique;
use crate::array::Data;
use crate::call::ViewMut;
use crate::cuda::convert;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::axis::Axis;
use crate::kernel::gather::cuda::indices::chosen;
use crate::kernel::sort::{Order, order_of_lines};

/// The numbers of all slices in their order, equal ones in the order of their places; more behind that mean nothing.
fn order(c: &Unique, x: &Data) -> Result<Data> {
    if c.is_of_elements() {
        return order_of_lines(c.at, Order { magnitudes: false, reverse: false }, x);
    }
    let (gpu, n, total) = (x.gpu(), c.at.n, c.at.n.next_power_of_two());
    let places = Data::new_at(x.place(), DType::U32, total)?;
    // SAFETY: `total` places.
    unsafe { gpu.launch("unique", "slice_places")?.data(&places).size(total).run(gpu.grid(total))? };
    let mut size = 2;
    while size <= total {
        let mut gap = size / 2;
        while gap > 0 {
            let launch = gpu.launch("unique", "slice_step")?.data(&places).size(size).size(gap).size(total / 2);
            let launch = launch.array(x).size(n).size(c.at.inner).size(c.at.outer * c.at.inner);
            // SAFETY: a pair of places for each thread; x has the sizes around the axis.
            unsafe { launch.run(gpu.grid(total / 2))? };
            gap /= 2;
        }
        size *= 2;
    }
    Ok(places)
}

/// The groups of equal slices.
struct Groups {
    places: Data,
    /// Where each begins in the order, and one more.
    starts: Data,
    /// The first slice of each.
    begins: Data,
    /// The same as they come in the result.
    firsts: Data,
}

fn groups(c: &Unique, x: &Data) -> Result<Groups> {
    let (gpu, at, Axis { outer, n, inner }) = (x.gpu(), x.place(), c.at);
    let places = order(c, x)?;
    let heads = Data::new_at(at, DType::U8, n)?;
    let launch = gpu.launch("unique", "slice_heads")?.data(&places).array(x).size(n).size(inner).size(outer * inner);
    // SAFETY: n places, and a number for each.
    unsafe { launch.data(&heads).run(gpu.grid(n))? };
    let starts = chosen(&heads, c.count + 1)?;
    let begins = Data::new_at(at, DType::I64, c.count)?;
    if c.count == 0 {
        return Ok(Groups { places, starts, firsts: begins.clone(), begins });
    }
    let marks = if c.sorted { None } else { Some(heads) };
    marks.as_ref().map_or(Ok(()), |marks| convert::fill(marks, 0.0))?;
    let launch = gpu.launch("unique", "slice_firsts")?.data(&places).data(&starts).size(c.count).data(&begins);
    // SAFETY: as many starts and firsts as groups; a mark for each slice.
    unsafe { launch.maybe(marks.as_ref()).run(gpu.grid(c.count))? };
    let firsts = marks.map_or_else(|| Ok(begins.clone()), |marks| chosen(&marks, c.count))?;
    Ok(Groups { places, starts, begins, firsts })
}

pub(super) fn unique(c: &Unique, x: &Data, y: &mut [ViewMut]) -> Result<()> {
    let (gpu, Axis { n, inner, .. }) = (x.gpu(), c.at);
    if n == 0 {
        return Ok(());
    }
    if n > i32::MAX as usize {
        return Err(Error::unsupported("so many elements have no kernel on a GPU"));
    }
    let g = groups(c, x)?;
    let mut outs = y.iter().map(|y| &y.data);
    if let Some(y) = outs.next().filter(|y| !y.is_empty()) {
        let launch = gpu.launch("unique", "slice_values")?.data(&g.firsts).size(c.count).array(x).array(y);
        // SAFETY: y has the slices of x that are first.
        unsafe { launch.size(y.len()).size(n).size(inner).run(gpu.grid(y.len()))? };
    }
    let mut asked = c.asked.iter().map(|asked| if *asked { outs.next() } else { None });
    let [index, inverse, counts] = std::array::from_fn(|_| asked.next().flatten());
    if c.count > 0 && (index.is_some() || counts.is_some()) {
        let launch = gpu.launch("unique", "slice_counts")?.data(&g.starts).data(&g.begins).data(&g.firsts);
        let launch = launch.size(c.count).size(n).flag(c.sorted).maybe(index).maybe(counts);
        // SAFETY: a number for each group, and one more start.
        unsafe { launch.run(gpu.grid(c.count))? };
    }
    if let Some(inverse) = inverse {
        let launch = gpu.launch("unique", "slice_numbers")?.data(&g.places).data(&g.starts).data(&g.begins);
        let launch = launch.data(&g.firsts).size(c.count).size(n).flag(c.sorted).data(inverse);
        // SAFETY: a number for each slice.
        unsafe { launch.run(gpu.grid(n))? };
    }
    Ok(())
}
