//! `mean` over axes.

use super::sum::spread;
use super::{mask, reduced};
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::array::Place;
use nnrs_kernels::cpu::reduce::{broadcast, sum_axes};
use nnrs_kernels::cpu::scratch::{Scratch, counted};
use nnrs_kernels::cpu::simd::SimdReal;
use nnrs_kernels::cuda::program;
use nnrs_kernels::cuda::reduce::{Reduction, reduce};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Result;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

function! {
    /// Mean over axes. The mean of no elements is NaN.
    Mean mean in Reduction, any_device
    inputs { x: "N-D array." }
    args {
        axis: Option<Vec<i64>> = None, "Axes to average over; None: all. They may count from the end.";
        keepdims: bool = false, "Whether the averaged axes stay, with size 1."
    }
    outputs { y: "x without the averaged axes." }
}

impl Mean {
    /// Number of elements in each mean.
    fn count(&self, x: &Shape) -> Result<usize> {
        let mask = mask(x, &self.axis)?;
        Ok(x.iter().zip(&mask).filter(|(_, m)| **m).map(|(n, _)| n).product())
    }
}

impl Function for Mean {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        Ok(smallvec![reduced(&x[0], &mask(&x[0], &self.axis)?, self.keepdims)])
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (mask, n) = (mask(x[0].shape, &self.axis)?, self.count(x[0].shape)?);
        if let Place::Gpu(_) = y[0].data.place() {
            let x = &x[0];
            return reduce(Reduction::Sum, &x.data, x.shape, &mask, &y[0].data, 1.0 / n as f64, Output::Write);
        }
        with_real!(run.dtype, T => {
            let y = y[0].slice::<T>();
            sum_axes(x[0].slice(), x[0].shape, &mask, y, Output::Write);
            divide(y, n);
        });
        Ok(())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(
        &self,
        run: &Run,
        _x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &mut gx[0]) else { return Ok(()) };
        let kept = reduced(gx.shape, &mask(gx.shape, &self.axis)?, true);
        let (shape, output, n) = (gx.shape.clone(), gx.output, self.count(run.shape(0))?);
        if let Place::Gpu(_) = gx.data.place() {
            return program::broadcast(&gy.data, &kept, &gx.data, &shape, 1.0 / n as f64, output);
        }
        with_real!(run.dtype, T => {
            let mut share = Scratch::of(gy.slice::<T>());
            divide(&mut share, n);
            broadcast(&share, &kept, gx.slice(), &shape, output);
        });
        Ok(())
    }

    fn scratch(&self, _x: &[&Shape], y: &[&Shape], dtype: DType) -> [usize; 2] {
        [0, counted(y[0].size() * dtype.size())]
    }

    fn grad_repeats(&self, x: &Shape) -> Option<Shape> {
        Some(reduced(x, &mask(x, &self.axis).ok()?, true))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let x = g.x[0].shape();
        let val = 1.0 / self.count(&x)? as f64;
        let share = f::mul_scalar(&g.gy[0], f::MulScalar { val, inplace: false })?;
        Ok(vec![Some(spread(&share, &x, &self.axis)?)])
    }
}

fn divide<T: SimdReal>(y: &mut [T], n: usize) {
    let n = T::from_f64(n as f64);
    y.iter_mut().for_each(|v| *v = *v / n);
}
