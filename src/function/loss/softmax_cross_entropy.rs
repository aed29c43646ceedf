//! `softmax_cross_entropy`: minus the log softmax of x at the label.

use super::labels::{LabelMask, checked, infer, label_mask};
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

impl Function for SoftmaxCrossEntropy {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        infer(&x[0], &x[1], self.axis)
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let labels = x[1].slice::<i64>();
        let a = checked(x[0].shape, labels, self.axis)?;
        with_real!(run.dtype, T => kernel::cross_entropy::<T>(a, x[0].slice(), labels, y[0].slice()));
        Ok(())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 0b11, y: 0 })
    }

    fn backward(
        &self,
        run: &Run,
        x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(x), Some(target), Some(gy), Some(gx)) = (&x[0], &x[1], &gy[0], &mut gx[0]) else { return Ok(()) };
        let labels = target.slice::<i64>();
        let a = checked(x.shape, labels, self.axis)?;
        let output = gx.output;
        with_real!(run.dtype, T => {
            kernel::cross_entropy_backward::<T>(a, x.slice(), labels, gy.slice(), gx.slice(), output)
        });
        Ok(())
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, gy) = (&g.x[0], &g.gy[0]);
        let axis = chosen_axis(&x.shape(), self.axis)? as i64;
        let hits = label_mask(&g.x[1], LabelMask::like(&x.shape(), self.axis)?)?;
        // 0 where the label is left out.
        let counts = f::sum(&hits, f::Sum { axis: Some(vec![axis]), keepdims: true })?;
        let mul = |a: &Variable, b: &Variable| f::mul2(a, b, f::Mul2::default());
        let p = mul(&f::softmax(x, f::Softmax { axis: Some(axis) })?, &counts)?;
        Ok(vec![Some(mul(&f::sub2(&p, &hits, f::Sub2::default())?, gy)?), None])
    }
}
