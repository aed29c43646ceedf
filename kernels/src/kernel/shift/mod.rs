//! The elements moved along axes, one axis after the other; and the reverse.

mod cpu;
mod cuda;

use super::axis::Axis;
use super::ops;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Shape;
use crate::with_real;

/// What comes in where there is no element; the numbers are those in `cuda/shift.cu`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ShiftBorder {
    Nearest,
    Reflect,
}

/// The shift along one axis.
struct ShiftAxis {
    at: Axis,
    by: i64,
    border: ShiftBorder,
}

impl ShiftAxis {
    /// The place that place `i` of the result shows.
    fn source(&self, i: usize) -> usize {
        let n = self.at.n as i64;
        // What lies a period away is the same; beyond the ends the distance does not matter.
        let by = if self.border == ShiftBorder::Reflect { self.by % (2 * n) } else { self.by.clamp(-n, n) };
        let at = i as i64 - by;
        match self.border {
            ShiftBorder::Nearest => at.clamp(0, n - 1) as usize,
            ShiftBorder::Reflect => {
                let at = at.rem_euclid(2 * n);
                at.min(2 * n - 1 - at) as usize
            }
        }
    }

    /// To (`y = x` moved), or from (`y =` sums of what shows each element).
    fn run(&self, x: &Data, y: &Data, back: bool, output: Output) -> Result<()> {
        if let Place::Gpu(_) = y.place() {
            return cuda::run(self, x, y, back, output);
        }
        with_real!(y.dtype(), T => match back {
            false => cpu::to(self, x.as_slice::<T>(), y.as_mut_slice()),
            true => cpu::back(self, x.as_slice::<T>(), y.as_mut_slice(), output),
        });
        Ok(())
    }
}

/// Shifts along axes.
pub struct Shifts {
    /// Along all axes.
    pub distances: Vec<i64>,
    axes: Vec<ShiftAxis>,
    size: usize,
}

impl Shifts {
    /// Of arrays of shape `x` along the axes from `lead` on.
    pub fn new(x: &Shape, lead: usize, by: &[i64], border: ShiftBorder) -> Shifts {
        let moved = by.iter().enumerate().filter(|(_, by)| **by != 0);
        let axes = moved.map(|(a, &by)| ShiftAxis { at: Axis::new(x, lead + a), by, border }).collect();
        let distances = std::iter::repeat_n(0, lead).chain(by.iter().copied()).collect();
        Shifts { distances, axes, size: x.size() }
    }

    fn run(&self, x: &Data, y: &Data, back: bool, output: Output) -> Result<()> {
        if self.size == 0 {
            return Ok(());
        }
        let Some((last, first)) = self.axes.split_last() else { return ops::put(y, x, output) };
        let mut from = x.clone();
        for axis in first {
            let to = Data::new_at(y.place(), y.dtype(), self.size)?;
            axis.run(&from, &to, back, Output::Write)?;
            from = to;
        }
        last.run(&from, y, back, output)
    }

    /// Bytes of what lies between two axes.
    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [self.size.saturating_mul(self.axes.len().saturating_sub(1).min(2) * dtype.size()); 2]
    }
}

/// Moves the elements.
pub struct Shift(pub Shifts);

impl Call for Shift {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.run(&x[0].data, &y[0].data, false, Output::Write)
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        self.0.scratch(dtype)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        self.0.run(&gy.data, &gx.data, true, gx.output)
    }
}

/// Sums what shows each element.
pub struct Unshift(pub Shifts);

impl Call for Unshift {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.run(&x[0].data, &y[0].data, true, Output::Write)
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        self.0.scratch(dtype)
    }
}
