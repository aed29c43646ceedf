//! Means of interpolated images over the bins of boxes; and the transpose.

mod cpu;
mod cuda;

use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::{Error, Result};
use crate::with_real;

/// Sizes of images and bins. Pairs are of height and width.
#[derive(Clone, Debug)]
pub struct RoiAlign {
    pub images: usize,
    pub channels: usize,
    pub size: [usize; 2],
    pub channel_last: bool,
    pub boxes: usize,
    pub bins: [usize; 2],
    /// Elements that a box's unit is.
    pub scale: [f64; 2],
    /// Samples of a bin along an axis; 0: one an element at least.
    pub samples: usize,
}

/// How an axis of a box lies on the image: `count` samples a bin, from `start` on.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    n: usize,
    start: f64,
    bin: f64,
    count: f64,
}

impl Span {
    /// Along axis `a` from `first` to `end`.
    fn new(r: &RoiAlign, a: usize, first: f64, end: f64) -> Span {
        let (start, length) = (first * r.scale[a], (end - first) * r.scale[a]);
        let bin = length / r.bins[a] as f64;
        let count = if r.samples > 0 { r.samples as f64 } else { bin.ceil().max(0.0) };
        Span { n: r.size[a], start, bin, count }
    }

    /// Whether nothing can be said of it.
    fn is_unknown(&self) -> bool {
        !(self.start.is_finite() && self.bin.is_finite())
    }

    /// The place of sample `i` of a bin among the elements.
    fn place(&self, bin: usize, i: f64) -> f64 {
        self.start + bin as f64 * self.bin + (i + 0.5) * (self.bin / self.count) - 0.5
    }

    /// The samples of a bin that are between two places, or a few more.
    fn between(&self, bin: usize, low: f64, high: f64) -> std::ops::Range<usize> {
        let (step, zero) = (self.bin / self.count, self.place(bin, 0.0));
        let (first, end) = match step == 0.0 {
            true => (0.0, self.count),
            false => {
                let (a, b) = ((low - zero) / step, (high - zero) / step);
                (a.min(b).floor() - 1.0, a.max(b).ceil() + 2.0)
            }
        };
        first.clamp(0.0, self.count) as usize..end.clamp(0.0, self.count) as usize
    }

    /// The first of the two elements at a place, and the weight of the second; none beyond the image.
    fn tap(&self, place: f64) -> Option<(usize, f64)> {
        let n = self.n as f64;
        if !(place >= -1.0 && place <= n) {
            return None;
        }
        let place = place.clamp(0.0, n - 1.0);
        Some((place as usize, place - place.floor()))
    }
}

impl RoiAlign {
    /// Elements of an image's channel, and of a box's.
    fn image(&self) -> usize {
        self.size[0] * self.size[1]
    }

    fn area(&self) -> usize {
        self.bins[0] * self.bins[1]
    }

    fn gather(&self, x: &Data, boxes: &Data, y: &Data) -> Result<()> {
        if let Place::Gpu(_) = y.place() {
            return cuda::gather(self, x, boxes, y);
        }
        with_real!(y.dtype(), T => cpu::gather(self, x.as_slice::<T>(), boxes.as_slice(), y.as_mut_slice()))
    }

    fn spread(&self, gy: &Data, boxes: &Data, gx: &Data, output: Output) -> Result<()> {
        if let Place::Gpu(_) = gx.place() {
            return cuda::spread(self, gy, boxes, gx, output);
        }
        with_real!(gx.dtype(), T => cpu::spread(self, gy.as_slice::<T>(), boxes.as_slice(), gx.as_mut_slice(), output))
    }

    /// The image that a box is of.
    fn index(&self, v: f64) -> Result<usize> {
        if v.is_finite() && v > -1.0 && v < self.images as f64 {
            return Ok(v as usize);
        }
        let expected = format!("numbers of images below {}, the first axis of input, in the first column", self.images);
        Err(Error::arg("boxes", expected).actual(v))
    }
}

/// Means over bins.
pub struct RoiGather(pub RoiAlign);

impl Call for RoiGather {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.gather(&x[0].data, &x[1].data, &y[0].data)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 0b10, y: 0 })
    }

    fn backward(&self, _run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx), Some(boxes)) = (&gy[0], &gx[0], &x[1]) else { return Ok(()) };
        self.0.spread(&gy.data, &boxes.data, &gx.data, gx.output)
    }
}

/// The transpose.
pub struct RoiScatter(pub RoiAlign);

impl Call for RoiScatter {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.spread(&x[0].data, &x[1].data, &y[0].data, Output::Write)
    }
}
