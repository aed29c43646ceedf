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

    /// Bytes of lines that are transformed together, and of what a transform works in.
    fn lines(&self, size: usize) -> usize {
        let longest = self.axes.iter().copied().max().unwrap_or(1);
        let line = longest.saturating_mul(2 * size);
        let columns = if self.axes.len() > 1 { cpu::COLUMNS } else { 1 };
        counted(line.saturating_mul(columns)).saturating_add(counted(line.saturating_mul(2)))
    }
}

impl Call for Fft {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.run(&x[0].data, &y[0].data, self.inverse, Output::Write)
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [self.lines(dtype.size()).saturating_mul(pool::num_threads()); 2]
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
