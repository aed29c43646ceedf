//! `softsign`: x / (1 + |x|).

use crate::function;
use crate::function::Elementwise;
use nnrs_kernels::expr::Expr;

function! {
    /// Softsign, `y = x / (1 + |x|)`: between -1 and 1 like `tanh`, with slower tails (Glorot and Bengio, 2010).
    SoftSign softsign in Activation, elementwise
    inputs { x: "N-D array." }
    args {}
    outputs { y: "N-D array of x's shape." }
}

impl Elementwise for SoftSign {
    fn formula(&self, x: &[Expr]) -> Expr {
        &x[0] / &(x[0].abs() + 1.0)
    }

    /// 0 at the infinities, as in NNabla, where the formula's own derivative is inf / inf.
    fn gradient(&self, x: &[Expr], _y: &Expr, gy: &Expr) -> Option<Vec<Option<Expr>>> {
        let d = x[0].abs() + 1.0;
        Some(vec![Some(gy / &(&d * &d))])
    }
}
