//! Small kernels that the engine itself needs: conversions and constants.

use super::Gpu;
use crate::array::Data;
use crate::array::Output;
use crate::dtype::DType;
use crate::error::Result;

/// Copies (and converts) the elements of `x`, which has as many as `y`.
pub fn convert(y: &Data, x: &Data) -> Result<()> {
    y.take(x)
}

/// As [`convert`], of addresses.
///
/// # Safety
/// Both are the GPU's, and have `n` elements of their types.
pub(super) unsafe fn convert_at(gpu: &'static Gpu, to: (u64, DType), from: (u64, DType), n: usize) -> Result<()> {
    let launch = gpu.launch("convert", "convert")?.address(to.0, to.1).address(from.0, from.1);
    // SAFETY: the caller's promise.
    unsafe { launch.size(n).run(gpu.grid(n)) }
}

/// Sets all elements to `value`.
pub fn fill(y: &Data, value: f64) -> Result<()> {
    // SAFETY: the array has that many elements of its type.
    unsafe { fill_at(y.gpu(), y.address(), y.dtype(), y.len(), value) }
}

/// As [`fill`], of an address.
///
/// # Safety
/// It is the GPU's, and has `n` elements of this type.
pub(super) unsafe fn fill_at(gpu: &'static Gpu, at: u64, dtype: DType, n: usize, value: f64) -> Result<()> {
    let launch = gpu.launch("convert", "fill")?.address(at, dtype).double(value);
    // SAFETY: the caller's promise.
    unsafe { launch.size(n).run(gpu.grid(n)) }
}

/// Writes `x` to `y`, or adds it, which has as many elements.
pub fn put(y: &Data, x: &Data, output: Output) -> Result<()> {
    if output == Output::Write {
        return convert(y, x);
    }
    let gpu = y.gpu();
    let launch = gpu.launch("convert", "add")?.array(y).array(x);
    // SAFETY: both arrays have that many elements of these types.
    unsafe { launch.size(x.len()).run(gpu.grid(x.len())) }
}

/// `x` as indices: whole numbers, NaN the smallest.
pub fn indices(x: &Data) -> Result<Data> {
    let gpu = x.gpu();
    let y = Data::new_at(x.place(), DType::I64, x.len())?;
    let launch = gpu.launch("convert", "indices")?.data(&y).array(x);
    // SAFETY: both arrays have that many elements of these types.
    unsafe { launch.size(x.len()).run(gpu.grid(x.len()))? };
    Ok(y)
}
