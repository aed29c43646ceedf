//! `log_softmax`: logarithm of softmax along an axis.

use super::softmax::{along_axis, chosen_axis};
use crate::function::{Function, Grad, GradMut, Needs, OnGpu, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::array::Place;
use nnrs_kernels::cpu::softmax::{self as kernel, Axis};
use nnrs_kernels::cuda::softmax as gpu_kernel;
use nnrs_kernels::error::Result;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

function! {
    /// Logarithm of softmax, `y = x - log(sum(exp(x)))` along an axis, without overflow.
    LogSoftmax log_softmax in Activation
    inputs { x: "N-D array, N > 0." }
    args { axis: Option<i64> = None, "Axis of the sum; None: the last one. May count from the end." }
    outputs { y: "N-D array of x's shape." }
}

along_axis!(LogSoftmax, log_softmax, log_softmax_backward, log_softmax_over, true);

/// `gy - exp(y) sum(gy)`.
fn rule(y: &Variable, gy: &Variable, axis: i64) -> Result<Variable> {
    let sum = f::sum(gy, f::Sum { axis: Some(vec![axis]), keepdims: true })?;
    let part = f::mul2(&f::exp(y)?, &sum, f::Mul2::default())?;
    f::sub2(gy, &part, f::Sub2::default())
}
