//! On a GPU.

use super::Trilu;
use crate::array::{Data, Output};
use crate::cuda::team::{is_double, named};
use crate::error::Result;

pub(super) fn trilu(c: &Trilu, x: &Data, y: &Data, output: Output) -> Result<()> {
    let gpu = y.gpu();
    let launch = gpu.launch("trilu", &named("trilu", is_double(y)))?.array(x).array(y).size(y.len());
    let launch = launch.size(c.rows).size(c.columns).long(c.k).flag(c.upper);
    // SAFETY: both arrays have that many elements.
    unsafe { launch.flag(output == Output::Accumulate).run(gpu.grid(y.len())) }
}
