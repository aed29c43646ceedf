//! `nonzero`: where an array is not zero.

use crate::function;
use crate::function::{ArgValue, Call, Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::nonzero as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// The places where x is not zero, in their order. No gradient.
    NonZero nonzero in Array, forward_on_any_device
    inputs { x: "N-D array." }
    args { places: i64 = 0, "How many there are." }
    outputs { y: "Indices, of shape (number of x's axes, places)." }
}

impl Function for NonZero {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let places = self.places.max(0) as usize;
        let y: Shape = [x[0].ndim(), places].into();
        Ok(Resolved::one(y.checked()?, kernel::NonZero { x: x[0].clone(), places }))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        Vec::new()
    }

    fn output_dtype(&self, _i: usize) -> Option<DType> {
        Some(DType::U64)
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn refuses_grad(&self) -> bool {
        true
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None])
    }
}
