//! The mean of each row.

use crate::array::{Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::cuda::program;
use crate::error::Result;
use crate::kernel::reduction::cuda::{DeviceReduction, reduce};
use crate::kernel::reduction::{cpu::sum_axes, divide};
use crate::pool::tasks;
use crate::shape::Shape;
use crate::simd;
use crate::with_real;

/// Numbers that are worth a task.
const TASK: usize = 1 << 14;

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
            sum_axes(x, &Shape::from([rows, n]), &[false, true], y, Output::Write);
            divide(y, n);
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
            let rows = (TASK / n).max(1);
            tasks::parts(gx.slice::<T>(), rows * n, |task, gx| {
                for (row, &g) in gx.chunks_exact_mut(n).zip(&gy[task * rows..]) {
                    let g = g / n as T;
                    if output == Output::Write { row.fill(g) } else { simd::add_scalar(row, g) }
                }
            });
        });
        Ok(())
    }
}
