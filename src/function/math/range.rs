//! `arange` and `linspace`: numbers at equal distances.

use crate::function;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::range as kernel;
use nnrs_kernels::shape::Shape;

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

/// Refuses ends and steps from which nothing can be counted.
fn finite(numbers: &[(&str, f64)]) -> Result<()> {
    match numbers.iter().find(|(_, v)| !v.is_finite()) {
        Some((name, v)) => Err(Error::arg(name, "a finite number").actual(v)),
        None => Ok(()),
    }
}

impl Function for Arange {
    fn resolve(&self, _x: &[Shape]) -> Result<Resolved> {
        finite(&[("start", self.start), ("stop", self.stop), ("step", self.step)])?;
        if self.step == 0.0 {
            return Err(Error::arg("step", "a number other than 0").actual(self.step));
        }
        let n = self.count()?;
        Ok(Resolved::one([n], kernel::Arange { start: self.start, step: self.step, n }))
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![])
    }
}

impl Function for Linspace {
    fn resolve(&self, _x: &[Shape]) -> Result<Resolved> {
        let fail = |_| Error::arg("num", "a number that is not negative").actual(self.num);
        let n = usize::try_from(self.num).map_err(fail)?;
        let step = (self.stop - self.start) / (self.num - 1).max(1) as f64;
        Ok(Resolved::one([n], kernel::Linspace { start: self.start, stop: self.stop, step }))
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![])
    }
}
