//! On a GPU: a thread a line.

use super::{CumProd, Recurrence};
use crate::array::Data;
use crate::error::Result;

pub(super) fn cumprod(c: &CumProd, x: &Data, y: &Data) -> Result<()> {
    let (gpu, lines) = (y.gpu(), c.at.outer * c.at.inner);
    if y.is_empty() {
        return Ok(());
    }
    let launch = gpu.launch("cumprod", "cumprod")?.array(x).array(y).size(lines).size(c.at.n).size(c.at.inner);
    // SAFETY: the arrays have the sizes around the axis, by the shapes that were resolved.
    unsafe { launch.flag(c.exclusive).flag(c.reverse).run(gpu.grid(lines)) }
}

pub(super) fn recurrence(c: &Recurrence, a: &Data, b: &Data, y: &Data) -> Result<()> {
    let (gpu, lines) = (y.gpu(), c.at.outer * c.at.inner);
    if y.is_empty() {
        return Ok(());
    }
    let launch = gpu.launch("cumprod", "recurrence")?.array(a).array(b).array(y).size(lines);
    // SAFETY: as above.
    unsafe { launch.size(c.at.n).size(c.at.inner).flag(c.reverse).run(gpu.grid(lines)) }
}
