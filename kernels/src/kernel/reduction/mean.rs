//! The mean over axes.

use super::Reduced;
use super::axes::has_dense_runs;
use crate::array::scratch::{Scratch, counted};
use crate::array::{Output, Place, Strided};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::cuda::program;
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::reduction::cpu::{broadcast, sum_axes};
use crate::kernel::reduction::cuda::{DeviceReduction, reduce};
use crate::pool::tasks::Shared;
use crate::shape::Shape;
use crate::simd::{self, Body, SimdReal, Vector};
use crate::with_real;

/// The mean over axes.
pub struct Mean(pub Reduced);

impl Call for Mean {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (Reduced { shape, mask, .. }, n) = (&self.0, self.0.count());
        if let Place::Gpu(_) = y[0].data.place() {
            return reduce(DeviceReduction::Sum, &x[0].data, shape, mask, &y[0].data, 1.0 / n as f64, Output::Write);
        }
        with_real!(run.dtype, T => {
            let y = y[0].slice::<T>();
            sum_axes::<T>(&x[0], shape, mask, y, Output::Write);
            divide(y, n);
        });
        Ok(())
    }

    fn takes_strides(&self, _i: usize, x: &Strided, place: Place) -> bool {
        place == Place::Host && has_dense_runs(x, &self.0.mask)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &mut gx[0]) else { return Ok(()) };
        let (Reduced { kept, .. }, shape, output, n) = (&self.0, gx.shape, gx.output, self.0.count());
        if let Place::Gpu(_) = gx.data.place() {
            return program::broadcast(&gy.data, kept, &gx.data, shape, 1.0 / n as f64, output);
        }
        with_real!(run.dtype, T => {
            let mut share = Scratch::of(gy.slice::<T>());
            divide(&mut share, n);
            broadcast(&share, kept, gx.slice(), shape, output);
        });
        Ok(())
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [0, counted(self.0.kept.size() * dtype.size())]
    }

    fn grad_repeats(&self) -> Option<Shape> {
        Some(self.0.kept.clone())
    }
}

pub(in crate::kernel) fn divide<T: SimdReal>(y: &mut [T], n: usize) {
    // SAFETY: the slice is the caller's.
    unsafe { simd::run(&Quotients { y: Shared(y.as_mut_ptr()), len: y.len(), n: T::from_f64(n as f64) }) };
}

struct Quotients<T> {
    y: Shared<T>,
    len: usize,
    n: T,
}

impl<T: SimdReal> Body<T> for Quotients<T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        // SAFETY: the caller's promise.
        let y = unsafe { std::slice::from_raw_parts_mut(self.y.0, self.len) };
        y.iter_mut().for_each(|v| *v = *v / self.n);
    }
}
