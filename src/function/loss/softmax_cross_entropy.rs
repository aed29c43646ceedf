//! `softmax_cross_entropy`: minus the log softmax of x at the label.

use super::labels::{LabelMask, checked, infer, label_mask, loss_of_labels};
use crate::cpu::softmax as kernel;
use crate::error::Result;
use crate::function::activation::chosen_axis;
use crate::function::{Function, Grad, GradMut, Needs, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::shape::Shape;
use crate::{function, functions as f, with_real};

function! {
    /// Cross entropy of softmax(x) and labels, `y = -log(softmax(x)[target])` along an axis, without overflow. Where the
    /// label is negative, loss and gradient are 0.
    SoftmaxCrossEntropy softmax_cross_entropy in Loss
    inputs {
        x: "N-D array of scores, N > 0.",
        target [index]: "Labels from 0 on; N-D array of x's shape, but 1 at the axis.",
    }
    args { axis: Option<i64> = None, "Axis of the classes; None: the last one. May count from the end." }
    outputs { y: "N-D array of target's shape." }
}

loss_of_labels!(SoftmaxCrossEntropy, kernel::cross_entropy, kernel::cross_entropy_backward);

impl SoftmaxCrossEntropy {
    fn rule(&self, x: &Variable, labels: &Variable, gy: &Variable) -> Result<Variable> {
        let axis = chosen_axis(&x.shape(), self.axis)? as i64;
        let hits = label_mask(labels, LabelMask::like(&x.shape(), self.axis)?)?;
        // 0 where the label is left out.
        let counts = f::sum(&hits, f::Sum { axis: Some(vec![axis]), keepdims: true })?;
        let mul = |a: &Variable, b: &Variable| f::mul2(a, b, f::Mul2::default());
        let p = mul(&f::softmax(x, f::Softmax { axis: Some(axis) })?, &counts)?;
        mul(&f::sub2(&p, &hits, f::Sub2::default())?, gy)
    }
}
