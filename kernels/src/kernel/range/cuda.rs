//! Numbers at equal distances on a GPU.

use crate::array::Data;
use crate::error::Result;

/// Numbers that one thread counts.
const RUN: usize = 64;

/// `start + i step`; `last` is the last one.
pub fn range(y: &Data, start: f64, step: f64, last: f64) -> Result<()> {
    let gpu = y.gpu();
    let launch = gpu.launch("range", "range")?.array(y).size(y.len()).double(start).double(step).double(last);
    // SAFETY: the array has that many elements.
    unsafe { launch.run(gpu.grid(y.len())) }
}

/// Each number is the one before plus `step` in single precision: the host counts to where runs begin.
pub fn counted(y: &Data, start: f32, step: f32) -> Result<()> {
    if y.is_empty() {
        return Ok(());
    }
    let gpu = y.gpu();
    let (mut starts, mut v) = (Vec::new(), start);
    for i in 0..y.len() {
        if i % RUN == 0 {
            starts.extend(v.to_le_bytes());
        }
        v += step;
    }
    let launch = gpu.launch("range", "counted")?.array(y).size(y.len()).table(&starts)?.size(RUN).float(step);
    // SAFETY: the array has that many elements, the table one for each run.
    unsafe { launch.run(gpu.grid(y.len().div_ceil(RUN))) }
}
