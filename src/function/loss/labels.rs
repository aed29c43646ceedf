//! Labels along an axis: what the losses and errors of many classes share.

use crate::function;
use crate::function::activation::chosen_axis;
use crate::function::{Call, Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::labels::{LabelMaskCall, Labels};
use nnrs_kernels::shape::Shape;

/// A function of x and labels, whose kernels are `call` over the labels; the output's shape is x's with 1 at the axis, which
/// the labels must have too.
pub(crate) fn resolve<C: Call>(
    x: &Shape,
    target: &Shape,
    axis: Option<i64>,
    call: impl FnOnce(Labels) -> C,
) -> Result<Resolved> {
    let axis = chosen_axis(x, axis)?;
    let y = with_size(x, axis, 1);
    if *target != y {
        let hint = "the labels keep the axis of the classes, with size 1; axis is the last one by default";
        return Err(Error::shape("target", format!("shape {y}")).actual(target).hint(hint));
    }
    Ok(Resolved::one(y, call(Labels::new(x, axis))))
}

/// `x` with size `n` at the axis.
fn with_size(x: &Shape, axis: usize, n: usize) -> Shape {
    x.iter().enumerate().map(|(i, &own)| if i == axis { n } else { own }).collect()
}

function! {
    /// 1 at the labels along an axis, 0 elsewhere and for negative labels: internal, for gradients.
    LabelMask label_mask in Special, forward_on_any_device
    inputs { target [index]: "Labels, with size 1 at the axis." }
    args {
        axis: i64, "The axis, from the start.";
        n: i64, "Number of classes."
    }
    outputs { y: "Array of the labels' shape, but n at the axis." }
}

impl LabelMask {
    /// As wide as `x` at the axis.
    pub(crate) fn like(x: &Shape, axis: usize) -> LabelMask {
        LabelMask { axis: axis as i64, n: x[axis] as i64 }
    }
}

impl Function for LabelMask {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let axis = x[0].axis(self.axis, "axis")?;
        if x[0][axis] != 1 {
            return Err(Error::shape("target", format!("shape {}", with_size(&x[0], axis, 1))).actual(&x[0]));
        }
        let y = with_size(&x[0], axis, self.n as usize);
        Ok(Resolved::one(y.clone(), LabelMaskCall(Labels::new(&y, axis))))
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None])
    }
}
