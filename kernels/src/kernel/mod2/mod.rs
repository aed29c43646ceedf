//! The rest of a division, and shifted bits: pairs of numbers of arrays that broadcast.

mod cpu;
mod cuda;

use crate::array::{Data, Place};
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
        if !y[0].data.dtype().is_float() {
            return self.of_whole(run, x, &y[0].data);
        }
        let floor = !self.1 && !run.inputs[0].dtype().is_float();
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::run("mod2", &self.0, &[&x[0].data, &x[1].data], &y[0].data, [floor as i64, 0]);
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

impl Mod2 {
    /// Of whole numbers, in 64 bits; 0 where the divisor is 0.
    fn of_whole(&self, run: &Run, x: &[View], y: &Data) -> Result<()> {
        let (place, floor, is_signed) = (y.place(), !self.1, y.dtype() != DType::U64);
        let read = |i: usize| run.inputs[i].read_at(place, DType::I64)?.of(x[i].shape.size());
        let (a, b) = (read(0)?, read(1)?);
        through_64_bits(y, |wide| {
            if let Place::Gpu(_) = place {
                return cuda::run("mod2_whole", &self.0, &[&a, &b], wide, [floor as i64, is_signed as i64]);
            }
            let (a, b) = (View::new(x[0].shape, a), View::new(x[1].shape, b));
            let mut to = ViewMut { shape: &self.0.y, data: wide.clone() };
            let (a, b, mut to) = (a.view::<i64>(), b.view::<i64>(), to.view::<i64>());
            let rest = |y: &mut i64, &a: &i64, &b: &i64| *y = cpu::whole_rest(floor, is_signed, a, b);
            Zip::from(&mut to).and_broadcast(&a).and_broadcast(&b).for_each(rest);
            Ok(())
        })
    }
}

/// Whole numbers `y` as they are made in 64 bits.
fn through_64_bits(y: &Data, make: impl FnOnce(&Data) -> Result<()>) -> Result<()> {
    if y.dtype() == DType::I64 {
        return make(y);
    }
    let wide = Data::new_at(y.place(), DType::I64, y.len())?;
    make(&wide)?;
    y.take(&wide)
}

/// Whole numbers with their bits moved.
pub struct BitShift {
    pub pairs: Pairs,
    pub left: bool,
}

impl Call for BitShift {
    /// The result is of x's type if that is one of whole numbers, else of 64 bits. A negative distance is an error on the host; a
    /// GPU, which would have to wait for the check, gives 0.
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (x, by, y) = (&x[0], &x[1], &y[0].data);
        let is_plain = self.pairs.is_plain() && [x.dtype(), by.dtype()] == [y.dtype(); 2];
        if is_plain && y.place() == Place::Host {
            return cpu::shifted(self.left, &x.data, &by.data, y).map_err(BitShift::negative);
        }
        let bits = cpu::Bits::of(y.dtype(), self.left);
        through_64_bits(y, |wide| self.in_64_bits(bits, x, by, wide))
    }
}

impl BitShift {
    fn negative(by: i64) -> Error {
        Error::arg("shift", "distances of 0 or more").actual_index(by)
    }

    /// Arrays of any types and shapes.
    fn in_64_bits(&self, bits: cpu::Bits, x: &View, by: &View, y: &Data) -> Result<()> {
        if let Place::Gpu(_) = y.place() {
            let kind = [self.left as i64, bits.width as i64 * 2 + bits.signed as i64];
            return cuda::run("bit_shift", &self.pairs, &[&x.data, &by.data], y, kind);
        }
        let wide = |x: &View| if x.dtype() == DType::I64 { Ok(x.data.clone()) } else { x.data.converted(DType::I64) };
        let (x, by) = (View::new(x.shape, wide(x)?), View::new(by.shape, wide(by)?));
        if let Some(by) = cpu::negative(by.slice::<i64>()) {
            return Err(BitShift::negative(by));
        }
        if self.pairs.is_plain() {
            cpu::shifts(bits, x.slice(), by.slice(), y.as_mut_slice());
            return Ok(());
        }
        let mut y = ViewMut { shape: &self.pairs.y, data: y.clone() };
        let (a, b, mut y) = (x.view::<i64>(), by.view::<i64>(), y.view::<i64>());
        Zip::from(&mut y).and_broadcast(&a).and_broadcast(&b).for_each(|y, &a, &b| *y = bits.moved(a, b));
        Ok(())
    }
}
