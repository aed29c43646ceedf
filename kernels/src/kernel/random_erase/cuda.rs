//! On a GPU.

use super::{Erasure, NUMBERS};
use crate::array::Data;
use crate::cuda::team::{is_double, named};
use crate::dtype::DType;
use crate::error::Result;

pub(super) fn erase(e: &Erasure, table: &Data, values: Option<&Data>, x: &Data, y: &Data) -> Result<()> {
    let (gpu, double) = (y.gpu(), is_double(y));
    let count = table.len() / NUMBERS;
    let patches = Data::new_at(y.place(), DType::I64, 4 * count)?;
    let [h, w] = e.size;
    let launch = gpu.launch("random_erase", "erase_patches")?.data(table).data(&patches).size(count).size(h).size(w);
    let launch = launch.double(e.prob).double(e.area[0]).double(e.area[1]).double(e.aspect[0]).double(e.aspect[1]);
    // SAFETY: five numbers and four borders a patch.
    unsafe { launch.run(gpu.grid(count))? };
    let [low, high] = e.replacements;
    let launch = gpu.launch("random_erase", &named("erase", double))?.array(x).array(y).maybe(values).size(y.len());
    let launch = launch.size(e.channels).size(h).size(w).flag(e.channel_last).data(&patches).size(e.patches);
    let launch = launch.flag(e.share).real(double, low).real(double, high - low);
    // SAFETY: images of these sizes, patches for each of them or of its channels.
    unsafe { launch.run(gpu.grid(y.len())) }
}
