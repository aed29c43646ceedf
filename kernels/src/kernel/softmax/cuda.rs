//! On a GPU.

use crate::array::Data;
use crate::array::Output;
use crate::cuda::launch::Launch;
use crate::cuda::team::{self, is_double, named};
use crate::error::Result;
use crate::kernel::axis::Axis;

fn rows(a: Axis) -> usize {
    a.outer * a.inner
}

/// Adds the sizes of the rows to a launch, and runs it with a team for each; what `rest` adds comes after them.
fn over_rows(a: Axis, x: &Data, launch: Launch, rest: impl FnOnce(Launch) -> Launch) -> Result<()> {
    if rows(a) == 0 {
        return Ok(());
    }
    let size = team::size(x.gpu(), rows(a), a.n, a.inner == 1);
    let launch = rest(launch.size(rows(a)).size(a.n).size(a.inner).size(size));
    // SAFETY: the arrays have the sizes around the axis, by the shapes that were inferred.
    unsafe { launch.run(team::grid(rows(a), size)) }
}

/// Softmax, or its logarithm.
pub fn softmax(a: Axis, x: &Data, y: &Data, log: bool) -> Result<()> {
    let launch = x.gpu().launch("softmax", &named("softmax", is_double(x)))?.array(x).array(y);
    over_rows(a, x, launch, |l| l.flag(log))
}

/// The gradient from y and that of y, whose place may be that of the result.
pub fn softmax_backward(a: Axis, y: &Data, gy: &Data, gx: &Data, log: bool, output: Output) -> Result<()> {
    let launch = y.gpu().launch("softmax", &named("softmax_backward", is_double(y)))?.array(y).array(gy).array(gx);
    over_rows(a, y, launch, |l| l.flag(log).flag(output == Output::Accumulate))
}

/// `y = -log_softmax(x)[label]`; 0 for negative labels. Labels that are NaN or beyond the classes, which are an error on
/// the host, give NaN.
pub fn cross_entropy(a: Axis, x: &Data, labels: &Data, y: &Data) -> Result<()> {
    let launch = x.gpu().launch("softmax", &named("cross_entropy", is_double(x)))?.array(x).data(labels).array(y);
    over_rows(a, x, launch, |l| l)
}

/// The gradient of `cross_entropy`.
pub fn cross_entropy_backward(a: Axis, x: &Data, labels: &Data, gy: &Data, gx: &Data, output: Output) -> Result<()> {
    let launch = x.gpu().launch("softmax", &named("cross_entropy_backward", is_double(x)))?.array(x).data(labels);
    over_rows(a, x, launch.array(gy).array(gx), |l| l.flag(output == Output::Accumulate))
}
