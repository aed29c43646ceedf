//! `softmax_cross_entropy`: minus the log softmax of x at the label.

use super::labels::{LabelMask, label_mask, resolve};
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of, with_default};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::softmax::CrossEntropy;
use nnrs_kernels::shape::Shape;

function! {
    /// Cross entropy of softmax(x) and labels, `y = -log(softmax(x)[target])` along an axis, without overflow. Where the
    /// label is negative, loss and gradient are 0. A label that is NaN or beyond the classes is an error on the CPU; a GPU, which
    /// would have to wait for the check, gives NaN.
    SoftmaxCrossEntropy softmax_cross_entropy in Loss, any_device
    inputs {
        x: "N-D array of scores, N > 0.",
        target [index]: "Labels from 0 on; N-D array of x's shape, but 1 at the axis.",
    }
    args { axis: Option<i64> = None, "Axis of the classes; None: the last one. May count from the end." }
    outputs { y: "N-D array of target's shape." }
}

impl Function for SoftmaxCrossEntropy {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        resolve(&x[0], &x[1], self.axis, |labels| CrossEntropy { labels, size: x[0].size() })
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        with_default(self, "axis", call_of::<CrossEntropy>(call).labels.axis)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let axis = g.call::<CrossEntropy>().labels.axis;
        Ok(vec![Some(rule(&g.x[0], &g.x[1], &g.gy[0], axis)?), None])
    }
}

fn rule(x: &Variable, labels: &Variable, gy: &Variable, axis: usize) -> Result<Variable> {
    let hits = label_mask(labels, LabelMask::like(&x.shape(), axis))?;
    let axis = axis as i64;
    // 0 where the label is left out.
    let counts = f::sum(&hits, f::Sum { axis: Some(vec![axis]), keepdims: true })?;
    let mul = |a: &Variable, b: &Variable| f::mul2(a, b, f::Mul2::default());
    let p = mul(&f::softmax(x, f::Softmax { axis: Some(axis) })?, &counts)?;
    mul(&f::sub2(&p, &hits, f::Sub2::default())?, gy)
}
