//! The rest of a division, and shifted bits: pairs of numbers of arrays that broadcast.

mod cpu;
mod cuda;

use crate::array::Place;
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::with_real;
use ndarray::Zip;

/// Two arrays that broadcast to a third.
pub struct Pairs {
    x: [Shape; 2],
    y: Shape,
}

impl Pairs {
    pub fn new(x: &[Shape], y: Shape) -> Pairs {
        Pairs { x: [x[0].clone(), x[1].clone()], y }
    }

    /// Whether nothing repeats.
    fn is_plain(&self) -> bool {
        self.x.iter().all(|x| *x == self.y)
    }
}

/// The rest of a division; with the flag its sign is always the dividend's.
pub struct Mod2(pub Pairs, pub bool);

impl Call for Mod2 {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let floor = !self.1 && !run.inputs[0].dtype().is_float();
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::run("mod2", &self.0, x, &y[0].data, [floor as i64, 0]);
        }
        if self.0.is_plain() {
            match run.dtype {
                DType::F64 => cpu::rests::<f64>(floor, x[0].slice(), x[1].slice(), y[0].slice()),
                _ => cpu::rests::<f32>(floor, x[0].slice(), x[1].slice(), y[0].slice()),
            }
            return Ok(());
        }
        with_real!(run.dtype, T => {
            let (a, b, mut y) = (x[0].view::<T>(), x[1].view::<T>(), y[0].view::<T>());
            let rest = |y: &mut T, &a: &T, &b: &T| *y = cpu::signed(floor, a % b, b);
            Zip::from(&mut y).and_broadcast(&a).and_broadcast(&b).for_each(rest);
        });
        Ok(())
    }
}

/// Whole numbers with their bits moved.
pub struct BitShift {
    pub pairs: Pairs,
    pub left: bool,
}

impl BitShift {
    /// The bits of the type that x had.
    fn width(run: &Run) -> u32 {
        match run.inputs[0].dtype() {
            dtype @ (DType::I8 | DType::U8 | DType::I16 | DType::U16 | DType::I32 | DType::U32) => {
                8 * dtype.size() as u32
            }
            _ => 64,
        }
    }
}

impl Call for BitShift {
    /// A negative distance is an error on the host; a GPU, which would have to wait for the check, gives 0.
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let dtype = run.inputs[0].dtype();
        let signed = !matches!(dtype, DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64);
        let width = BitShift::width(run);
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::run(
                "bit_shift",
                &self.pairs,
                x,
                &y[0].data,
                [self.left as i64, width as i64 * 2 + signed as i64],
            );
        }
        if let Some(by) = cpu::negative(x[1].slice::<i64>()) {
            return Err(Error::arg("shift", "distances of 0 or more").actual_index(by));
        }
        let bits = cpu::Bits { width, signed, left: self.left };
        if self.pairs.is_plain() {
            cpu::shifts(bits, x[0].slice(), x[1].slice(), y[0].slice());
            return Ok(());
        }
        let (a, b, mut y) = (x[0].view::<i64>(), x[1].view::<i64>(), y[0].view::<i64>());
        Zip::from(&mut y).and_broadcast(&a).and_broadcast(&b).for_each(|y, &a, &b| *y = bits.moved(a, b));
        Ok(())
    }
}
