//! Images altered at random: moved, scaled, turned, distorted, flipped, made brighter, of other contrast, noisy.

mod cpu;
mod cuda;
mod parameters;

use super::{ops, random};
use crate::array::{Data, Place};
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::random::{DrawSource, LastDraw, RandomSeed};
use crate::shape::Shape;
use crate::with_real;

/// Random numbers of an image, beside two for each channel.
const NUMBERS: usize = 9;
/// Parameters of an image, beside two for each channel.
const PARAMETERS: usize = 10;

/// Sizes, and the ranges of what is chosen for each image.
#[derive(Clone, Copy)]
pub struct Augmentation {
    pub samples: usize,
    pub channels: usize,
    /// Height and width of the images.
    pub size: [usize; 2],
    /// Of the results.
    pub out: [usize; 2],
    pub pad: [usize; 2],
    pub scale: [f64; 2],
    pub angle: f64,
    pub aspect_ratio: f64,
    pub distortion: f64,
    pub flip_lr: bool,
    pub flip_ud: bool,
    pub brightness: f64,
    pub brightness_each: bool,
    pub contrast: f64,
    pub contrast_center: f64,
    pub contrast_each: bool,
    pub noise: f64,
}

impl Augmentation {
    fn numbers(&self) -> usize {
        NUMBERS + 2 * self.channels
    }

    fn parameters(&self) -> usize {
        PARAMETERS + 2 * self.channels
    }

    fn run(&self, numbers: DrawSource, x: &Data, y: &Data) -> Result<()> {
        if y.is_empty() || x.is_empty() {
            return ops::fill(y, 0.0);
        }
        let (place, dtype) = (y.place(), if y.dtype() == DType::F64 { DType::F64 } else { DType::F32 });
        let table = random::uniforms(numbers, place, self.samples * self.numbers())?;
        let noise = match self.noise != 0.0 {
            true => Some(random::numbers_behind(numbers, place, dtype, table.len(), y.len(), true)?),
            false => None,
        };
        if let Place::Gpu(_) = place {
            return cuda::augment(self, &table, noise.as_ref(), x, y);
        }
        with_real!(dtype, T => {
            let noise = noise.as_ref().map(|n| n.as_slice::<T>());
            cpu::augment(self, table.as_slice(), noise, x.as_slice::<T>(), y.as_mut_slice())
        });
        Ok(())
    }
}

/// Alters images, otherwise in each run.
pub struct ImageAugmentation {
    /// The function's own, no clone: it has the last draw.
    pub seed: RandomSeed,
    /// The images' shape.
    pub x: Shape,
    pub augmentation: Augmentation,
}

impl Call for ImageAugmentation {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.augmentation.run(random::next(&self.seed, run)?, &x[0].data, &y[0].data)
    }

    fn last_draw(&self) -> Option<LastDraw> {
        Some(self.seed.last())
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        let a = &self.augmentation;
        let pixels = if a.noise != 0.0 { a.samples * a.channels * a.out[0] * a.out[1] } else { 0 };
        [pixels.saturating_mul(dtype.size()).saturating_add(8 * a.samples * a.numbers()), 0]
    }
}
