//! `stack`: arrays joined along a new axis.

use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::join_split::Join;
use nnrs_kernels::shape::Shape;

function! {
    /// Joins arrays of one shape along a new axis.
    Stack stack in Array, any_device
    inputs { x [variadic]: "N-D arrays of one shape." }
    args { axis: i64 = 0, "Place of the new axis in the result; may count from the end." }
    outputs { y: "The joined array, with one axis more." }
}

impl Stack {
    /// Place of the new axis; `n` axes are there before.
    fn axis(&self, n: usize) -> Result<usize> {
        let n = n as i64;
        let axis = if self.axis < 0 { self.axis + n + 1 } else { self.axis };
        if (0..=n).contains(&axis) {
            return Ok(axis as usize);
        }
        Err(Error::arg("axis", format!("an axis of the result, between {} and {n}", -n - 1)).actual(self.axis))
    }
}

impl Function for Stack {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let axis = self.axis(x[0].ndim())?;
        if let Some((i, s)) = x.iter().enumerate().find(|(_, s)| **s != x[0]) {
            return Err(Error::shape(&format!("x[{i}]"), format!("shape {} as of x[0]", x[0])).actual(s));
        }
        let y: Shape = x[0][..axis].iter().chain(&[x.len()]).chain(&x[0][axis..]).copied().collect();
        let call = Join { axis, outer: x[0].size_to(axis), sizes: vec![x[0].size_from(axis); x.len()] };
        Ok(Resolved::one(y.checked()?, call))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let axis = g.call::<Join>().axis as i64;
        let parts = f::split(&g.gy[0], f::Split { axis })?;
        Ok(parts.into_iter().zip(&g.want).map(|(v, want)| want.then_some(v)).collect())
    }
}
