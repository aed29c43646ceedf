//! `vat_noise`: noise of a given norm, which keeps its gradient.

use crate::function;
use crate::function::{Function, Grad, Resolved, call_one};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::norm_normalization::NormNormalization;
use nnrs_kernels::kernel::reduction::{Norm, Reduced};
use nnrs_kernels::kernel::vat_noise as kernel;
use nnrs_kernels::shape::Shape;

/// Added to the sum of squares.
const LEAST: f64 = 1e-8;

function! {
    /// Noise for virtual adversarial training (Miyato et al., 2015): `y = eps x / sqrt(sum x^2 + 1e-8)`, with a sum for each sample.
    ///
    /// No gradient goes back. Instead backward writes eps times the output's gradient into the data of w, from where it may be x the next time.
    VATNoise vat_noise in Special, forward_on_any_device
    inputs { x: "Noise, an N-D array.", w: "Array of x's shape, whose data backward writes." }
    args {
        base_axis: i64 = 1, "The axes before it number the samples; it may count from the end.";
        eps: f64 = 1.0, "The norm of a sample of the result."
    }
    outputs { y: "N-D array of x's shape." }
}

impl Function for VATNoise {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let base = x[0].axis(self.base_axis, "base_axis")?;
        if x[0] != x[1] {
            return Err(Error::shape("w", format!("shape {} as of x", x[0])).actual(&x[1]));
        }
        let over = Reduced::new(&x[0], (0..x[0].ndim()).map(|axis| axis >= base).collect());
        let norm = NormNormalization { norm: Norm { over, p: 2.0 }, eps: LEAST, scaled: false, gain: self.eps };
        Ok(Resolved::one(x[0].clone(), kernel::VatNoise(norm)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let zeros = call_one(KeepGradient { eps: self.eps }, &[&g.gy[0], &g.x[1]])?;
        Ok(g.want.iter().map(|want| want.then(|| zeros.clone())).collect())
    }
}

function! {
    /// Writes eps times a gradient into an array, and gives zeros: backward of `vat_noise`. Internal: not in the registry.
    KeepGradient keep_gradient in Special, forward_on_any_device
    inputs { gy: "The gradient.", w: "The array that is written." }
    args { eps: f64, "As of `vat_noise`." }
    outputs { gx: "Zeros." }
}

impl Function for KeepGradient {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        Ok(Resolved::one(x[0].clone(), kernel::KeepGradient { eps: self.eps }))
    }

    fn has_state(&self) -> bool {
        true
    }

    fn updates_input(&self, i: usize) -> bool {
        i == 1
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None, None])
    }
}
