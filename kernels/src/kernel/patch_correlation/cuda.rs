//! On a GPU: a thread an element of the result, or of an image.

use super::Correlation;
use crate::array::{Data, Output};
use crate::cuda::launch::Launch;
use crate::cuda::team::{is_double, named};
use crate::error::Result;

fn sizes(launch: Launch, c: &Correlation) -> Launch {
    let pairs = [c.size, c.out, c.shifts, c.patch, c.shift, c.patch_step, c.shift_step, c.pad];
    pairs.into_iter().flatten().fold(launch.size(c.channels), |launch, n| launch.size(n))
}

pub(super) fn correlate(c: &Correlation, x: [&Data; 2], y: &Data) -> Result<()> {
    let launch = y.gpu().launch("patch_correlation", &named("correlate", is_double(y)))?;
    let launch = launch.array(x[0]).data(x[1]).data(y).size(y.len());
    // SAFETY: images and results of these sizes.
    unsafe { sizes(launch, c).run(y.gpu().grid(y.len())) }
}

pub(super) fn gradient(
    c: &Correlation,
    second: bool,
    gy: &Data,
    other: &Data,
    gx: &Data,
    output: Output,
) -> Result<()> {
    if gx.is_empty() {
        return Ok(());
    }
    let launch = gx.gpu().launch("patch_correlation", &named("correlation_gradient", is_double(gx)))?;
    let launch = sizes(launch.array(gy).data(other).data(gx).size(gx.len()), c);
    // SAFETY: as above.
    unsafe { launch.flag(second).flag(output == Output::Accumulate).run(gx.gpu().grid(gx.len())) }
}
