//! An array with a border: a constant, its reflection, or its edge; and the reverse.

mod cpu;
mod cuda;

use super::ops;
use crate::array::scratch::counted;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::moves::Moves;
use crate::shape::Shape;
use crate::with_real;
use smallvec::SmallVec;

/// What a border is made of; the numbers are those of `Mode` in `cuda/pad.cu`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Constant,
    Reflect,
    Repeat,
}

/// Size of an axis, and of its border on both sides.
pub type PadAxis = (usize, usize, usize);
pub type PadAxes = SmallVec<[PadAxis; 6]>;

/// The borders of an array.
pub struct Borders {
    pub axes: PadAxes,
    mode: Mode,
    strides: SmallVec<[usize; 6]>,
    size: usize,
}

impl Borders {
    /// Around arrays of shape `x`.
    pub fn new(x: &Shape, axes: PadAxes, mode: Mode) -> Borders {
        Borders { axes, mode, strides: x.strides(), size: x.size() }
    }

    pub fn is_constant(&self) -> bool {
        self.mode == Mode::Constant
    }

    /// Sums borders that are made of the array's elements onto them.
    fn sum(&self, gy: &Data, gx: &Data, output: Output) -> Result<()> {
        match gx.place() {
            Place::Gpu(_) => cuda::backward(&self.axes, self.mode, gy, gx, output),
            Place::Host => {
                with_real!(gx.dtype(), T => self.backward(gy.as_slice::<T>(), gx.as_mut_slice(), output));
                Ok(())
            }
        }
    }
}

/// Puts a border around an array.
pub struct Pad {
    pub borders: Borders,
    value: f64,
    /// The copy of x into the middle of y.
    middle: Moves,
    /// Size of y's last axis.
    width: usize,
}

impl Pad {
    /// Of x, which has shape `x`, to shape `y`; `value` is that of a constant border.
    pub fn new(borders: Borders, x: &Shape, y: &Shape, value: f64) -> Pad {
        let (from, to) = (x.strides(), y.strides());
        let first = borders.axes.iter().zip(&to).map(|(a, s)| a.1 * s).sum();
        let axes = x.iter().zip(to.into_iter().zip(from));
        let middle = axes.fold(Moves::new(first, 0), |m, (&n, (to, from))| m.axis(n, to as isize, from as isize));
        Pad { borders, value, middle, width: y.last().copied().unwrap_or(1) }
    }
}

impl Call for Pad {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let b = &self.borders;
        if let Place::Gpu(_) = y[0].data.place() {
            // In one pass over the result.
            let value = if run.dtype == DType::F64 { self.value } else { self.value as f32 as f64 };
            return cuda::forward(&b.axes, b.mode, value, &x[0].data, &y[0].data);
        }
        if !b.is_constant() {
            with_real!(run.dtype, T => b.forward(x[0].slice::<T>(), y[0].slice()));
            return Ok(());
        }
        ops::fill(&y[0].data, self.value)?;
        ops::moves(self.middle.clone(), &y[0].data, &x[0].data, Output::Write)
    }

    fn scratch(&self, _dtype: DType) -> [usize; 2] {
        [if self.borders.is_constant() { 0 } else { counted(self.width * size_of::<usize>()) }; 2]
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        match self.borders.is_constant() {
            true => ops::moves(self.middle.clone().reversed(), &gx.data, &gy.data, gx.output),
            false => self.borders.sum(&gy.data, &gx.data, gx.output),
        }
    }
}

/// Sums a border made of the result's elements onto them.
pub struct Unpad(pub Borders);

impl Call for Unpad {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.sum(&x[0].data, &y[0].data, Output::Write)
    }
}
