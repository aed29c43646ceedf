//! `one_hot`: ones at given places, zeros elsewhere.

use super::List;
use crate::function;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::one_hot as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// One-hot vectors, or arrays of more axes: 1 at the place that the last axis of x names, 0 elsewhere. Places may count from the end;
    /// a place out of range leaves zeros.
    OneHot one_hot in Array, any_device
    inputs { x [index]: "Places, of shape (.., M); M is the length of `shape`." }
    args { shape: List, "Shape of each one-hot array." }
    outputs { output: "Array of x's shape without its last axis, then `shape`." }
}

impl Function for OneHot {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if let Some(d) = self.shape.iter().find(|d| **d < 0) {
            return Err(Error::arg("shape", "sizes of 0 or more").actual(d));
        }
        let Some((m, lead)) = x[0].split_last().filter(|(m, _)| **m == self.shape.len()) else {
            let expected = format!("a last axis of size {}, the number of axes of `shape`", self.shape.len());
            return Err(Error::shape("x", expected).actual(&x[0]));
        };
        if *m == 0 {
            return Err(Error::arg("shape", "one size at least").actual("()"));
        }
        let one: Shape = self.shape.iter().map(|&d| d as usize).collect();
        let y: Shape = lead.iter().chain(one.iter()).copied().collect();
        Ok(Resolved::one(y, kernel::OneHot(one)))
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None])
    }
}
