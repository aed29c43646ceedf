//! Products of patches of two images, summed; and what each image's gradient is of these. Images are (height, width, channels).

mod cpu;
mod cuda;

use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::with_real;

/// Sizes; pairs are vertical and horizontal.
#[derive(Clone, Debug)]
pub struct Correlation {
    pub batch: usize,
    pub channels: usize,
    pub size: [usize; 2],
    /// Places of patches, and of their shifts.
    pub out: [usize; 2],
    pub shifts: [usize; 2],
    pub patch: [usize; 2],
    /// The largest shift, to both sides.
    pub shift: [usize; 2],
    pub patch_step: [usize; 2],
    pub shift_step: [usize; 2],
    /// Rows above and columns before the image.
    pub pad: [usize; 2],
}

impl Correlation {
    /// How far shift number `s` goes along axis `a`.
    fn shifted(&self, a: usize, s: usize) -> isize {
        (s * self.shift_step[a]) as isize - self.shift[a] as isize
    }

    /// The places of patches along axis `a` whose patch has element `i` of the first image.
    fn over(&self, a: usize, i: usize) -> std::ops::Range<usize> {
        let (p, step) = (i + self.pad[a], self.patch_step[a]);
        let first = if p < self.patch[a] { 0 } else { (p - self.patch[a]) / step + 1 };
        first.min(self.out[a])..(p / step + 1).min(self.out[a])
    }

    fn correlate(&self, x: [&Data; 2], y: &Data) -> Result<()> {
        if let Place::Gpu(_) = y.place() {
            return cuda::correlate(self, x, y);
        }
        with_real!(y.dtype(), T => cpu::correlate(self, x.map(|x| x.as_slice::<T>()), y.as_mut_slice()));
        Ok(())
    }

    fn gradient(&self, second: bool, gy: &Data, other: &Data, gx: &Data, output: Output) -> Result<()> {
        if let Place::Gpu(_) = gx.place() {
            return cuda::gradient(self, second, gy, other, gx, output);
        }
        with_real!(gx.dtype(), T => {
            cpu::gradient(self, second, gy.as_slice::<T>(), other.as_slice(), gx.as_mut_slice(), output);
        });
        Ok(())
    }
}

/// Sums of products.
pub struct PatchProducts(pub Correlation);

impl Call for PatchProducts {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.correlate([&x[0].data, &x[1].data], &y[0].data)
    }

    fn multiplications(&self) -> f64 {
        let c = &self.0;
        let sizes = [c.out, c.shifts, c.patch].into_iter().flatten().chain([c.batch, c.channels]);
        sizes.map(|n| n as f64).product()
    }

    /// Each image's gradient reads the other.
    fn needs(&self, want: &[bool]) -> Option<Needs> {
        Some(Needs { x: (want[0] as u32) << 1 | want[1] as u32, y: 0 })
    }

    fn backward(&self, _run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let Some(gy) = &gy[0] else { return Ok(()) };
        for (i, gx) in gx.iter().enumerate() {
            if let (Some(gx), Some(other)) = (gx, &x[1 - i]) {
                self.0.gradient(i == 1, &gy.data, &other.data, &gx.data, gx.output)?;
            }
        }
        Ok(())
    }
}

/// The gradient of the first image, or of the second, from that of the result and the other image.
pub struct CorrelationGradient {
    pub correlation: Correlation,
    pub second: bool,
}

impl Call for CorrelationGradient {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.correlation.gradient(self.second, &x[0].data, &x[1].data, &y[0].data, Output::Write)
    }
}
