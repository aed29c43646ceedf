//! On a GPU: a thread an element of the result, or of the images.

use super::RoiAlign;
use crate::array::{Data, Output};
use crate::cuda::launch::Launch;
use crate::cuda::team::{is_double, named};
use crate::error::Result;

fn sizes(launch: Launch, r: &RoiAlign) -> Launch {
    let launch = launch.size(r.images).size(r.channels).size(r.size[0]).size(r.size[1]).flag(r.channel_last);
    let launch = launch.size(r.boxes).size(r.bins[0]).size(r.bins[1]);
    launch.double(r.scale[0]).double(r.scale[1]).size(r.samples)
}

pub(super) fn gather(r: &RoiAlign, x: &Data, boxes: &Data, y: &Data) -> Result<()> {
    let launch = y.gpu().launch("roi_align", &named("roi_gather", is_double(y)))?.array(x).data(boxes).data(y);
    // SAFETY: images, boxes and bins of these sizes.
    unsafe { sizes(launch.size(y.len()), r).run(y.gpu().grid(y.len())) }
}

pub(super) fn spread(r: &RoiAlign, gy: &Data, boxes: &Data, gx: &Data, output: Output) -> Result<()> {
    if gx.is_empty() {
        return Ok(());
    }
    let launch = gx.gpu().launch("roi_align", &named("roi_spread", is_double(gx)))?.array(gy).data(boxes).data(gx);
    let launch = sizes(launch.size(gx.len()), r).flag(output == Output::Accumulate);
    // SAFETY: as above.
    unsafe { launch.run(gx.gpu().grid(gx.len())) }
}
