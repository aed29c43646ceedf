//! The mean of each row.

use crate::array::{Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::cuda::program;
use crate::error::Result;
use crate::kernel::reduction::cuda::{DeviceReduction, reduce};
use crate::pool::tasks;
use crate::shape::Shape;
use crate::simd::{self, SimdReal};
use crate::with_real;

/// Means of `rows` rows of `n` numbers.
pub struct GlobalAveragePooling {
    pub rows: usize,
    pub n: usize,
}

impl Call for GlobalAveragePooling {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let &GlobalAveragePooling { rows, n } = self;
        if let Place::Gpu(_) = y[0].data.place() {
            let (sum, scale, rows) = (DeviceReduction::Sum, 1.0 / n as f64, Shape::from([rows, n]));
            return reduce(sum, &x[0].data, &rows, &[false, true], &y[0].data, scale, Output::Write);
        }
        with_real!(run.dtype, T => {
            let (x, y) = (x[0].slice::<T>(), y[0].slice::<T>());
            by_rows(y, 1, n, |first, y| {
                let mean = |(i, y): (usize, &mut T)| *y = simd::sum(&x[(first + i) * n..][..n]) / n as T;
                y.iter_mut().enumerate().for_each(mean);
            });
        });
        Ok(())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &mut gx[0]) else { return Ok(()) };
        let (&GlobalAveragePooling { rows, n }, output) = (self, gx.output);
        if n == 0 {
            return Ok(());
        }
        if let Place::Gpu(_) = gx.data.place() {
            let (one, all) = (Shape::from([rows, 1]), Shape::from([rows, n]));
            return program::broadcast(&gy.data, &one, &gx.data, &all, 1.0 / n as f64, output);
        }
        with_real!(run.dtype, T => {
            let gy = gy.slice::<T>();
            by_rows(gx.slice::<T>(), n, n, |first, gx| {
                for (row, &g) in gx.chunks_exact_mut(n).zip(&gy[first..]) {
                    let g = g / n as T;
                    if output == Output::Write { row.fill(g) } else { simd::add_scalar(row, g) }
                }
            });
        });
        Ok(())
    }
}

/// Calls `f(first row, rows)` on parts of `y`, in rows of `width`, each of which costs `work`.
fn by_rows<T: SimdReal>(y: &mut [T], width: usize, work: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    let each = ((1 << 14) / work.max(1)).max(1);
    tasks::parts(y, each * width, |i, part| f(i * each, part));
}
