//! Matrix products on a GPU.

use crate::array::Data;
use crate::array::Output;
use crate::cuda::driver::LaunchGrid;
use crate::cuda::vendor::{self, MatrixLayout, VendorCall, VendorProduct};
use crate::dtype::DType;
use crate::error::Result;

/// A matrix, or for a batch several of one shape, in an array. Strides are in elements.
#[derive(Clone, Copy)]
pub struct DeviceMatrix<'a> {
    pub data: &'a Data,
    pub row_stride: usize,
    pub column_stride: usize,
    /// From one matrix of a batch to the next.
    pub step: usize,
}

impl DeviceMatrix<'_> {
    /// How the transpose of this matrix lies, if one of its strides is 1.
    fn lies(&self, rows: usize, columns: usize) -> Option<MatrixLayout> {
        let (r, c) = (self.row_stride, self.column_stride);
        let (transposed, lead, least) = match (c == 1 || columns == 1, r == 1 || rows == 1) {
            (true, _) => (false, if rows == 1 { columns } else { r }, columns),
            (false, true) => (true, if columns == 1 { rows } else { c }, rows),
            (false, false) => return None,
        };
        let alignment = 1 << self.data.address().trailing_zeros().min(8);
        (lead >= least).then_some(MatrixLayout { transposed, lead, step: self.step, alignment })
    }

    fn words(&self) -> [u64; 5] {
        let strides = [self.row_stride as u64, self.column_stride as u64, self.step as u64];
        [self.data.address(), self.data.dtype() as u64, strides[0], strides[1], strides[2]]
    }
}

/// The transposed product, C' = B' A', for a library, if it takes these types and strides.
fn product(
    batch: usize,
    [m, n, k]: [usize; 3],
    a: DeviceMatrix,
    b: DeviceMatrix,
    c: &Data,
    output: Output,
) -> Option<VendorProduct> {
    let (from, to) = (a.data.dtype(), c.dtype());
    let types = matches!(from, DType::F32 | DType::F64 | DType::F16 | DType::BF16);
    let known = types && from == b.data.dtype() && (to == from || (to == DType::F32 && from != DType::F64));
    let small = [batch, m, n, k].iter().all(|n| (1..=i32::MAX as usize).contains(n));
    if !known || !small {
        return None;
    }
    let c = DeviceMatrix { data: c, row_stride: n, column_stride: 1, step: m * n };
    let accumulate = output == Output::Accumulate;
    let [a, b, c] = [a.lies(m, k)?, b.lies(k, n)?, c.lies(m, n)?];
    let tf32 = from == DType::F32 && vendor::tf32();
    Some(VendorProduct { batch, sizes: [n, m, k], a: b, b: a, c, from, to, accumulate, tf32 })
}

/// Rows and columns of C that a block makes.
const TILE: usize = 64;
/// Products of a batch in a layer of the grid.
const LAYER: usize = 1 << 12;

/// `batch` products C = A B, or C += A B, of `m` x `k` and `k` x `n` matrices.
///
/// # Safety
/// The arrays hold all elements that sizes and strides reach.
pub unsafe fn matmul(
    batch: usize,
    [m, n, k]: [usize; 3],
    a: DeviceMatrix,
    b: DeviceMatrix,
    c: &Data,
    output: Output,
) -> Result<()> {
    if batch == 0 || m == 0 || n == 0 {
        return Ok(());
    }
    let gpu = c.gpu();
    let call = product(batch, [m, n, k], a, b, c, output);
    if let Some(call) = call {
        // SAFETY: the caller's promise.
        if unsafe { gpu.by_library(VendorCall::Product(call), [b.data, a.data, c])? } {
            return Ok(());
        }
    }
    let name = if c.dtype() == DType::F64 { "matmul_f64" } else { "matmul_f32" };
    let table: Vec<u8> = a.words().into_iter().chain(b.words()).flat_map(u64::to_le_bytes).collect();
    let launch = gpu.launch("matmul", name)?.table(&table)?.array(c).size(m).size(n).size(k).size(batch);
    // A grid has few blocks along its second and third axis.
    let layers = batch.div_ceil(LAYER);
    let blocks = [(n.div_ceil(TILE) * m.div_ceil(TILE)) as u32, batch.min(LAYER) as u32, layers as u32];
    // SAFETY: the caller's promise.
    unsafe { launch.flag(output == Output::Accumulate).run(LaunchGrid { blocks, threads: [256, 1, 1] }) }
}
