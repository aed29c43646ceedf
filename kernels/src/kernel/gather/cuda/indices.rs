//! Numbers of rows or elements of an array of a GPU, from indices, coordinates and masks; -1 for what lies outside.

use super::sort;
use crate::array::Data;
use crate::cuda::convert;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Axes that the kernel has room for.
const AXES: usize = 12;

fn table(words: impl IntoIterator<Item = usize>) -> Vec<u8> {
    words.into_iter().flat_map(|v| (v as u64).to_le_bytes()).collect()
}

/// Sizes and strides of the first `m` axes of `x`; of one axis at least, for there to be a table.
fn axes(x: &Shape, m: usize, stride_of_last: usize) -> Vec<u8> {
    let strides = x.strides();
    let pairs = x.iter().zip(strides).take(m).flat_map(|(&n, s)| [n, s / stride_of_last.max(1)]);
    let mut table = table(pairs);
    table.resize(table.len().max(16), 0);
    table
}

/// For indices of a shape their own places in an array with these strides, but along `axis` (of `limit` elements there) what
/// the index says.
pub fn along(indices: &Data, shape: &[usize], strides: &[usize], axis: usize, limit: usize) -> Result<Data> {
    if shape.len() > AXES {
        return Err(Error::unsupported(format!("indices with more than {AXES} axes have no kernel on a GPU")));
    }
    let gpu = indices.gpu();
    let y = Data::new_at(indices.place(), DType::I64, indices.len())?;
    if y.is_empty() {
        return Ok(y);
    }
    let pairs = shape.iter().zip(strides).flat_map(|(&n, &s)| [n, s]);
    let mut table = table([shape.len(), axis, limit].into_iter().chain(pairs));
    table.resize(8 * (3 + 2 * AXES), 0);
    let launch = gpu.launch("gather_indices", "places_along")?.data(indices).table(&table)?.data(&y);
    // SAFETY: both arrays have as many elements as the shape.
    unsafe { launch.size(y.len()).run(gpu.grid(y.len()))? };
    Ok(y)
}

/// The rows of an array of shape `x` that `n` places of `m` coordinates name.
pub fn nd(indices: &Data, m: usize, n: usize, x: &Shape) -> Result<Data> {
    let gpu = indices.gpu();
    let y = Data::new_at(indices.place(), DType::I64, n)?;
    if n > 0 {
        let axes = axes(x, m, x.size_from(m));
        let launch = gpu.launch("gather_indices", "places_nd")?.data(indices).size(m).table(&axes)?.data(&y);
        // SAFETY: m n coordinates and n places.
        unsafe { launch.size(n).run(gpu.grid(n))? };
    }
    Ok(y)
}

/// The first `n` places where the mask is not zero.
pub fn chosen(mask: &Data, n: usize) -> Result<Data> {
    let gpu = mask.gpu();
    let y = Data::new_at(mask.place(), DType::I64, n)?;
    if n == 0 {
        return Ok(y);
    }
    if mask.is_empty() {
        convert::fill(&y, -1.0)?;
        return Ok(y);
    }
    let keys = Data::new_at(mask.place(), DType::I64, mask.len())?;
    let launch = gpu.launch("gather_indices", "places_mask")?.array(mask).data(&keys);
    // SAFETY: both arrays have that many elements.
    unsafe { launch.size(keys.len()).run(gpu.grid(keys.len()))? };
    let sorted = sort::rows(&keys, 1)?;
    let launch = gpu.launch("gather_indices", "places_chosen")?.data(&sorted.keys).data(&sorted.order).size(keys.len());
    // SAFETY: as many sorted keys as places of the mask; n places.
    unsafe { launch.data(&y).size(n).run(gpu.grid(n))? };
    Ok(y)
}

/// Arrays of `shape` with a 1 where its coordinates in `x` say, 0 elsewhere.
pub fn one_hot(x: &Data, shape: &Shape, y: &Data) -> Result<()> {
    if y.is_empty() {
        return Ok(());
    }
    let (gpu, m) = (y.gpu(), shape.ndim());
    let launch = gpu.launch("gather_indices", "one_hot")?.data(x).size(m).table(&axes(shape, m, 1))?;
    // SAFETY: y has an array of that shape for each m numbers of x.
    unsafe { launch.size(shape.size()).array(y).size(y.len()).run(gpu.grid(y.len())) }
}
