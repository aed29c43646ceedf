//! `log_softmax`: logarithm of softmax along an axis.

use super::softmax::chosen_axis;
use crate::cpu::softmax::{self as kernel, Axis};
use crate::error::Result;
use crate::function::{Function, Grad, GradMut, Needs, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::shape::Shape;
use crate::{function, functions as f, with_real};
use smallvec::smallvec;

function! {
    /// Logarithm of softmax, `y = x - log(sum(exp(x)))` along an axis, without overflow.
    LogSoftmax log_softmax in Activation
    inputs { x: "N-D array, N > 0." }
    args { axis: Option<i64> = None, "Axis of the sum; None: the last one. May count from the end." }
    outputs { y: "N-D array of x's shape." }
}

impl Function for LogSoftmax {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        chosen_axis(&x[0], self.axis)?;
        Ok(smallvec![x[0].clone()])
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let a = Axis::new(x[0].shape, chosen_axis(x[0].shape, self.axis)?);
        with_real!(run.dtype, T => kernel::log_softmax::<T>(a, x[0].slice(), y[0].slice()));
        Ok(())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 0, y: 1 })
    }

    fn backward(
        &self,
        run: &Run,
        _x: &[Option<View>],
        y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(y), Some(gy), Some(gx)) = (&y[0], &gy[0], &mut gx[0]) else { return Ok(()) };
        let a = Axis::new(y.shape, chosen_axis(y.shape, self.axis)?);
        let output = gx.output;
        with_real!(run.dtype, T => kernel::log_softmax_backward::<T>(a, y.slice(), gy.slice(), gx.slice(), output));
        Ok(())
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (y, gy) = (&g.y[0], &g.gy[0]);
        let axis = chosen_axis(&y.shape(), self.axis)? as i64;
        let sum = f::sum(gy, f::Sum { axis: Some(vec![axis]), keepdims: true })?;
        let part = f::mul2(&f::exp(y)?, &sum, f::Mul2::default())?;
        Ok(vec![Some(f::sub2(gy, &part, f::Sub2::default())?)])
    }
}
