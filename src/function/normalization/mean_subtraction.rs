//! `mean_subtraction`: a running mean subtracted.

use crate::function;
use crate::function::{Function, Grad, Resolved};
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::mean_subtraction as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Subtracts the running mean of all samples so far: `mean += (batch mean - mean) / (t + 1)`, `t += 1`, `y = x - mean`.
    ///
    /// The gradient is NNabla's approximation, `gx = (1 - 1 / (t samples)) gy`.
    MeanSubtraction mean_subtraction in Normalization, forward_on_any_device
    inputs {
        x: "N-D array.",
        mean: "Running mean, of shape x.shape[base_axis:]. Each forward pass moves it.",
        t: "Number of batches that it is of, an array of one element. Each forward pass counts it up.",
    }
    args {
        base_axis: i64 = 1, "The axes before it number the samples; it may count from the end.";
        update_running_mean: bool = true, "Move mean and t; if not, they are only read."
    }
    outputs { y: "N-D array of x's shape." }
}

impl Function for MeanSubtraction {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let lead = x[0].axis(self.base_axis, "base_axis")?;
        if x[1][..] != x[0][lead..] {
            let expected = format!("shape {}, x's from base_axis on", Shape::from(&x[0][lead..]));
            return Err(Error::shape("mean", expected).actual(&x[1]));
        }
        if x[2].size() != 1 {
            return Err(Error::shape("t", "one element").actual(&x[2]));
        }
        let call = kernel::MeanSubtraction { x: x[0].clone(), lead, update: self.update_running_mean };
        Ok(Resolved::one(x[0].clone(), call))
    }

    fn has_state(&self) -> bool {
        self.update_running_mean // else it only reads them
    }

    fn updates_input(&self, i: usize) -> bool {
        self.update_running_mean && i > 0
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let gy = &g.gy[0];
        if !self.update_running_mean {
            return Ok(vec![Some(gy.clone()), None, None]);
        }
        let samples = g.call::<kernel::MeanSubtraction>().rows() as f64;
        let count = f::mul_scalar(&g.x[2], f::MulScalar { val: samples, inplace: false })?;
        let part = f::r_div_scalar(&count, f::RDivScalar { val: -1.0 })?;
        let factor = f::add_scalar(&part, f::AddScalar { val: 1.0, inplace: false })?;
        let ones = Shape::from(vec![1; gy.shape().ndim()]);
        let factor = f::reshape(&factor, f::Reshape::to(&ones))?;
        Ok(vec![Some(f::mul2(gy, &factor, f::Mul2::default())?), None, None])
    }
}
