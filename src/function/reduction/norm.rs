//! `norm`: the p-norm over axes.

use super::{over, used};
use crate::function::elementwise::FormulaFunction;
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of, call_one};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::expr::{Expr, Formula};
use nnrs_kernels::kernel::reduction as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// p-norm over axes, `y = (sum |x|^p)^(1/p)`; for `p = inf` the largest `|x|`.
    ///
    /// Powers are made in x's type: where all of them underflow (float32, p = 2: `|x|` under 1e-22), y is 0 and its gradients
    /// are infinite or NaN, as in NNabla. Second derivatives are differences of terms of the size of `1 / y`, exact to a few units
    /// in the last place of these; at `x = 0` they are infinite for p between 1 and 2.
    Norm norm in Reduction, forward_on_any_device
    inputs { x: "N-D array." }
    args {
        p: Option<f64> = None, "Order of the norm, 1 or more; None: 2.";
        axis: Option<Vec<i64>> = None, "Axes to reduce; None: all. They may count from the end.";
        keepdims: bool = false, "Whether the reduced axes stay, with size 1."
    }
    outputs { y: "x without the reduced axes." }
}

impl Function for Norm {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let p = self.p.unwrap_or(2.0);
        if p.is_nan() || p < 1.0 {
            return Err(Error::arg("p", "1 or more").actual(p));
        }
        let over = over(&x[0], &self.axis)?;
        Ok(Resolved::one(over.output(self.keepdims), kernel::Norm { over, p }))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        let call = call_of::<kernel::Norm>(call);
        let with_p = |(name, v)| if name == "p" { (name, ArgValue::Float(call.p)) } else { (name, v) };
        used(self, &call.over).into_iter().map(with_p).collect()
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let call = g.call::<kernel::Norm>();
        let keep = |v: &Variable| f::reshape(v, f::Reshape::to(&call.over.kept));
        let slope = Formula::new(3, |v| vec![Some(slope(&v[0], &v[1], &v[2], call.p))]);
        let (y, gy) = (keep(&g.y[0])?, keep(&g.gy[0])?);
        Ok(vec![Some(call_one(FormulaFunction::new(slope), &[&g.x[0], &y, &gy])?)])
    }
}

/// The gradient of one element.
pub(in crate::function) fn slope(x: &Expr, y: &Expr, gy: &Expr, p: f64) -> Expr {
    match p {
        1.0 => gy * x.ge(0.0).select(1.0, -1.0),
        2.0 => gy * (x / y),
        f64::INFINITY => gy * x.sign() * x.abs().equal(y),
        _ => {
            // In place of abs, whose derivative is 0 at 0.
            let sign = x.ge(0.0).select(1.0, -1.0);
            gy * &sign * (x * &sign).pow(p - 1.0) / y.pow(p - 1.0)
        }
    }
}
