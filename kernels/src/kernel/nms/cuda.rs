//! On a GPU. A class of a sample is a thread's, which takes its boxes one after the other.

use super::{NmsDetection2d, OnnxNms};
use crate::array::{Data, Output};
use crate::cuda::convert;
use crate::cuda::team::{is_double, named};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::ops;

/// Rows of scores, in the type to compute in.
fn scores(like: &Data, n: usize) -> Result<Data> {
    Data::new_at(like.place(), if is_double(like) { DType::F64 } else { DType::F32 }, n)
}

/// The boxes of each row of `n` scores, from the best on.
fn order(scores: &Data, n: usize) -> Result<Data> {
    let (gpu, y) = (scores.gpu(), Data::new_at(scores.place(), DType::I64, scores.len())?);
    let launch = gpu.launch("nms", &named("order", is_double(scores)))?.data(scores).data(&y);
    // SAFETY: as many places as scores.
    unsafe { launch.size(y.len()).size(n).run(gpu.grid(y.len()))? };
    Ok(y)
}

pub(super) fn detect(c: &NmsDetection2d, x: &Data, y: &Data) -> Result<()> {
    let (gpu, double, row) = (y.gpu(), is_double(y), 5 + c.classes);
    let columns = if c.per_class { c.classes } else { 1 };
    let size = y.len() / row * columns;
    let scores = scores(y, size)?;
    let launch = gpu.launch("nms", &named("detection_scores", double))?.array(x).data(&scores).size(size).size(c.boxes);
    // SAFETY: boxes of so many classes, a score for each of them.
    unsafe { launch.size(c.classes).flag(c.per_class).real(double, c.thresh).run(gpu.grid(size))? };
    let order = order(&scores, c.boxes)?;
    let name = named(if c.per_class { "suppress" } else { "suppress_all" }, double);
    let launch = gpu.launch("nms", &name)?.array(x).data(&scores).data(&order);
    let (count, width) = if c.per_class { (size / c.boxes, c.classes) } else { (size, row) };
    // SAFETY: as above.
    unsafe { launch.size(count).size(c.boxes).size(width).double(c.nms).run(gpu.grid(count))? };
    let launch = gpu.launch("nms", &named("detections", double))?.array(x).array(y).data(&scores).size(y.len());
    let launch = launch.size(c.boxes).size(c.classes).flag(c.per_class).real(double, c.thresh);
    // SAFETY: as above.
    unsafe { launch.run(gpu.grid(y.len())) }
}

pub(super) fn select(c: &OnnxNms, boxes: &Data, given: &Data, y: &Data) -> Result<()> {
    if given.is_empty() {
        return convert::fill(y, f64::MAX);
    }
    let (gpu, double) = (y.gpu(), is_double(given));
    let (rows, most) = (given.len() / c.boxes, c.most.min(c.boxes));
    let scores = scores(given, given.len())?;
    ops::put(&scores, given, Output::Write)?;
    let order = order(&scores, c.boxes)?;
    let indices = |n: usize| Data::new_at(y.place(), DType::I64, n);
    let (kept, counts) = (indices(rows * most)?, indices(rows)?);
    let launch = gpu.launch("nms", &named("select", double))?.array(boxes).data(&scores).data(&order);
    let launch = launch.data(&kept).data(&counts).size(rows).size(c.boxes).size(c.classes).size(most);
    let launch = launch.flag(!c.centers).double(c.iou_threshold).real(double, c.score_threshold);
    // SAFETY: scores of so many boxes and classes, room for the boxes that are left.
    unsafe { launch.run(gpu.grid(rows))? };
    let launch = gpu.launch("nms", "selected")?.data(&kept).data(&counts).data(y).size(y.len() / 3);
    // SAFETY: as above; three numbers for each box.
    unsafe { launch.size(rows).size(c.classes).size(most).run(gpu.grid(rows)) }
}
