//! `fixed_point_quantize`: whole multiples of a step.

use crate::function;
use crate::function::{Elementwise, Function, Resolved};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::expr::Expr;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// The nearest number of a fixed-point format, `y = round(x / delta) delta` within its limits, which are
    /// `+-(2^(n-1) - 1) delta` with a sign, and 0 and `(2^n - 1) delta` without. Halves are rounded away from zero; NaN stays.
    /// The gradient passes straight through; with ste_fine_grained only where x is within the limits.
    FixedPointQuantize fixed_point_quantize in Quantization
    inputs { x: "N-D array." }
    args {
        sign: bool = true, "Whether there are negative numbers; the sign is one of the bits.";
        n: i64 = 8, "Number of bits.";
        delta: f64 = 0.0625, "The step.";
        ste_fine_grained: bool = true, "Whether x beyond the limits has gradient 0."
    }
    outputs { y: "N-D array of x's shape." }
}

impl FixedPointQuantize {
    /// The least and the largest number, in steps.
    fn steps(&self) -> (f64, f64) {
        let most = ((self.n - self.sign as i64) as f64).exp2() - 1.0;
        (if self.sign { -most } else { 0.0 }, most)
    }

    /// The least and the largest number.
    fn limits(&self) -> (f64, f64) {
        let (least, most) = self.steps();
        (least * self.delta, most * self.delta)
    }
}

impl Function for FixedPointQuantize {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let least = 1 + self.sign as i64;
        if self.n < least {
            let e =
                Error::arg("n", format!("{least} bits or more with sign={}", if self.sign { "True" } else { "False" }));
            return Err(e.actual(self.n));
        }
        if !(self.delta > 0.0 && self.delta.is_finite()) {
            return Err(Error::arg("delta", "a positive number").actual(self.delta));
        }
        Ok(Resolved::without_call(smallvec![x[0].clone()]))
    }

    fn elementwise(&self) -> Option<&dyn Elementwise> {
        Some(self)
    }
}

impl Elementwise for FixedPointQuantize {
    fn formula(&self, x: &[Expr]) -> Expr {
        let ((least, most), (fewest, steps)) = (self.limits(), self.steps());
        let rounded = (&x[0] / self.delta).round();
        // Limits are products in the type of x too, as all other numbers are.
        x[0].gt(most).select(steps, x[0].lt(least).select(fewest, rounded)) * self.delta
    }

    fn gradient(&self, x: &[Expr], _y: &Expr, gy: &Expr) -> Option<Vec<Option<Expr>>> {
        let (least, most) = self.limits();
        let beyond = || x[0].gt(most).or(x[0].lt(least));
        Some(vec![Some(if self.ste_fine_grained { beyond().select(0.0, gy) } else { gy.clone() })])
    }
}
