//! `categorical_cross_entropy`: minus the logarithm of x at the label.

use super::entropy::{TINY, at_least_tiny};
use super::labels::{LabelMask, label_mask, resolve};
use crate::function;
use crate::function::elementwise::FormulaFunction;
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of, call_one, with_default};
use crate::graph::Variable;
use nnrs_kernels::error::Result;
use nnrs_kernels::expr::Formula;
use nnrs_kernels::kernel::labels::LogLoss;
use nnrs_kernels::shape::Shape;

function! {
    /// Cross entropy of probabilities and labels, `y = -log(x[target])` along an axis; the logarithm is of 1.2e-38 at
    /// least. Where the label is negative, loss and gradient are 0. A label that is NaN or beyond the classes is an error on the
    /// CPU; a GPU, which would have to wait for the check, gives NaN.
    CategoricalCrossEntropy categorical_cross_entropy in Loss, any_device
    inputs {
        x: "N-D array of probabilities, N > 0.",
        target [index]: "Labels from 0 on; N-D array of x's shape, but 1 at the axis.",
    }
    args { axis: Option<i64> = None, "Axis of the classes; None: the last one. May count from the end." }
    outputs { y: "N-D array of target's shape." }
}

impl Function for CategoricalCrossEntropy {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        resolve(&x[0], &x[1], self.axis, |labels| LogLoss { labels, least: TINY })
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        with_default(self, "axis", call_of::<LogLoss>(call).labels.axis)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, axis) = (&g.x[0], g.call::<LogLoss>().labels.axis);
        let hits = label_mask(&g.x[1], LabelMask::like(&x.shape(), axis))?;
        let formula = Formula::new(3, |v| vec![Some(v[1].select(-(&v[2] / at_least_tiny(&v[0])), 0.0))]);
        Ok(vec![Some(call_one(FormulaFunction::new(formula), &[x, &hits, &g.gy[0]])?), None])
    }
}
