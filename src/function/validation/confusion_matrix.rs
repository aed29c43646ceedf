//! `confusion_matrix`: how often each class was taken for which.

use crate::function;
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of, with_default};
use crate::graph::Variable;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::labels::{ConfusionMatrix as Counts, Labels};
use nnrs_kernels::shape::Shape;

function! {
    /// How often samples of each class (rows) have the largest score for which class (columns). Of equal scores the first one counts, and
    /// a NaN is only taken where it comes first. Labels that are negative are left out. A label that is NaN or beyond the classes is an error on
    /// the CPU; a GPU, which would have to wait for the check, leaves it out. No gradient.
    ConfusionMatrix confusion_matrix in Validation, forward_on_any_device
    inputs {
        x: "N-D array of scores.",
        target [index]: "Labels from 0 on; N-D array of x's shape, but 1 at the axis."
    }
    args { axis: Option<i64> = None, "Axis of the classes; None: the last one. May count from the end." }
    outputs { output: "Square matrix of whole numbers." }
}

impl Function for ConfusionMatrix {
    fn refuses_gradient(&self, _i: usize) -> bool {
        false
    }

    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let axis = x[0].axis(self.axis.unwrap_or(-1), "axis")?;
        let expected: Shape = x[0].iter().enumerate().map(|(a, &n)| if a == axis { 1 } else { n }).collect();
        if x[1] != expected {
            return Err(Error::shape("target", format!("shape {expected}")).actual(&x[1]));
        }
        let n = x[0][axis];
        Ok(Resolved::one(Shape::from([n, n]).checked()?, Counts(Labels::new(&x[0], axis))))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        with_default(self, "axis", call_of::<Counts>(call).0.axis)
    }

    fn output_dtype(&self, _i: usize) -> Option<DType> {
        Some(DType::I32)
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None, None])
    }
}
