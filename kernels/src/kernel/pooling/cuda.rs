//! Max, sum and average pooling on a GPU.

use super::cpu::{Divisor, Pooling};
use crate::array::{Data, Output};
use crate::cuda::convert;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// The type in which places within a window are kept.
fn place_type(p: &Pooling) -> DType {
    if p.kernel.iter().product::<usize>() <= 1 << 8 { DType::U8 } else { DType::U32 }
}

/// `Pooling` as in `cuda/pooling.cu`, which counts the places of a plane in 32 bits.
fn table(p: &Pooling, divisor: Divisor) -> Result<Vec<u8>> {
    let lists = [p.input, p.output(), p.kernel, p.stride, p.pad];
    let reach = |i: usize| p.input[i].max(p.output()[i] * p.stride[i]) + 2 * p.pad[i] + p.kernel[i];
    let planes = [p.input, p.output(), p.kernel].map(|s| s.iter().product::<usize>());
    if (0..3).map(reach).chain(planes).any(|n| n >= 1 << 30) {
        return Err(Error::unsupported("a pooling over planes of 2^30 and more has no kernel on a GPU"));
    }
    let words = [p.inner, divisor as usize].into_iter().flat_map(|v| (v as u64).to_le_bytes());
    Ok(words.chain(lists.into_iter().flatten().flat_map(|v| (v as u32).to_le_bytes())).collect())
}

fn name(stem: &str, dtype: DType) -> String {
    format!("{stem}_{}", if dtype == DType::F64 { "f64" } else { "f32" })
}

/// The largest number of each window, and where in its window it is, as far as they are wanted. With `g`, the number at its
/// place there instead.
fn max(p: &Pooling, x: &Data, g: Option<&Data>, y: Option<&Data>, places: Option<&Data>) -> Result<()> {
    let n = p.output_len();
    if n == 0 {
        return Ok(());
    }
    let gpu = x.gpu();
    let dtype = |d: Option<&Data>| d.map_or(DType::F32, |d| d.dtype()) as i64;
    let launch = gpu.launch("pooling", &name("max_pool", x.dtype()))?.table(&table(p, Divisor::One)?)?.array(x);
    let launch = launch.maybe(g).long(dtype(g)).maybe(y).long(dtype(y)).maybe(places);
    // SAFETY: the arrays have the sizes of the pooling.
    unsafe { launch.flag(dtype(places) == DType::U32 as i64).size(n).run(gpu.grid(n)) }
}

/// The largest number of each window.
pub(super) fn max_forward(p: &Pooling, x: &Data, y: &Data) -> Result<()> {
    max(p, x, None, Some(y), None)
}

/// The numbers of `g` where x has the largest ones of the windows.
pub(super) fn max_gather(p: &Pooling, g: &Data, x: &Data, y: &Data) -> Result<()> {
    max(p, x, Some(g), Some(y), None)
}

/// Each gradient goes to the place of its window's largest number in x.
pub(super) fn max_backward(p: &Pooling, gy: &Data, x: &Data, gx: &Data, output: Output) -> Result<()> {
    if p.input_len() == 0 {
        return Ok(());
    }
    if (0..3).all(|i| p.stride[i] >= p.kernel[i]) {
        return max_backward_apart(p, gy, x, gx, output);
    }
    let places = Data::new_at(x.place(), place_type(p), p.output_len())?;
    max(p, x, None, None, Some(&places))?;
    let gpu = gx.gpu();
    let launch = gpu.launch("pooling", &name("max_pool_back", gx.dtype()))?.table(&table(p, Divisor::One)?)?;
    let launch = launch.array(gy).data(&places).flag(places.dtype() == DType::U32).array(gx);
    // SAFETY: the arrays have the sizes of the pooling.
    unsafe { launch.flag(output == Output::Accumulate).size(p.input_len()).run(gpu.grid(p.input_len())) }
}

/// As [`max_backward`], for windows that do not overlap.
fn max_backward_apart(p: &Pooling, gy: &Data, x: &Data, gx: &Data, output: Output) -> Result<()> {
    let (write, n) = (output == Output::Write, p.output_len());
    let tiled =
        (0..3).all(|i| p.pad[i] == 0 && p.stride[i] == p.kernel[i] && p.output()[i] * p.stride[i] == p.input[i]);
    if write && !tiled {
        convert::fill(gx, 0.0)?;
    }
    if n == 0 {
        return Ok(());
    }
    let gpu = gx.gpu();
    let launch = gpu.launch("pooling", &name("max_pool_apart", gx.dtype()))?.table(&table(p, Divisor::One)?)?;
    let launch = launch.array(x).array(gy).array(gx).flag(!write).flag(write && tiled);
    // SAFETY: the arrays have the sizes of the pooling.
    unsafe { launch.size(n).run(gpu.grid(n)) }
}

/// The sum of each window, over the divisor.
pub(super) fn sum_forward(p: &Pooling, x: &Data, y: &Data, divisor: Divisor) -> Result<()> {
    let n = p.output_len();
    if n == 0 {
        return Ok(());
    }
    let gpu = y.gpu();
    let launch = gpu.launch("pooling", &name("sum_pool", y.dtype()))?.table(&table(p, divisor)?)?;
    // SAFETY: the arrays have the sizes of the pooling.
    unsafe { launch.array(x).array(y).size(n).run(gpu.grid(n)) }
}

/// Each gradient, over the divisor, goes to all places of its window.
pub(super) fn sum_backward(p: &Pooling, gy: &Data, gx: &Data, divisor: Divisor, output: Output) -> Result<()> {
    let n = p.input_len();
    if n == 0 {
        return Ok(());
    }
    let gpu = gx.gpu();
    let launch = gpu.launch("pooling", &name("sum_pool_back", gx.dtype()))?.table(&table(p, divisor)?)?;
    let launch = launch.array(gy).array(gx).flag(output == Output::Accumulate);
    // SAFETY: the arrays have the sizes of the pooling.
    unsafe { launch.size(n).run(gpu.grid(n)) }
}
