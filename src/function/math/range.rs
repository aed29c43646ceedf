//! `arange` and `linspace`: numbers at equal distances.

use crate::function;
use crate::function::{Function, Grad, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::array::Place;
use nnrs_kernels::cuda;
use nnrs_kernels::dtype::{DType, Element};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

function! {
    /// Numbers from start on, step apart, to before stop. They are counted as NNabla does, in single precision, each
    /// number the sum of the one before and step: so there may be one more than the quotient says.
    Arange arange in Math, forward_on_any_device
    inputs {}
    args {
        start: f64, "The first number.";
        stop: f64, "Where the numbers end; itself left out.";
        step: f64 = 1.0, "The distance; may be negative, not 0."
    }
    outputs { y: "1-D array." }
}

function! {
    /// `num` numbers from start to stop, both included.
    Linspace linspace in Math, forward_on_any_device
    inputs {}
    args {
        start: f64, "The first number.";
        stop: f64, "The last number.";
        num: i64, "How many."
    }
    outputs { y: "1-D array." }
}

impl Arange {
    /// The numbers in single precision; an error if they do not move.
    fn count(&self) -> Result<usize> {
        let (mut v, stop, step) = (self.start as f32, self.stop as f32, self.step as f32);
        let before = |v: f32| if step < 0.0 { v > stop } else { v < stop };
        let mut n = 0;
        while before(v) {
            n += 1;
            let next = v + step;
            if next == v {
                return Err(Error::arg("step", format!("a step that moves {v} in single precision")).actual(self.step));
            }
            v = next;
        }
        Ok(n)
    }
}

impl Arange {
    fn on_gpu_to(&self, run: &Run, y: &ViewMut) -> Result<()> {
        match run.dtype {
            DType::F64 => {
                let last = self.start + (y.shape.size().max(1) - 1) as f64 * self.step;
                cuda::range::range(&y.data, self.start, self.step, last)
            }
            _ => cuda::range::counted(&y.data, self.start as f32, self.step as f32),
        }
    }
}

/// Refuses ends and steps from which nothing can be counted.
fn finite(numbers: &[(&str, f64)]) -> Result<()> {
    match numbers.iter().find(|(_, v)| !v.is_finite()) {
        Some((name, v)) => Err(Error::arg(name, "a finite number").actual(v)),
        None => Ok(()),
    }
}

impl Function for Arange {
    fn infer(&self, _x: &[Shape]) -> Result<Shapes> {
        finite(&[("start", self.start), ("stop", self.stop), ("step", self.step)])?;
        if self.step == 0.0 {
            return Err(Error::arg("step", "a number other than 0").actual(self.step));
        }
        Ok(smallvec![Shape::from([self.count()?])])
    }

    fn forward(&self, run: &Run, _x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return self.on_gpu_to(run, &y[0]);
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

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![])
    }
}

impl Function for Linspace {
    fn infer(&self, _x: &[Shape]) -> Result<Shapes> {
        let fail = |_| Error::arg("num", "a number that is not negative").actual(self.num);
        Ok(smallvec![Shape::from([usize::try_from(self.num).map_err(fail)?])])
    }

    fn forward(&self, run: &Run, _x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let step = (self.stop - self.start) / (self.num - 1).max(1) as f64;
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::range::range(&y[0].data, self.start, step, self.stop);
        }
        with_real!(run.dtype, T => {
            let y = y[0].slice::<T>();
            y.iter_mut().enumerate().for_each(|(i, y)| *y = T::from_f64(self.start + i as f64 * step));
            if let [_, .., last] = y {
                *last = T::from_f64(self.stop);
            }
        });
        Ok(())
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![])
    }
}
