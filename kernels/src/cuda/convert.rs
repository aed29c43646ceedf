//! Small kernels that the engine itself needs: conversions and constants.

use crate::array::Data;
use crate::array::Output;
use crate::dtype::DType;
use crate::error::Result;

/// Copies (and converts) the elements of `x`, which has as many as `y`.
pub fn convert(y: &Data, x: &Data) -> Result<()> {
    assert_eq!(y.len(), x.len(), "copy between arrays of one size");
    let gpu = y.gpu();
    let launch = gpu.launch("convert", "convert")?.array(y).array(x);
    // SAFETY: both arrays have that many elements of these types.
    unsafe { launch.size(x.len()).run(gpu.grid(x.len())) }
}

/// Sets all elements to `value`.
pub fn fill(y: &Data, value: f64) -> Result<()> {
    let gpu = y.gpu();
    let launch = gpu.launch("convert", "fill")?.array(y).double(value);
    // SAFETY: the array has that many elements of its type.
    unsafe { launch.size(y.len()).run(gpu.grid(y.len())) }
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
