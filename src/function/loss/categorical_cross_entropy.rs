//! `categorical_cross_entropy`: minus the logarithm of x at the label.

use super::entropy::{TINY, at_least_tiny};
use super::labels::{LabelMask, checked, infer, label_mask, position};
use crate::cpu::simd::SimdReal;
use crate::cpu::softmax::Axis;
use crate::error::Result;
use crate::function::elementwise::FormulaFunction;
use crate::function::expr::Formula;
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut, call_one};
use crate::graph::Variable;
use crate::shape::Shape;
use crate::{function, with_real};

function! {
    /// Cross entropy of probabilities and labels, `y = -log(x[target])` along an axis; the logarithm is of 1.2e-38 at
    /// least. Where the label is negative, loss and gradient are 0.
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

impl Function for CategoricalCrossEntropy {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        infer(&x[0], &x[1], self.axis)
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let labels = x[1].slice::<i64>();
        let a = checked(x[0].shape, labels, self.axis)?;
        with_real!(run.dtype, T => forward::<T>(a, x[0].slice(), labels, y[0].slice()));
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
        with_real!(run.dtype, T => backward::<T>(a, x.slice(), labels, gy.slice(), gx.slice(), output));
        Ok(())
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let hits = label_mask(&g.x[1], LabelMask::like(&g.x[0].shape(), self.axis)?)?;
        let formula = Formula::new(3, |v| vec![Some(v[1].select(-(&v[2] / at_least_tiny(&v[0])), 0.0))]);
        Ok(vec![Some(call_one(FormulaFunction::new(formula), &[&g.x[0], &hits, &g.gy[0]])?), None])
    }
}
