//! `constant`: an array full of one number.

use crate::function;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::constant as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// An array full of `val`.
    Constant constant in Math, forward_on_any_device
    inputs {}
    args {
        val: f64 = 0.0, "The number.";
        shape: Vec<i64> = vec![], "Shape of the array."
    }
    outputs { y: "N-D array." }
}

impl Function for Constant {
    fn resolve(&self, _x: &[Shape]) -> Result<Resolved> {
        let size = |&n: &i64| usize::try_from(n).ok();
        let shape: Option<Shape> = self.shape.iter().map(size).collect::<Option<Vec<_>>>().map(Shape::from);
        let fail = || Error::arg("shape", "sizes that are not negative").actual(format!("{:?}", self.shape));
        Ok(Resolved::one(shape.ok_or_else(fail)?, kernel::ConstantCall(self.val)))
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![])
    }
}
