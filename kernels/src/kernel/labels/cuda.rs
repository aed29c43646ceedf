//! On a GPU. Labels that are NaN or beyond the classes, which are an error on
//! the host, give NaN.

use crate::array::Data;
use crate::array::Output;
use crate::cuda::convert::fill;
use crate::cuda::team::{self, is_double, named};
use crate::error::Result;
use crate::kernel::axis::Axis;

/// `y = -log(x[label])`; 0 for negative labels.
pub(super) fn log_loss(a: Axis, x: &Data, labels: &Data, y: &Data) -> Result<()> {
    let gpu = x.gpu();
    let launch = gpu.launch("labels", &named("log_loss", is_double(x)))?.array(x).data(labels).array(y);
    // SAFETY: the arrays have the sizes around the axis, by the shapes that were inferred.
    unsafe { launch.size(y.len()).size(a.n).size(a.inner).run(gpu.grid(y.len())) }
}

/// The gradient of `log_loss`.
pub(super) fn log_loss_backward(a: Axis, x: &Data, labels: &Data, gy: &Data, gx: &Data, output: Output) -> Result<()> {
    if output == Output::Write {
        fill(gx, 0.0)?;
    }
    let gpu = x.gpu();
    let launch = gpu.launch("labels", &named("log_loss_backward", is_double(x)))?.array(x).data(labels).array(gy);
    // SAFETY: as above.
    unsafe { launch.array(gx).size(gy.len()).size(a.n).size(a.inner).run(gpu.grid(gy.len())) }
}

/// 1 where more than `most` elements are at least the label's.
pub(super) fn top_errors(a: Axis, x: &Data, labels: &Data, y: &Data, most: i64) -> Result<()> {
    let rows = y.len();
    if rows == 0 {
        return Ok(());
    }
    let size = team::size(x.gpu(), rows, a.n, a.inner == 1);
    let launch = x.gpu().launch("labels", &named("top_errors", is_double(x)))?.array(x).data(labels).array(y);
    let launch = launch.size(rows).size(a.n).size(a.inner).size(size).long(most);
    // SAFETY: as above.
    unsafe { launch.run(team::grid(rows, size)) }
}

/// 1 at the labels, 0 elsewhere.
pub(super) fn mask(a: Axis, labels: &Data, y: &Data) -> Result<()> {
    let gpu = y.gpu();
    let launch = gpu.launch("labels", "label_mask")?.data(labels).array(y).size(y.len()).size(a.n).size(a.inner);
    // SAFETY: as above.
    unsafe { launch.run(gpu.grid(y.len())) }
}

/// How often rows with each label have their largest element at which place.
pub(super) fn confusion(a: Axis, x: &Data, labels: &Data, y: &Data) -> Result<()> {
    fill(y, 0.0)?;
    if labels.is_empty() || y.is_empty() {
        return Ok(());
    }
    let gpu = y.gpu();
    let launch = gpu.launch("labels", "confusion")?.array(x).data(labels).data(y).size(labels.len());
    // SAFETY: as above; a count for each pair of classes.
    unsafe { launch.size(a.n).size(a.inner).run(gpu.grid(labels.len())) }
}
