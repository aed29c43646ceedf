//! Largest and smallest elements over axes, with their places: the first of equal ones. NaN is left out.

use super::cpu::{Extremum, Index, mark, spread, winners};
use super::{Reduced, cuda};
use crate::array::{Data, Output, Place};
use crate::call::{Call, GradMut, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::ops;
use crate::pool::tasks::SendPtr;
use crate::simd::SimdReal;
use crate::with_real;

/// The values of the winners, or the values and the indices, or the indices.
pub struct Extreme {
    pub over: Reduced,
    pub order: Extremum,
    pub only_index: bool,
}

/// The winners of a forward pass: numbers among the reduced elements, as [`Extreme::index_type`].
struct ReductionArgmax(Data);

/// Runs `$body` with `$I` = the type of the indices.
macro_rules! with_index {
    ($dtype:expr, $I:ident => $body:expr) => {
        if $dtype == DType::U32 {
            type $I = u32;
            $body
        } else {
            type $I = u64;
            $body
        }
    };
}

impl Extreme {
    /// The type that counts the reduced elements.
    fn index_type(&self) -> DType {
        let count = self.over.sizes().fold(1, usize::saturating_mul);
        if count <= u32::MAX as usize { DType::U32 } else { DType::U64 }
    }

    fn write<T: SimdReal, I: Index>(&self, x: &[T], y: &mut [ViewMut], saved: Option<&mut [I]>) {
        let mut outs = y.iter_mut();
        let value = if self.only_index { None } else { outs.next().map(|y| SendPtr(y.slice::<T>().as_mut_ptr())) };
        let index = outs.next().map(|y| SendPtr(y.slice::<u64>().as_mut_ptr()));
        let saved = saved.map(|s| SendPtr(s.as_mut_ptr()));
        let numbers = index.is_some() || saved.is_some();
        winners(x, &self.over.shape, &self.over.mask, self.order, numbers, move |r, v, k| {
            // SAFETY: these are some of the results, and each is written once.
            unsafe {
                if let Some(y) = value {
                    y.slice(r, v.len()).copy_from_slice(v);
                }
                if let Some(y) = index {
                    k.write(y.slice(r, v.len()));
                }
                if let Some(y) = saved {
                    k.write(y.slice(r, v.len()));
                }
            }
        });
    }

    /// The gradient on a GPU, where the winners are found again.
    fn backward_on_gpu(&self, x: &View, gy: Option<&View>, gx: &GradMut) -> Result<()> {
        let Reduced { shape, mask, .. } = &self.over;
        match gy {
            Some(gy) => cuda::spread(self.order, &x.data, shape, mask, Some(&gy.data), &gx.data, gx.output),
            None if gx.output == Output::Write => ops::fill(&gx.data, 0.0),
            None => Ok(()),
        }
    }
}

impl Call for Extreme {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            let mut outs = y.iter().map(|y| &y.data);
            let values = if self.only_index { None } else { outs.next() };
            let to = cuda::ArgmaxOutputs { values, indices: outs.next() };
            return cuda::search(self.order, &x[0].data, &self.over.shape, &self.over.mask, to);
        }
        let index = self.index_type();
        let saved = if run.keep { Some(Data::new(index, self.over.kept.size())?) } else { None };
        with_real!(run.dtype, T => with_index!(index, I => {
            self.write::<T, I>(x[0].slice(), y, saved.as_ref().map(|s| s.as_mut_slice()));
        }));
        if let Some(index) = saved {
            run.save(ReductionArgmax(index));
        }
        Ok(())
    }

    fn saves(&self, _dtype: DType) -> Option<usize> {
        Some(self.over.kept.size() * self.index_type().size())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    /// The gradient of the first output, at the winners.
    fn backward(&self, run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let Some(gx) = &mut gx[0] else { return Ok(()) };
        let gy = gy[0].as_ref().filter(|_| !self.only_index);
        if let (Some(x), Place::Gpu(_)) = (&x[0], gx.data.place()) {
            return self.backward_on_gpu(x, gy, gx);
        }
        let (Reduced { shape, mask, .. }, output) = (&self.over, gx.output);
        if shape.size() == 0 {
            return Ok(());
        }
        let winners = run.saved::<ReductionArgmax>().ok_or_else(no_forward)?;
        let index = &winners.0;
        with_real!(run.dtype, T => with_index!(index.dtype(), I => match gy {
            Some(gy) => spread::<T, I>(index.as_slice(), shape, mask, gy.slice(), gx.slice(), output),
            None if output == Output::Write => gx.slice::<T>().fill(0.0),
            None => {}
        }));
        Ok(())
    }
}

fn no_forward() -> Error {
    Error::graph("the indices of the forward pass are missing").hint("call forward() before backward()")
}

/// 1 at the winners, 0 elsewhere.
pub struct WinnerMask {
    pub over: Reduced,
    pub order: Extremum,
}

impl Call for WinnerMask {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let Reduced { shape, mask, .. } = &self.over;
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::spread(self.order, &x[0].data, shape, mask, None, &y[0].data, Output::Write);
        }
        with_real!(run.dtype, T => mark(x[0].slice::<T>(), shape, mask, self.order, y[0].slice()));
        Ok(())
    }
}
