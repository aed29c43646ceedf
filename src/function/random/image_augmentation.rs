//! `image_augmentation`: images altered at random.

use crate::function;
use crate::function::array::List;
use crate::function::{ArgValue, Call, Described, Function, Grad, Resolved, call_of};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::image_augmentation::{self as kernel, Augmentation};
use nnrs_kernels::random::RandomSeed;
use nnrs_kernels::shape::Shape;

function! {
    /// Alters images, each otherwise: cuts out a part, scales, turns, stretches, distorts and flips it, changes brightness and contrast, and
    /// adds noise. Values between pixels are interpolated, the borders are repeated beyond the image.
    ///
    /// As in NNabla there is no gradient. Scale, stretching and contrast are uniform in their logarithms, all else is uniform in itself; the
    /// deviation of the noise is another one for each image, at most `noise`.
    ImageAugmentation image_augmentation in Random, forward_on_any_device
    inputs { x: "Images of shape (.., channels, height, width)." }
    args {
        shape: Option<List> = None, "Sizes of the last axes of the result; None: x's.";
        pad: List = vec![0, 0].into(), "Pixels above and below, and at both sides, that count as part of the image when a place is chosen.";
        min_scale: f64 = 1.0, "The least scale.";
        max_scale: f64 = 1.0, "The largest scale.";
        angle: f64 = 0.0, "The largest turn to both sides, in radians.";
        aspect_ratio: f64 = 1.0, "The largest ratio by which height and width are stretched against each other.";
        distortion: f64 = 0.0, "How far images are distorted from or to their middle.";
        flip_lr: bool = false, "Exchange left and right in half of the images.";
        flip_ud: bool = false, "Exchange top and bottom in half of the images.";
        brightness: f64 = 0.0, "The most that is added to, or taken from, the values.";
        brightness_each: bool = false, "Whether that is another number for each channel.";
        contrast: f64 = 1.0, "The most that the distance of values to contrast_center is multiplied or divided by.";
        contrast_center: f64 = 0.0, "The value that contrast leaves as it is.";
        contrast_each: bool = false, "Whether the contrast is another one for each channel.";
        noise: f64 = 0.0, "The largest standard deviation of normal noise.";
        seed: RandomSeed = RandomSeed::default(), "Seed of this function; -1: the global random stream."
    }
    outputs { y: "Images of the given size." }
}

fn finite(name: &str, v: f64) -> Result<f64> {
    if v.is_finite() { Ok(v) } else { Err(Error::arg(name, "a finite number").actual(v)) }
}

fn positive(name: &str, v: f64) -> Result<f64> {
    if v > 0.0 && v.is_finite() { Ok(v) } else { Err(Error::arg(name, "a finite number above 0").actual(v)) }
}

/// A factor of lengths: beyond these limits a place is no number.
fn factor(name: &str, v: f64) -> Result<f64> {
    if (1e-9..=1e9).contains(&v) { Ok(v) } else { Err(Error::arg(name, "a number from 1e-9 to 1e9").actual(v)) }
}

/// Its exponential is a factor of lengths.
fn exponent(name: &str, v: f64) -> Result<f64> {
    if v.abs() <= 20.0 { Ok(v) } else { Err(Error::arg(name, "a number from -20 to 20").actual(v)) }
}

impl ImageAugmentation {
    /// The result's shape: x's but for height and width.
    fn output(&self, x: &Shape) -> Result<Shape> {
        if x.ndim() < 2 {
            return Err(Error::shape("x", "height and width, the last two axes").actual(x));
        }
        let given = self.shape.as_ref().map_or(&[][..], |s| &s[..]);
        let lead = x.ndim().checked_sub(given.len());
        let last: Option<Vec<usize>> = given.iter().map(|&d| usize::try_from(d).ok()).collect();
        let y: Option<Shape> = lead.zip(last).map(|(lead, last)| x[..lead].iter().copied().chain(last).collect());
        let others = x.ndim() - 2;
        let y = y.filter(|y| given.len() != 1 && y[..others] == x[..others]);
        let expected = || format!("height and width, or all of x {x} but for these");
        y.ok_or_else(|| Error::arg("shape", expected()).actual(format!("{given:?}")))?.checked()
    }

    fn pad(&self) -> Result<[usize; 2]> {
        let fits = |p: &[usize; 2]| p.iter().all(|p| *p < 1 << 31);
        let pad: Option<Vec<usize>> = self.pad.iter().map(|&p| usize::try_from(p).ok()).collect();
        let pad = pad.and_then(|p| <[usize; 2]>::try_from(p).ok()).filter(fits);
        pad.ok_or_else(|| Error::arg("pad", "two sizes of 0 or more").actual(format!("{:?}", self.pad.0)))
    }

    fn augmentation(&self, x: &Shape, y: &Shape) -> Result<Augmentation> {
        let n = x.ndim();
        let [size, out] = [x, y].map(|s| [s[n - 2], s[n - 1]]);
        if size.contains(&0) && y.size() > 0 {
            return Err(Error::shape("x", "one pixel at least").actual(x));
        }
        Ok(Augmentation {
            samples: x.size_to(n.saturating_sub(3)),
            channels: if n > 2 { x[n - 3] } else { 1 },
            size,
            out,
            pad: self.pad()?,
            scale: [factor("min_scale", self.min_scale)?, factor("max_scale", self.max_scale)?],
            angle: finite("angle", self.angle)?,
            aspect_ratio: factor("aspect_ratio", self.aspect_ratio)?,
            distortion: exponent("distortion", self.distortion)?,
            flip_lr: self.flip_lr,
            flip_ud: self.flip_ud,
            brightness: finite("brightness", self.brightness)?,
            brightness_each: self.brightness_each,
            contrast: positive("contrast", self.contrast)?,
            contrast_center: finite("contrast_center", self.contrast_center)?,
            contrast_each: self.contrast_each,
            noise: finite("noise", self.noise)?,
        })
    }
}

impl Function for ImageAugmentation {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let y = self.output(&x[0])?;
        let augmentation = self.augmentation(&x[0], &y)?;
        Ok(Resolved::one(y, kernel::ImageAugmentation { seed: self.seed.twin(), augmentation, x: x[0].clone() }))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        let all = call_of::<kernel::ImageAugmentation>(call).x.iter().map(|d| *d as i64).collect();
        let all = ArgValue::Ints(all);
        let fill = |(n, v)| if n == "shape" && v == ArgValue::None { (n, all.clone()) } else { (n, v) };
        self.arguments().into_iter().map(fill).collect()
    }

    fn has_state(&self) -> bool {
        true
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None])
    }
}
