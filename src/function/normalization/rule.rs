//! The gradient of a normalization as a graph, so that gradients of any order follow.

use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::Result;

pub(super) fn add(a: &Variable, b: &Variable) -> Result<Variable> {
    f::add2(a, b, f::Add2::default())
}

pub(super) fn sub(a: &Variable, b: &Variable) -> Result<Variable> {
    f::sub2(a, b, f::Sub2::default())
}

pub(super) fn mul(a: &Variable, b: &Variable) -> Result<Variable> {
    f::mul2(a, b, f::Mul2::default())
}

fn times(a: &Variable, val: f64) -> Result<Variable> {
    f::mul_scalar(a, f::MulScalar { val, inplace: false })
}

/// `1 / sqrt(variance + eps)`
pub(super) fn inverse(variance: &Variable, eps: f64) -> Result<Variable> {
    let moved = f::add_scalar(variance, f::AddScalar { val: eps, inplace: false })?;
    f::pow_scalar(&moved, f::PowScalar { val: -0.5, inplace: false })
}

/// Normalization by the statistics of x over some axes.
pub(super) struct NormalizationRule {
    reduced: Vec<i64>,
    count: f64,
    /// x less its mean.
    centred: Variable,
    inverse: Variable,
    /// What gamma multiplies.
    pub norm: Variable,
}

impl NormalizationRule {
    pub fn new(x: &Variable, reduced: Vec<i64>, eps: f64) -> Result<NormalizationRule> {
        let shape = x.shape();
        let count = reduced.iter().map(|&a| shape[a as usize]).product::<usize>() as f64;
        let mean = |v: &Variable| average(v, &reduced, count);
        let centred = sub(x, &mean(x)?)?;
        let inverse = inverse(&mean(&mul(&centred, &centred)?)?, eps)?;
        let norm = mul(&centred, &inverse)?;
        Ok(NormalizationRule { reduced, count, centred, inverse, norm })
    }

    /// The gradient of x: `g` is that of the normalized numbers, `statistics` those of mean and variance.
    pub fn gradient(&self, g: &Variable, statistics: Option<(&Variable, &Variable)>) -> Result<Variable> {
        let mean = |v: &Variable| average(v, &self.reduced, self.count);
        let along = mul(&self.norm, &mean(&mul(g, &self.norm)?)?)?;
        let gx = mul(&self.inverse, &sub(&sub(g, &mean(g)?)?, &along)?)?;
        let Some((gmean, gvariance)) = statistics else { return Ok(gx) };
        let by_variance = mul(&self.centred, &times(gvariance, 2.0 / self.count)?)?;
        add(&gx, &add(&by_variance, &times(gmean, 1.0 / self.count)?)?)
    }
}

fn average(v: &Variable, axes: &[i64], count: f64) -> Result<Variable> {
    times(&f::sum(v, f::Sum { axis: Some(axes.to_vec()), keepdims: true })?, 1.0 / count)
}
