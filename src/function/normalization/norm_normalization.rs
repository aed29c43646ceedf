//! `norm_normalization` and `weight_normalization`: an array over its norms.

use super::axes::check_shape;
use super::rule::{mul, sub};
use crate::function::elementwise::FormulaFunction;
use crate::function::reduction::slope;
use crate::function::{ArgValue, Call, Described, Function, Grad, Resolved, call_of, call_one};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::expr::Formula;
use nnrs_kernels::kernel::norm_normalization as kernel;
use nnrs_kernels::kernel::reduction::{AxisMask, Norm, Reduced};
use nnrs_kernels::shape::Shape;

function! {
    /// An array over its p-norms, `y = x / (sum |x|^p + eps)^(1/p)`; for `p = inf` it is `x / (max |x| + eps)`.
    NormNormalization norm_normalization in Normalization, forward_on_any_device
    inputs { x: "N-D array." }
    args {
        p: Option<f64> = None, "Order of the norm, 1 or more; None: 2.";
        axes: Option<Vec<i64>> = None, "Axes that a norm is over; None: all. They may count from the end.";
        eps: f64 = 1e-12, "Added before the root."
    }
    outputs { y: "N-D array of x's shape." }
}

function! {
    /// Weight normalization (Salimans and Kingma, 2016): `y = g w / sqrt(sum w^2 + eps)`, with a norm for each index of `dim`.
    WeightNormalization weight_normalization in Normalization, forward_on_any_device
    inputs { w: "Weight, an N-D array.", g: "Scale of shape (w.shape[dim],)." }
    args {
        dim: i64 = 0, "Axis with norms of its own (that of the outputs); may count from the end.";
        eps: f64 = 1e-12, "Added before the root."
    }
    outputs { w_wn: "N-D array of w's shape." }
}

/// Axes as a mask, each of them once.
fn reduced(x: &Shape, axes: Option<&[i64]>) -> Result<Reduced> {
    let mut mask = AxisMask::from_elem(axes.is_none(), x.ndim());
    for i in super::axes::axes("axes", axes.unwrap_or_default(), x)? {
        mask[i] = true;
    }
    Ok(Reduced::new(x, mask))
}

impl Function for NormNormalization {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let p = self.p.unwrap_or(2.0);
        if p.is_nan() || p < 1.0 {
            return Err(Error::arg("p", "1 or more").actual(p));
        }
        let norm = Norm { over: reduced(&x[0], self.axes.as_deref())?, p };
        let call = kernel::NormNormalization { norm, eps: self.eps, scaled: false, gain: 1.0 };
        Ok(Resolved::one(x[0].clone(), call))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        let norm = &call_of::<kernel::NormNormalization>(call).norm;
        let all = || ArgValue::Ints((0..norm.over.shape.ndim() as i64).collect());
        let filled = |(name, v)| match (name, v) {
            ("p", _) => (name, ArgValue::Float(norm.p)),
            ("axes", ArgValue::None) => (name, all()),
            other => other,
        };
        self.arguments().into_iter().map(filled).collect()
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let call = g.call::<kernel::NormNormalization>();
        Ok(vec![Some(NormRule::new(&g.x[0], call)?.gradient(&g.x[0], &g.gy[0])?)])
    }
}

impl Function for WeightNormalization {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let dim = x[0].axis(self.dim, "dim")?;
        check_shape("g", &x[1], &[x[0][dim]].into())?;
        let over = Reduced::new(&x[0], (0..x[0].ndim()).map(|i| i != dim).collect());
        let call = kernel::NormNormalization { norm: Norm { over, p: 2.0 }, eps: self.eps, scaled: true, gain: 1.0 };
        Ok(Resolved::one(x[0].clone(), call))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (w, scale, gy, call) = (&g.x[0], &g.x[1], &g.gy[0], g.call::<kernel::NormNormalization>());
        let rule = NormRule::new(w, call)?;
        let scaled = || mul(gy, &f::reshape(scale, f::Reshape::to(&call.norm.over.kept))?);
        let of_w = g.want[0].then(|| rule.gradient(w, &scaled()?)).transpose()?;
        let of_scale = || f::reshape(&rule.total(&mul(&mul(gy, w)?, &rule.inverse)?)?, f::Reshape::to(&scale.shape()));
        Ok(vec![of_w, g.want[1].then(of_scale).transpose()?])
    }
}

/// The gradient of `x / n` with `n = (sum |x|^p + eps)^(1/p)` as a graph.
struct NormRule {
    p: f64,
    reduced: Vec<i64>,
    /// What the gradient of the norm is made with: n, and for the infinite norm the largest `|x|`.
    norm: Variable,
    /// `1 / n`
    inverse: Variable,
}

impl NormRule {
    fn new(x: &Variable, call: &kernel::NormNormalization) -> Result<NormRule> {
        let (p, over) = (call.norm.p, &call.norm.over);
        let reduced: Vec<i64> = (0..over.mask.len()).filter(|&i| over.mask[i]).map(|i| i as i64).collect();
        let moved = |v: &Variable| f::add_scalar(v, f::AddScalar { val: call.eps, inplace: false });
        let (norm, n) = if p == f64::INFINITY {
            let largest = f::norm(x, f::Norm { p: Some(p), axis: Some(reduced.clone()), keepdims: true })?;
            let n = moved(&largest)?;
            (largest, n)
        } else {
            let powers = match p {
                1.0 => f::abs(x)?,
                2.0 => mul(x, x)?,
                _ => power(&f::abs(x)?, p)?,
            };
            let sum = moved(&total(&powers, &reduced)?)?;
            let n = if p == 1.0 { sum } else { power(&sum, 1.0 / p)? };
            (n.clone(), n)
        };
        Ok(NormRule { p, reduced, norm, inverse: power(&n, -1.0)? })
    }

    fn total(&self, v: &Variable) -> Result<Variable> {
        total(v, &self.reduced)
    }

    /// From the gradient of `x / n`.
    fn gradient(&self, x: &Variable, gy: &Variable) -> Result<Variable> {
        let of_norm = mul(&self.total(&mul(gy, x)?)?, &mul(&self.inverse, &self.inverse)?)?;
        let p = self.p;
        let slope = Formula::new(3, |v| vec![Some(slope(&v[0], &v[1], &v[2], p))]);
        let through = call_one(FormulaFunction::new(slope), &[x, &self.norm, &of_norm])?;
        sub(&mul(gy, &self.inverse)?, &through)
    }
}

fn power(v: &Variable, val: f64) -> Result<Variable> {
    f::pow_scalar(v, f::PowScalar { val, inplace: false })
}

fn total(v: &Variable, axes: &[i64]) -> Result<Variable> {
    f::sum(v, f::Sum { axis: Some(axes.to_vec()), keepdims: true })
}
