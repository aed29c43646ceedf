//! On a GPU.

use super::{Mode, PadAxis};
use crate::array::Data;
use crate::array::Output;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Axes that the kernels have room for.
const AXES: usize = 12;

/// The axes as the kernels read them, neighbours without a border merged.
fn table(axes: &[PadAxis]) -> Result<Vec<u8>> {
    let mut merged: Vec<PadAxis> = Vec::new();
    for &(n, before, after) in axes {
        match merged.last_mut() {
            Some((m, 0, 0)) if before + after == 0 => *m *= n,
            _ => merged.push((n, before, after)),
        }
    }
    if merged.len() > AXES {
        return Err(Error::unsupported(format!("a border around more than {AXES} axes has no kernel on a GPU")));
    }
    let (mut x, mut y, mut rows) = (1, 1, Vec::new());
    for &(n, before, after) in merged.iter().rev() {
        let total = n + before + after;
        rows.push([n, before, total, x, y]);
        (x, y) = (x * n, y * total);
    }
    rows.reverse();
    rows.resize(AXES, [0; 5]);
    let words = std::iter::once(merged.len()).chain(rows.into_iter().flatten());
    Ok(words.flat_map(|v| (v as u64).to_le_bytes()).collect())
}

/// Puts a border around `x`.
pub(super) fn forward(axes: &[PadAxis], mode: Mode, value: f64, x: &Data, y: &Data) -> Result<()> {
    if y.is_empty() {
        return Ok(());
    }
    let name = if y.dtype() == DType::F64 { "pad_f64" } else { "pad_f32" };
    let launch = y.gpu().launch("pad", name)?.data(x).array(y).table(&table(axes)?)?;
    // SAFETY: x has the elements of the axes, y those of the axes with their borders.
    unsafe { launch.long(mode as i64).double(value).size(y.len()).run(y.gpu().grid(y.len())) }
}

/// Sums what shows the same element.
pub(super) fn backward(axes: &[PadAxis], mode: Mode, gy: &Data, gx: &Data, output: Output) -> Result<()> {
    if gx.is_empty() {
        return Ok(());
    }
    let name = if gx.dtype() == DType::F64 { "unpad_f64" } else { "unpad_f32" };
    let launch = gx.gpu().launch("pad", name)?.data(gy).array(gx).table(&table(axes)?)?;
    let launch = launch.long(mode as i64).flag(output == Output::Accumulate);
    // SAFETY: as above.
    unsafe { launch.size(gx.len()).run(gx.gpu().grid(gx.len())) }
}
