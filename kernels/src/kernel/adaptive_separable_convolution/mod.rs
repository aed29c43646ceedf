//! Convolutions with a kernel of its own at each place, the product of a column and a row. The sum of its result times a fourth array
//! is linear in all four, so each gradient is a sum of products of the other three.

mod cpu;
mod cuda;

use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::with_real;

/// Sizes. Pairs are of height and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeparableSizes {
    pub batch: usize,
    pub channels: usize,
    pub input: [usize; 2],
    pub output: [usize; 2],
    /// Sizes of the column and of the row.
    pub taps: [usize; 2],
    /// Planes of the columns and of the rows, of which the first rows and columns are used.
    pub columns: [usize; 2],
    pub rows: [usize; 2],
}

/// One of the four arrays: images, columns, rows, the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeparablePart {
    Images,
    Columns,
    Rows,
    Result,
}

impl SeparableSizes {
    /// `y`, which is that part, from the other three in their order.
    fn run(&self, part: SeparablePart, x: [&Data; 3], y: &Data, output: Output) -> Result<()> {
        if y.is_empty() {
            return Ok(());
        }
        if let Place::Gpu(_) = y.place() {
            return cuda::product(self, part, x, y, output);
        }
        with_real!(y.dtype(), T => cpu::product(self, part, x.map(|x| x.as_slice::<T>()), y.as_mut_slice(), output));
        Ok(())
    }
}

/// The convolution, or the gradient of a part.
pub struct SeparableProduct {
    pub sizes: SeparableSizes,
    pub part: SeparablePart,
}

impl Call for SeparableProduct {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.sizes.run(self.part, [&x[0].data, &x[1].data, &x[2].data], &y[0].data, Output::Write)
    }

    fn multiplications(&self) -> f64 {
        let s = &self.sizes;
        [s.batch, s.channels, s.output[0], s.output[1], s.taps[0], s.taps[1]].map(|n| n as f64).iter().product()
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        let others = |i: usize| if want[i] { 0b111 & !(1 << i) } else { 0 };
        (self.part == SeparablePart::Result).then_some(Needs { x: others(0) | others(1) | others(2), y: 0 })
    }

    fn backward(&self, _run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let Some(gy) = &gy[0] else { return Ok(()) };
        let parts = [SeparablePart::Images, SeparablePart::Columns, SeparablePart::Rows];
        for (i, part) in parts.into_iter().enumerate() {
            let (first, second) = ([1, 0, 0][i], [2, 2, 1][i]);
            if let (Some(gx), Some(a), Some(b)) = (&gx[i], &x[first], &x[second]) {
                self.sizes.run(part, [&a.data, &b.data, &gy.data], &gx.data, gx.output)?;
            }
        }
        Ok(())
    }
}
