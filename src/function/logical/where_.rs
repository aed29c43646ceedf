//! `where`: one of two arrays, as a condition says.

use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::where_ as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// x_true where the condition is not 0, x_false elsewhere. The condition may lack the last axes: then it chooses
    /// whole rows. It gets no gradient.
    Where r#where in Logical, any_device
    inputs {
        condition: "N-D array, M >= N >= 0, whose shape begins that of x_true.",
        x_true: "M-D array, whose shape begins with condition's.",
        x_false: "M-D array of x_true's shape.",
    }
    args {}
    outputs { y: "M-D array of x_true's shape." }
}

/// The condition's shape as it broadcasts.
fn spread(condition: &Shape, x: &Shape) -> Shape {
    condition.iter().copied().chain(std::iter::repeat_n(1, x.ndim() - condition.ndim())).collect()
}

impl Function for Where {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if x[1] != x[2] {
            return Err(Error::shape("x_false", format!("shape {}, x_true's", x[1])).actual(&x[2]));
        }
        if !x[1].starts_with(&x[0]) {
            return Err(Error::shape("condition", format!("the first axes of x_true {}", x[1]))
                .actual(&x[0])
                .hint("the condition does not broadcast, but may lack the last axes"));
        }
        let call = kernel::Where { condition: spread(&x[0], &x[1]), shape: x[1].clone() };
        Ok(Resolved::one(x[1].clone(), call))
    }

    fn differentiable(&self, i: usize) -> bool {
        i > 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (c, gy) = (&g.x[0], &g.gy[0]);
        let zero = f::constant(f::Constant { val: 0.0, shape: gy.shape().iter().map(|&d| d as i64).collect() })?;
        Ok(vec![None, Some(r#where(c, gy, &zero)?), Some(r#where(c, &zero, gy)?)])
    }
}
