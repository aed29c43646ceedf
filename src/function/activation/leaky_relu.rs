//! `leaky_relu`: x where positive, alpha times x elsewhere.

use crate::function;
use crate::function::Elementwise;
use nnrs_kernels::expr::Expr;

function! {
    /// Leaky rectified linear unit, `y = max(x, 0) + alpha min(x, 0)` (Maas et al., 2013).
    LeakyReLU leaky_relu in Activation, elementwise
    inputs { x: "N-D array." }
    args {
        alpha: f64 = 0.1, "Slope for negative values.";
        inplace: bool = false, "Ignored: nnrs reuses the buffer where that cannot be observed."
    }
    outputs { y: "N-D array of x's shape." }
}

impl Elementwise for LeakyReLU {
    fn formula(&self, x: &[Expr]) -> Expr {
        let (x, scaled) = (&x[0], &x[0] * self.alpha);
        // The same, in fewer steps, where the scaled number lies between x and 0.
        if 0.0 < self.alpha && self.alpha <= 1.0 { x.max(scaled) } else { x.gt(0.0).select(x, scaled) }
    }

    /// By the output, as in NNabla, where its sign is the input's.
    fn gradient(&self, x: &[Expr], y: &Expr, gy: &Expr) -> Option<Vec<Option<Expr>>> {
        let sign = if self.alpha > 0.0 { y } else { &x[0] };
        Some(vec![Some(sign.gt(0.0).select(gy, gy * self.alpha))])
    }
}
