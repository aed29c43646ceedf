//! `concatenate`: arrays joined along an axis.

use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::join_split::Join;
use nnrs_kernels::shape::Shape;

function! {
    /// Joins arrays along an axis. Their sizes along the other axes must agree.
    Concatenate concatenate in Array, any_device
    inputs { x [variadic]: "N-D arrays." }
    args { axis: Option<i64> = None, "Axis to join along; None: the last one. It may count from the end." }
    outputs { y: "The joined array: as large along axis as all together." }
}

impl Function for Concatenate {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if x[0].ndim() == 0 {
            return Err(Error::shape("x", "arrays with one axis at least").actual(&x[0]));
        }
        let axis = x[0].axis(self.axis.unwrap_or(-1), "axis")?;
        let mut y = x[0].clone();
        for (i, s) in x.iter().enumerate().skip(1) {
            let agrees = |a: usize| a == axis || s[a] == x[0][a];
            if s.ndim() != y.ndim() || !(0..y.ndim()).all(agrees) {
                let expected = format!("shape {} as of x[0], but for axis {axis}", x[0]);
                return Err(Error::shape(&format!("x[{i}]"), expected).actual(s));
            }
            y.as_mut_slice()[axis] = y[axis].saturating_add(s[axis]);
        }
        let y = y.checked()?;
        let sizes = x.iter().map(|s| s.size_from(axis)).collect();
        let call = Join { axis, outer: y.size_to(axis), sizes };
        Ok(Resolved::one(y, call))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        let axis = self.axis.unwrap_or(call_of::<Join>(call).axis as i64);
        vec![("axis", ArgValue::Int(axis))]
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (shape, axis) = (g.gy[0].shape(), g.call::<Join>().axis);
        let mut first = 0;
        let part = |(x, &want): (&Variable, &bool)| {
            let from = first;
            first += x.shape()[axis];
            let slice = f::Slice::along(&shape, axis, from, first);
            want.then(|| f::slice(&g.gy[0], slice)).transpose()
        };
        g.x.iter().zip(&g.want).map(part).collect()
    }
}
