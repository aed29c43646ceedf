//! Windowed frames of signals and their spectra: the short-time Fourier transform, and its transpose, by which both the inverse
//! transform and all gradients are made.

mod cpu;
mod cuda;

use crate::array::scratch::counted;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::pool;
use crate::with_real;
use std::sync::Arc;

/// The shape of a window; the numbers are those of `Window` in `cuda/frames.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameWindow {
    Hanning,
    Hamming,
    Rectangular,
}

/// Frames of `size` samples, `stride` apart, of signals with `border` more samples on both ends.
#[derive(Clone, Debug)]
pub struct Frames {
    pub batch: usize,
    pub samples: usize,
    pub border: usize,
    /// The border shows the signal's samples mirrored at its ends, else zeros.
    pub reflect: bool,
    pub frames: usize,
    pub stride: usize,
    pub size: usize,
    /// The window's samples, in the middle of a frame.
    pub width: usize,
    pub window: FrameWindow,
    /// Weights are those of the inverse transform: each sample is over the sum of squares of the windows there.
    pub inverse: bool,
    #[doc(hidden)]
    pub plans: Arc<cpu::FramePlans>,
}

impl Frames {
    pub fn new(batch: usize, samples: usize, size: usize, stride: usize, window: (FrameWindow, usize)) -> Frames {
        let (window, width) = window;
        let plans = Arc::default();
        Frames {
            batch,
            samples,
            border: 0,
            reflect: false,
            frames: 0,
            stride,
            size,
            width,
            window,
            inverse: false,
            plans,
        }
    }

    /// Numbers of a spectrum.
    pub fn bins(&self) -> usize {
        self.size / 2 + 1
    }

    /// Samples with the border.
    pub fn padded(&self) -> usize {
        self.samples + 2 * self.border
    }

    /// Sample `i` of the window as wide as a frame.
    pub fn weight(&self, i: usize) -> f64 {
        let before = (self.size - self.width) / 2;
        if i < before || i - before >= self.width {
            return 0.0;
        }
        let angle = 2.0 * std::f64::consts::PI * (i - before) as f64 / self.width as f64;
        match self.window {
            FrameWindow::Hanning => 0.5 - 0.5 * angle.cos(),
            FrameWindow::Hamming => 0.54 - 0.46 * angle.cos(),
            FrameWindow::Rectangular => 1.0,
        }
    }

    /// The frames that have sample `p`, which counts from the beginning of the border.
    fn over(&self, p: usize) -> std::ops::Range<usize> {
        let first = if p < self.size { 0 } else { (p - self.size) / self.stride + 1 };
        first.min(self.frames)..(p / self.stride + 1).min(self.frames)
    }

    /// The sum of squares of the windows over sample `p`.
    fn overlap(&self, p: usize, weight: impl Fn(usize) -> f64) -> f64 {
        self.over(p).map(|f| weight(p - f * self.stride)).map(|w| w * w).sum()
    }

    /// The least such sum. In the middle of a signal it is the same every stride.
    pub fn least_overlap(&self) -> f64 {
        let (first, end) = (self.border, self.border + self.samples);
        let ends = self.size.saturating_add(self.stride);
        let middle = first.saturating_add(ends).min(end);
        let samples = (first..middle).chain(end.saturating_sub(ends).max(middle)..end);
        samples.map(|p| self.overlap(p, |i| self.weight(i))).fold(f64::INFINITY, f64::min)
    }

    /// What a bin counts in the spectrum.
    fn scale(&self, bin: usize) -> f64 {
        let ends = bin == 0 || 2 * bin == self.size;
        match (self.inverse, ends) {
            (false, _) => 1.0,
            (true, true) => 1.0 / self.size as f64,
            (true, false) => 2.0 / self.size as f64,
        }
    }

    fn analyse(&self, x: &Data, y: [Option<(&Data, Output)>; 2]) -> Result<()> {
        if let Place::Gpu(_) = x.place() {
            return cuda::analyse(self, x, y);
        }
        with_real!(x.dtype(), T => {
            let y = y.map(|y| y.map(|(y, output)| (y.as_mut_slice::<T>(), output)));
            cpu::analyse(self, x.as_slice::<T>(), y);
        });
        Ok(())
    }

    fn synthesize(&self, y: [Option<&Data>; 2], x: &Data, output: Output) -> Result<()> {
        if let Place::Gpu(_) = x.place() {
            return cuda::synthesize(self, y, x, output);
        }
        with_real!(x.dtype(), T => {
            cpu::synthesize(self, y.map(|y| y.map(|y| y.as_slice::<T>())), x.as_mut_slice(), output);
        });
        Ok(())
    }

    /// Bytes of what the host works in.
    fn buffers(&self, size: usize) -> usize {
        let signal =
            counted(self.padded().saturating_mul(size)).saturating_mul(self.batch.clamp(1, pool::num_threads()));
        let frame = self.size.saturating_mul(size);
        let spectra = counted(frame.saturating_mul(2 * cpu::TOGETHER)).saturating_mul(2 * pool::num_threads());
        signal.saturating_add(spectra).saturating_add(counted(frame).saturating_mul(4))
    }
}

/// Spectra of a signal's frames: real and imaginary part.
pub struct Analysis(pub Frames);

impl Call for Analysis {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.analyse(&x[0].data, [0, 1].map(|i| Some((&y[i].data, Output::Write))))
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [self.0.buffers(dtype.size()); 2]
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let Some(gx) = &gx[0] else { return Ok(()) };
        self.0.synthesize([0, 1].map(|i| gy[i].as_ref().map(|gy| &gy.data)), &gx.data, gx.output)
    }
}

/// The transpose: frames of spectra, windowed and added up.
pub struct Synthesis(pub Frames);

impl Call for Synthesis {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.synthesize([0, 1].map(|i| Some(&x[i].data)), &y[0].data, Output::Write)
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [self.0.buffers(dtype.size()); 2]
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let Some(gy) = &gy[0] else { return Ok(()) };
        self.0.analyse(&gy.data, [0, 1].map(|i| gx[i].as_ref().map(|gx| (&gx.data, gx.output))))
    }
}
