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

/// What divides sums of gradients, or of numbers, by how many elements they are of.
pub(crate) type ByCount = Box<dyn Fn(&Variable) -> Result<Variable>>;

/// Normalization by the statistics of x over some axes.
pub(crate) struct NormalizationRule {
    reduced: Vec<i64>,
    by_count: ByCount,
    /// x less its mean.
    centred: Variable,
    inverse: Variable,
    /// What gamma multiplies.
    pub norm: Variable,
}

impl NormalizationRule {
    pub(super) fn new(x: &Variable, reduced: Vec<i64>, eps: f64) -> Result<NormalizationRule> {
        let shape = x.shape();
        let count = reduced.iter().map(|&a| shape[a as usize]).product::<usize>() as f64;
        NormalizationRule::by(x, reduced, eps, Box::new(move |sums| times(sums, 1.0 / count)))
    }

    pub(crate) fn by(x: &Variable, reduced: Vec<i64>, eps: f64, by_count: ByCount) -> Result<NormalizationRule> {
        let centred = sub(x, &average(x, &reduced, &by_count)?)?;
        let inverse = inverse(&average(&mul(&centred, &centred)?, &reduced, &by_count)?, eps)?;
        let norm = mul(&centred, &inverse)?;
        Ok(NormalizationRule { reduced, by_count, centred, inverse, norm })
    }

    /// The gradient of x: `g` is that of the normalized numbers, `statistics` those of mean and variance.
    pub(super) fn gradient(&self, g: &Variable, statistics: Option<(&Variable, &Variable)>) -> Result<Variable> {
        let mean = |v: &Variable| average(v, &self.reduced, &self.by_count);
        let along = mul(&self.norm, &mean(&mul(g, &self.norm)?)?)?;
        let gx = mul(&self.inverse, &sub(&sub(g, &mean(g)?)?, &along)?)?;
        let Some((gmean, gvariance)) = statistics else { return Ok(gx) };
        let by_variance = mul(&self.centred, &times(&(self.by_count)(gvariance)?, 2.0)?)?;
        add(&gx, &add(&by_variance, &(self.by_count)(gmean)?)?)
    }
}

fn average(v: &Variable, axes: &[i64], by_count: &ByCount) -> Result<Variable> {
    by_count(&f::sum(v, f::Sum { axis: Some(axes.to_vec()), keepdims: true })?)
}
