//! `assign`: writes one array's content into another.

use crate::function;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::assign as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Writes `src` into the data of `dst` whenever it runs, and gives a copy. The gradient goes to `dst`.
    Assign assign in Array, any_device
    inputs { dst: "N-D array that is written.", src: "N-D array of the same shape." }
    args { }
    outputs { y: "N-D array of that shape." }
}

impl Function for Assign {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        match x[0] == x[1] {
            true => Ok(Resolved::one(x[0].clone(), kernel::Assign)),
            false => Err(Error::shape("src", format!("shape {} as of dst", x[0])).actual(&x[1])),
        }
    }

    fn has_state(&self) -> bool {
        true
    }

    fn updates_input(&self, i: usize) -> bool {
        i == 0
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(g.gy[0].clone()), None])
    }
}
