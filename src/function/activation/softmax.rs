//! `softmax`: exp(x) over its sum along an axis.

use crate::function::{Function, Grad, GradMut, Needs, OnGpu, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::array::Place;
use nnrs_kernels::cpu::softmax::{self as kernel, Axis};
use nnrs_kernels::cuda::softmax as gpu_kernel;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

function! {
    /// Softmax, `y = exp(x) / sum(exp(x))` along an axis, without overflow.
    Softmax softmax in Activation
    inputs { x: "N-D array, N > 0." }
    args { axis: Option<i64> = None, "Axis of the sum; None: the last one. May count from the end." }
    outputs { y: "N-D array of x's shape." }
}

/// The axis meant by `axis`: the last one by default.
pub(crate) fn chosen_axis(x: &Shape, axis: Option<i64>) -> Result<usize> {
    if x.ndim() == 0 {
        return Err(Error::shape("x", "1 or more axes").actual(x));
    }
    x.axis(axis.unwrap_or(-1), "axis")
}

/// The engine's side of a function along an axis whose kernels are `$forward`, `$backward`, which reads y, and `$over`, which
/// finds the gradient of y in the place of that of x; `$log`: it is that of the logarithm.
macro_rules! along_axis {
    ($name:ident, $forward:ident, $backward:ident, $over:ident, $log:expr) => {
        impl Function for $name {
            fn infer(&self, x: &[Shape]) -> Result<Shapes> {
                chosen_axis(&x[0], self.axis)?;
                Ok(smallvec![x[0].clone()])
            }

            fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
                let a = Axis::new(x[0].shape, chosen_axis(x[0].shape, self.axis)?);
                if let Place::Gpu(_) = y[0].data.place() {
                    return gpu_kernel::softmax(a, &x[0].data, &y[0].data, $log);
                }
                with_real!(run.dtype, T => kernel::$forward::<T>(a, x[0].slice(), y[0].slice()));
                Ok(())
            }

            fn on_gpu(&self) -> OnGpu {
                OnGpu::Both
            }

            fn scratch(&self, x: &[&Shape], _y: &[&Shape], dtype: crate::DType) -> [usize; 2] {
                let axis = chosen_axis(x[0], self.axis);
                [0, axis.map_or(0, |axis| Axis::new(x[0], axis).scratch(dtype.size()))]
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
                let (Some(y), Some(gx)) = (&y[0], &mut gx[0]) else { return Ok(()) };
                let a = Axis::new(y.shape, chosen_axis(y.shape, self.axis)?);
                let output = gx.output;
                if let (Some(gy), Place::Gpu(_)) = (&gy[0], gx.data.place()) {
                    return gpu_kernel::softmax_backward(a, &y.data, &gy.data, &gx.data, $log, output);
                }
                with_real!(run.dtype, T => match &gy[0] {
                    Some(gy) => kernel::$backward::<T>(a, y.slice(), gy.slice(), gx.slice(), output),
                    None if gx.over => kernel::$over::<T>(a, y.slice(), gx.slice()),
                    None => {}
                });
                Ok(())
            }

            fn grad_over(&self, _i: usize, x: &[&Shape], _y: &[&Shape]) -> Option<usize> {
                let rows = chosen_axis(x[0], self.axis).is_ok_and(|axis| axis + 1 == x[0].ndim());
                rows.then_some(0)
            }

            fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
                let axis = chosen_axis(&g.y[0].shape(), self.axis)? as i64;
                Ok(vec![Some(rule(&g.y[0], &g.gy[0], axis)?)])
            }
        }
    };
}
pub(super) use along_axis;

along_axis!(Softmax, softmax, softmax_backward, softmax_over, false);

/// `y (gy - sum(y gy))`.
fn rule(y: &Variable, gy: &Variable, axis: i64) -> Result<Variable> {
    let mul = |a, b| f::mul2(a, b, f::Mul2::default());
    let mean = f::sum(&mul(y, gy)?, f::Sum { axis: Some(vec![axis]), keepdims: true })?;
    mul(y, &f::sub2(gy, &mean, f::Sub2::default())?)
}
