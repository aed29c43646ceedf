//! Discrete Fourier transforms over axes of arrays of complex numbers, whose last axis has real and imaginary part.

pub(crate) mod cpu;
pub(crate) mod cuda;

use crate::array::scratch::counted;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::pool;
use crate::with_real;
use smallvec::SmallVec;

/// A transform of `outer` signals, times `factor`.
pub struct Fft {
    pub outer: usize,
    /// Sizes of a signal's axes.
    pub axes: SmallVec<[usize; 3]>,
    /// The exponent is positive.
    pub inverse: bool,
    pub factor: f64,
    plans: cpu::FftPlans,
}

impl Fft {
    pub fn new(outer: usize, axes: SmallVec<[usize; 3]>, inverse: bool, factor: f64) -> Fft {
        Fft { outer, axes, inverse, factor, plans: cpu::FftPlans::default() }
    }

    fn run(&self, x: &Data, y: &Data, inverse: bool, output: Output) -> Result<()> {
        if let Place::Gpu(_) = y.place() {
            return cuda::transform(&self.axes, inverse, self.factor, x, y, output);
        }
        with_real!(y.dtype(), T => cpu::transform(self, x.as_slice::<T>(), y.as_mut_slice(), inverse, output));
        Ok(())
    }

    /// Bytes of what the host works in: lines side by side, and room for each, which for sizes with a large prime factor is more.
    fn lines(&self, size: usize) -> usize {
        let of = |(a, &n): (usize, &usize)| {
            let (line, inner) = (n.saturating_mul(2 * size), self.axes[a + 1..].iter().product::<usize>());
            let lines = self.axes.iter().product::<usize>() / n.max(1) * self.outer;
            let room = if cuda::radices(n).iter().all(|&p| p < 32) { 1 } else { 4 };
            let block = if a + 1 < self.axes.len() { cpu::COLUMNS.min(inner) } else { 0 };
            let each = counted(line.saturating_mul(room)).saturating_add(counted(line.saturating_mul(block)));
            each.saturating_mul(lines.div_ceil(block.max(1)).clamp(1, pool::num_threads()))
        };
        self.axes.iter().enumerate().map(of).max().unwrap_or(0)
    }
}

impl Call for Fft {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.run(&x[0].data, &y[0].data, self.inverse, Output::Write)
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [self.lines(dtype.size()); 2]
    }

    /// The rule makes the transform, and then its multiple.
    fn backward_scratch(&self, _want: &[bool]) -> usize {
        if self.axes.len() == 1 { 0 } else { 2 * self.axes.iter().product::<usize>() * self.outer }
    }

    /// With several axes what is between them would have no place where the result is added.
    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        (self.axes.len() == 1).then_some(Needs::NONE)
    }

    /// The transpose of a transform is the one with the other sign.
    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        self.run(&gy.data, &gx.data, !self.inverse, gx.output)
    }
}
