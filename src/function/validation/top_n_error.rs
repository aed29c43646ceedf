//! `top_n_error`: whether the label is not among the n largest scores.

use crate::function;
use crate::function::loss::labels::{around, checked, infer, position};
use crate::function::{Function, Grad, OnGpu, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::array::Place;
use nnrs_kernels::cpu::simd::SimdReal;
use nnrs_kernels::cpu::softmax::Axis;
use nnrs_kernels::cuda;
use nnrs_kernels::error::Result;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;

function! {
    /// 1 where more than n scores are at least the label's (its own counts, equal ones too, and all that are NaN; all if its
    /// own is), else 0. For negative labels 0. No gradient. A label that is NaN or beyond the classes is an error on the CPU; a
    /// GPU, which would have to wait for the check, gives NaN.
    TopNError top_n_error in Validation
    inputs {
        x: "N-D array of scores, N > 0.",
        target [index]: "Labels from 0 on; N-D array of x's shape, but 1 at the axis.",
    }
    args {
        axis: Option<i64> = None, "Axis of the classes; None: the last one. May count from the end.";
        n: i64 = 1, "How many of the largest scores count as right."
    }
    outputs { output: "N-D array of target's shape." }
}

/// A score that is NaN may be any, so the label does not win over it, nor with it.
fn is_as_large<T: PartialOrd>(score: T, label: T) -> bool {
    !matches!(score.partial_cmp(&label), Some(std::cmp::Ordering::Less))
}

fn errors<T: SimdReal>(a: Axis, n: i64, x: &[T], labels: &[i64], y: &mut [T]) {
    for (r, (y, &label)) in y.iter_mut().zip(labels).enumerate() {
        let Some(mine) = position(a, r, label).map(|i| x[i]) else {
            *y = T::ZERO;
            continue;
        };
        let first = r / a.inner * a.n * a.inner + r % a.inner;
        let count = x[first..].iter().step_by(a.inner).take(a.n).filter(|v| is_as_large(**v, mine)).count();
        *y = if count as i64 > n { T::ONE } else { T::ZERO };
    }
}

impl Function for TopNError {
    fn refuses_gradient(&self, _i: usize) -> bool {
        false
    }

    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        infer(&x[0], &x[1], self.axis)
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            let a = around(x[0].shape, self.axis)?;
            return cuda::labels::top_errors(a, &x[0].data, &x[1].data, &y[0].data, self.n);
        }
        let labels = x[1].slice::<i64>();
        let a = checked(x[0].shape, labels, self.axis)?;
        with_real!(run.dtype, T => errors::<T>(a, self.n, x[0].slice(), labels, y[0].slice()));
        Ok(())
    }

    fn on_gpu(&self) -> OnGpu {
        OnGpu::Forward
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None, None])
    }
}
