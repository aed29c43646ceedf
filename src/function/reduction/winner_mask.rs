//! 1 at the largest or smallest elements over axes, 0 elsewhere: the derivative of `max` and `min`.

use super::mask;
use crate::function;
use crate::function::{Function, Grad, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::array::Place;
use nnrs_kernels::cpu::extreme::{Order, mark};
use nnrs_kernels::cuda::extreme as gpu_kernel;
use nnrs_kernels::error::Result;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

function! {
    /// 1 where `max` or `min` find their element, 0 elsewhere.
    WinnerMask winner_mask in Special, forward_on_any_device
    inputs { x: "N-D array." }
    args {
        axis: Option<Vec<i64>> = None, "Axes to look over; None: all.";
        smallest: bool = false, "Whether the smallest element wins, not the largest."
    }
    outputs { y: "N-D array of x's shape." }
}

impl Function for WinnerMask {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        Ok(smallvec![x[0].clone()])
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let mask = mask(x[0].shape, &self.axis)?;
        let order = if self.smallest { Order::Smallest } else { Order::Largest };
        if let Place::Gpu(_) = y[0].data.place() {
            return gpu_kernel::spread(order, &x[0].data, x[0].shape, &mask, None, &y[0].data, Output::Write);
        }
        with_real!(run.dtype, T => mark(x[0].slice::<T>(), x[0].shape, &mask, order, y[0].slice()));
        Ok(())
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None])
    }
}
