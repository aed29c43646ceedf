//! `reduce_sum`, `reduce_mean`: over all axes.

use super::over;
use super::sum::spread;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::reduction as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Sum of all elements; `sum` without arguments.
    ReduceSum reduce_sum in Reduction, any_device
    inputs { x: "N-D array." }
    args {}
    outputs { y: "Array of shape ()." }
}

function! {
    /// Mean of all elements; `mean` without arguments.
    ReduceMean reduce_mean in Reduction, any_device
    inputs { x: "N-D array." }
    args {}
    outputs { y: "Array of shape ()." }
}

impl Function for ReduceSum {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let over = over(&x[0], &None)?;
        Ok(Resolved::one(over.output(false), kernel::Sum(over)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(spread(&g.gy[0], &g.call::<kernel::Sum>().0)?)])
    }
}

impl Function for ReduceMean {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let over = over(&x[0], &None)?;
        Ok(Resolved::one(over.output(false), kernel::Mean(over)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let over = &g.call::<kernel::Mean>().0;
        let val = 1.0 / over.count() as f64;
        let share = f::mul_scalar(&g.gy[0], f::MulScalar { val, inplace: false })?;
        Ok(vec![Some(spread(&share, over)?)])
    }
}
