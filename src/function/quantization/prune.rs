//! `prune`: the numbers of smallest magnitude set to zero.

use crate::function;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::sort as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Sets a share of the numbers to 0, those of the smallest magnitude (Han et al., 2015): `y = x` where `|x|` is at least the element number
    /// `rate (size - 1)`, cut to a whole number, of the sorted magnitudes. NaN stays. The gradient passes straight through.
    Prune prune in Quantization, forward_on_any_device
    inputs { x: "N-D array." }
    args { rate: f64 = 0.9, "The share, from 0 to 1; 1 leaves nothing." }
    outputs { y: "N-D array of x's shape." }
}

impl Function for Prune {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if !(0.0..=1.0).contains(&self.rate) {
            return Err(Error::arg("rate", "a number from 0 to 1").actual(self.rate));
        }
        Ok(Resolved::one(x[0].clone(), kernel::Prune::new(x[0].size(), self.rate)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(g.gy[0].clone())])
    }
}
