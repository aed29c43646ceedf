//! On a GPU.

use super::{ShiftAxis, ShiftBorder};
use crate::array::{Data, Output};
use crate::cuda::team::{is_double, named};
use crate::error::Result;

pub(super) fn run(s: &ShiftAxis, x: &Data, y: &Data, back: bool, output: Output) -> Result<()> {
    let (gpu, n) = (y.gpu(), s.at.n as i64);
    let by = if s.border == ShiftBorder::Reflect { s.by % (2 * n) } else { s.by.clamp(-n, n) };
    let name = if back { "unshift" } else { "shift" };
    let launch = gpu.launch("shift", &named(name, is_double(y)))?.array(x).array(y).size(y.len()).size(s.at.n);
    let launch = launch.size(s.at.inner).long(by).long(s.border as i64).flag(output == Output::Accumulate);
    // SAFETY: both arrays have the sizes around the axis.
    unsafe { launch.run(gpu.grid(y.len())) }
}
