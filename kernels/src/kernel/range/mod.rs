//! Numbers at equal distances.

pub(crate) mod cuda;

use crate::array::{Data, Place};
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::{DType, Element, Real};
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
            each_number(y[0].slice::<f64>(), |i| self.start + i * self.step);
            return Ok(());
        }
        let (y, step) = (y[0].slice::<f32>(), self.step as f32);
        if self.is_exact() {
            let start = (self.start as f32) as f64;
            each_number(y, |i| start + i * step as f64);
            return Ok(());
        }
        let mut v = self.start as f32;
        for y in y {
            *y = v;
            v += step;
        }
        Ok(())
    }
}

impl Arange {
    /// Whether no sum in single precision is rounded, so that products give the same: all are small multiples of one power of 2.
    fn is_exact(&self) -> bool {
        let (start, step) = (self.start as f32 as f64, self.step as f32 as f64);
        let most = start.abs() + step.abs() * self.n as f64;
        let is_multiple = |unit: f64| (start * unit).fract() == 0.0 && (step * unit).fract() == 0.0;
        (0..24).map(|e| (1 << e) as f64).any(|unit| most * unit <= (1 << 24) as f64 && is_multiple(unit))
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

/// Writes what `f` makes of the number of each element.
fn each_number<T: Real>(y: &mut [T], f: impl Fn(f64) -> f64 + Sync) {
    // So many are counted side by side, which is faster than converting each number.
    const TOGETHER: usize = 8;
    tasks::parts(y, TASK, |task, y| {
        let mut at: [f64; TOGETHER] = std::array::from_fn(|k| (task * TASK + k) as f64);
        let (whole, rest) = y.as_chunks_mut::<TOGETHER>();
        for y in whole {
            *y = std::array::from_fn(|k| T::from_f64(f(at[k])));
            at.iter_mut().for_each(|at| *at += TOGETHER as f64);
        }
        rest.iter_mut().zip(at).for_each(|(y, at)| *y = T::from_f64(f(at)));
    });
}

impl Call for Linspace {
    fn forward(&self, run: &Run, _x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let &Linspace { start, stop, step } = self;
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::range(&y[0].data, start, step, stop);
        }
        with_real!(run.dtype, T => {
            let y = y[0].slice::<T>();
            each_number(y, |i| start + i * step);
            if let [_, .., last] = y {
                *last = T::from_f64(stop);
            }
        });
        Ok(())
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(exact_ones_are_sums);
    fn exact_ones_are_sums() {
        for (start, step, exact) in
            [(0.0, 1.0, true), (-3.0, 0.25, true), (7.0, -2.0, true), (0.0, 0.1, false), (16_777_000.0, 1.0, false)]
        {
            let (n, mut v) = (1000, start as f32);
            let a = Arange { start, step, n };
            assert_eq!(a.is_exact(), exact, "{start} {step}");
            for i in (0..n).take_while(|_| exact) {
                assert_eq!((start + i as f64 * step) as f32, v);
                v += step as f32;
            }
        }
    }
}
