//! `categorical_cross_entropy`: minus the logarithm of x at the label.

use super::entropy::{TINY, at_least_tiny};
use super::labels::{LabelMask, around, checked, infer, label_mask, loss_of_labels, position};
use crate::function;
use crate::function::elementwise::FormulaFunction;
use crate::function::{Function, Grad, GradMut, Needs, OnGpu, Output, Run, Shapes, View, ViewMut, call_one};
use crate::graph::Variable;
use nnrs_kernels::array::Place;
use nnrs_kernels::cpu::simd::SimdReal;
use nnrs_kernels::cpu::softmax::Axis;
use nnrs_kernels::cuda;
use nnrs_kernels::error::Result;
use nnrs_kernels::expr::Formula;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;

function! {
    /// Cross entropy of probabilities and labels, `y = -log(x[target])` along an axis; the logarithm is of 1.2e-38 at
    /// least. Where the label is negative, loss and gradient are 0. A label that is NaN or beyond the classes is an error on the
    /// CPU; a GPU, which would have to wait for the check, gives NaN.
    CategoricalCrossEntropy categorical_cross_entropy in Loss
    inputs {
        x: "N-D array of probabilities, N > 0.",
        target [index]: "Labels from 0 on; N-D array of x's shape, but 1 at the axis.",
    }
    args { axis: Option<i64> = None, "Axis of the classes; None: the last one. May count from the end." }
    outputs { y: "N-D array of target's shape." }
}

/// v, but not less than the smallest number that has a logarithm; NaN stays.
fn guarded<T: SimdReal>(v: T) -> T {
    let tiny = T::from_f64(TINY);
    if v < tiny { tiny } else { v }
}

fn forward<T: SimdReal>(a: Axis, x: &[T], labels: &[i64], y: &mut [T]) {
    for (r, (y, &label)) in y.iter_mut().zip(labels).enumerate() {
        *y = position(a, r, label).map_or(T::ZERO, |i| -guarded(x[i]).ln());
    }
}

fn backward<T: SimdReal>(a: Axis, x: &[T], labels: &[i64], gy: &[T], gx: &mut [T], output: Output) {
    if output == Output::Write {
        gx.fill(T::ZERO);
    }
    for (r, (&label, &gy)) in labels.iter().zip(gy).enumerate() {
        if let Some(i) = position(a, r, label) {
            gx[i] = gx[i] - gy / guarded(x[i]);
        }
    }
}

loss_of_labels!(CategoricalCrossEntropy, forward, backward, cuda::labels::log_loss, cuda::labels::log_loss_backward);

impl CategoricalCrossEntropy {
    fn rule(&self, x: &Variable, labels: &Variable, gy: &Variable) -> Result<Variable> {
        let hits = label_mask(labels, LabelMask::like(&x.shape(), self.axis)?)?;
        let formula = Formula::new(3, |v| vec![Some(v[1].select(-(&v[2] / at_least_tiny(&v[0])), 0.0))]);
        call_one(FormulaFunction::new(formula), &[x, &hits, gy])
    }
}
