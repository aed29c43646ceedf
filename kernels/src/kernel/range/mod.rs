//! Numbers at equal distances.

pub(crate) mod cuda;

use crate::array::{Data, Place};
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::pool::tasks;
use crate::with_real;

/// `n` numbers from `start` on; in single precision each is the sum of the one before and `step`.
pub struct Arange {
    pub start: f64,
    pub step: f64,
    pub n: usize,
}

impl Arange {
    fn on_gpu(&self, run: &Run, y: &Data) -> Result<()> {
        match run.dtype {
            DType::F64 => {
                let last = self.start + (self.n.max(1) - 1) as f64 * self.step;
                cuda::range(y, self.start, self.step, last)
            }
            _ => cuda::counted(y, self.start as f32, self.step as f32),
        }
    }
}

impl Call for Arange {
    fn forward(&self, run: &Run, _x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return self.on_gpu(run, &y[0].data);
        }
        if run.dtype == DType::F64 {
            let numbers = y[0].slice::<f64>().iter_mut().enumerate();
            numbers.for_each(|(i, y)| *y = self.start + i as f64 * self.step);
            return Ok(());
        }
        let mut v = self.start as f32;
        for y in y[0].slice::<f32>() {
            *y = v;
            v += self.step as f32;
        }
        Ok(())
    }
}

/// Numbers from `start` to `stop`, both included.
pub struct Linspace {
    pub start: f64,
    pub stop: f64,
    pub step: f64,
}

/// Numbers of a task.
const TASK: usize = 1 << 14;

impl Call for Linspace {
    fn forward(&self, run: &Run, _x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let &Linspace { start, stop, step } = self;
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::range(&y[0].data, start, step, stop);
        }
        with_real!(run.dtype, T => {
            let y = y[0].slice::<T>();
            // The number within a task is a short one, of which vectors are converted together.
            tasks::parts(y, TASK, |task, y| {
                let first = (task * TASK) as f64;
                let numbers = y.iter_mut().enumerate();
                numbers.for_each(|(i, y)| *y = T::from_f64(start + (first + i as i32 as f64) * step));
            });
            if let [_, .., last] = y {
                *last = T::from_f64(stop);
            }
        });
        Ok(())
    }
}
