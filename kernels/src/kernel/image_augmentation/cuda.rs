//! On a GPU: the parameters of each image, then its values.

use super::Augmentation;
use crate::array::Data;
use crate::cuda::team::{is_double, named};
use crate::dtype::DType;
use crate::error::Result;

pub(super) fn augment(a: &Augmentation, table: &Data, noise: Option<&Data>, x: &Data, y: &Data) -> Result<()> {
    let (gpu, double) = (y.gpu(), is_double(y));
    let parameters = Data::new_at(y.place(), DType::F64, a.samples * a.parameters())?;
    let launch = gpu.launch("image_augmentation", "augment_parameters")?.data(table).data(&parameters);
    let launch = launch.size(a.samples).size(a.channels).size(a.size[0]).size(a.size[1]).size(a.out[0]).size(a.out[1]);
    let launch = launch.size(a.pad[0]).size(a.pad[1]).double(a.scale[0]).double(a.scale[1]).double(a.angle);
    let launch = launch.double(a.aspect_ratio).double(a.distortion).flag(a.flip_lr).flag(a.flip_ud);
    let launch = launch.double(a.brightness).flag(a.brightness_each).double(a.contrast).flag(a.contrast_each);
    // SAFETY: numbers and parameters of so many images and channels.
    unsafe { launch.double(a.noise).run(gpu.grid(a.samples))? };
    let launch = gpu.launch("image_augmentation", &named("augment", double))?.array(x).array(y).maybe(noise);
    let launch = launch.size(y.len()).data(&parameters).size(a.channels).size(a.size[0]).size(a.size[1]);
    let launch = launch.size(a.out[0]).size(a.out[1]).real(double, a.contrast_center);
    // SAFETY: images, results and parameters of these sizes.
    unsafe { launch.run(gpu.grid(y.len())) }
}
