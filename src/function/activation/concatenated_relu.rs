//! `crelu` and `celu`: an activation of x and of -x, concatenated along an axis.

use super::rectified::{elu_formula, keeps_sign, not_positive};
use crate::function::elementwise::FormulaFunction;
use crate::function::{Function, Grad, Resolved, call_one};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::Result;
use nnrs_kernels::expr::{Expr, Formula};
use nnrs_kernels::kernel::concatenated_relu::{self as kernel, SIGNS};
use nnrs_kernels::shape::Shape;

function! {
    /// Concatenated rectified linear units, `relu(x)` and `relu(-x)` along an axis (Shang et al., 2016).
    CReLU crelu in Activation, any_device
    inputs { x: "N-D array." }
    args { axis: i64 = 1, "Axis of the concatenation; may count from the end." }
    outputs { y: "N-D array, twice as long as x on the axis." }
}

function! {
    /// Concatenated exponential linear units, `elu(x)` and `elu(-x)` along an axis (Clevert et al., 2016; Shang et al., 2016).
    CELU celu in Activation, any_device
    inputs { x: "N-D array." }
    args {
        alpha: f64 = 1.0, "Minus the limit of each half.";
        axis: i64 = 1, "Axis of the concatenation; may count from the end."
    }
    outputs { y: "N-D array, twice as long as x on the axis." }
}

/// `half`: the output for x, or -x in the second half. `whole`: the gradient of x, from both halves of y and then of its
/// gradient.
fn resolve(
    x: &Shape,
    axis: i64,
    half: impl FnOnce(&Expr) -> Expr,
    whole: Option<impl FnOnce(&[Expr]) -> Expr>,
) -> Result<Resolved> {
    let axis = x.axis(axis, "axis")?;
    let y: Shape = x.iter().enumerate().map(|(i, &n)| if i == axis { n.saturating_mul(2) } else { n }).collect();
    let half = Formula::new(2, |v| vec![Some(half(&(&v[0] * &v[1])))]);
    let whole = whole.map(|whole| Formula::new(4, |v| vec![Some(whole(v))]));
    Ok(Resolved::one(y, kernel::Halves { outer: x.size_to(axis), inner: x.size_from(axis), half, whole }))
}

/// `part`: what comes from one half to the gradient of x, by x, the half's sign, and the gradient of y.
fn rule(g: &Grad, part: impl FnOnce(&Expr, &Expr, &Expr) -> Expr) -> Result<Vec<Option<Variable>>> {
    let call = g.call::<kernel::Halves>();
    let x = f::reshape(&g.x[0], f::Reshape::to(&call.all(1)))?;
    let gy = f::reshape(&g.gy[0], f::Reshape::to(&call.all(2)))?;
    let signs = Variable::from_slice(&[1.0f32, -1.0], SIGNS.into())?;
    let formula = Formula::new(3, |v| vec![Some(part(&v[0], &v[1], &v[2]))]);
    let parts = call_one(FormulaFunction::new(formula), &[&x, &signs, &gy])?;
    let sum = f::sum(&parts, f::Sum { axis: Some(vec![1]), keepdims: false })?;
    Ok(vec![Some(f::reshape(&sum, f::Reshape::to(&g.x[0].shape()))?)])
}

impl Function for CReLU {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let whole = |v: &[Expr]| v[0].gt(0.0).select(&v[2], -&v[3]);
        resolve(&x[0], self.axis, |z| z.max(0.0), Some(whole))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        // At 0 and NaN the second half has the slope.
        rule(g, |x, sign, gy| x.gt(0.0).equal(sign.gt(0.0)).select(gy * sign, 0.0))
    }
}

impl Function for CELU {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let slope = |y: &Expr| y.ge(0.0).select(1.0, y + self.alpha);
        let whole = |v: &[Expr]| slope(&v[0]) * &v[2] - slope(&v[1]) * &v[3];
        // With other slopes y does not tell the sides apart.
        let whole = keeps_sign(self.alpha).then_some(whole);
        resolve(&x[0], self.axis, |z| elu_formula(z, self.alpha), whole)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        rule(g, |x, sign, gy| {
            let z = x * sign;
            gy * sign * z.ge(0.0).select(1.0, not_positive(&z).exp() * self.alpha)
        })
    }
}
