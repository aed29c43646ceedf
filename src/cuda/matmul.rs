//! Matrix products on a GPU.

use super::driver::Grid;
use crate::array::Data;
use crate::dtype::DType;
use crate::error::Result;
use crate::function::Output;

/// A matrix, or for a batch several of one shape, in an array. Strides are in elements.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    pub(crate) data: &'a Data,
    pub(crate) row_stride: usize,
    pub(crate) column_stride: usize,
    /// From one matrix of a batch to the next.
    pub(crate) step: usize,
}

impl Matrix<'_> {
    fn words(&self) -> [u64; 5] {
        let strides = [self.row_stride as u64, self.column_stride as u64, self.step as u64];
        [self.data.address(), self.data.dtype() as u64, strides[0], strides[1], strides[2]]
    }
}

/// Rows and columns of C that a block makes.
const TILE: usize = 64;
/// Products of a batch in a layer of the grid.
const LAYER: usize = 1 << 12;

/// `batch` products C = A B, or C += A B, of `m` x `k` and `k` x `n` matrices.
///
/// # Safety
/// The arrays hold all elements that sizes and strides reach.
pub(crate) unsafe fn matmul(
    batch: usize,
    [m, n, k]: [usize; 3],
    a: Matrix,
    b: Matrix,
    c: &Data,
    output: Output,
) -> Result<()> {
    if batch == 0 || m == 0 || n == 0 {
        return Ok(());
    }
    let gpu = c.gpu();
    let name = if c.dtype() == DType::F64 { "matmul_f64" } else { "matmul_f32" };
    let table: Vec<u8> = a.words().into_iter().chain(b.words()).flat_map(u64::to_le_bytes).collect();
    let launch = gpu.launch("matmul", name)?.table(&table)?.array(c).size(m).size(n).size(k).size(batch);
    // A grid has few blocks along its second and third axis.
    let layers = batch.div_ceil(LAYER);
    let blocks = [(n.div_ceil(TILE) * m.div_ceil(TILE)) as u32, batch.min(LAYER) as u32, layers as u32];
    // SAFETY: the caller's promise.
    unsafe { launch.flag(output == Output::Accumulate).run(Grid { blocks, threads: [256, 1, 1] }) }
}
