//! On a GPU.

use crate::array::Data;
use crate::error::Result;
use crate::kernel::gather::cuda::indices::chosen;
use crate::shape::Shape;

/// The indices of the first `n` places of an array of shape `shape` that are not zero.
pub(super) fn nonzero(shape: &Shape, n: usize, x: &Data, y: &Data) -> Result<()> {
    let (gpu, at) = (y.gpu(), chosen(x, n)?);
    if y.is_empty() {
        return Ok(());
    }
    let sizes: Vec<u8> = shape.iter().flat_map(|d| (*d as u64).to_le_bytes()).collect();
    let launch = gpu.launch("nonzero", "unravel")?.data(&at).size(n).table(&sizes)?.size(shape.ndim());
    // SAFETY: n places, an index for each of them and axis.
    unsafe { launch.size(shape.size()).data(y).run(gpu.grid(n)) }
}
