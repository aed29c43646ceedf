//! `batch_det`, `batch_logdet`, `batch_inv`, `batch_cholesky`: determinants, inverses and factors of many matrices.

use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::batch_matrix::{BatchMatrix, Wanted};
use nnrs_kernels::shape::Shape;

function! {
    /// Determinants. The second derivative wants the inverse: it is NaN for a singular matrix.
    BatchDet batch_det in Array, forward_on_any_device
    inputs { x: "Square matrices, of shape (B, n, n)." }
    args {}
    outputs { y: "Array of shape (B,)." }
}

function! {
    /// Matrices of cofactors, the determinant times the transposed inverse: internal, for gradients.
    BatchCofactors batch_cofactors in Special, forward_on_any_device
    inputs { x: "Square matrices, of shape (B, n, n)." }
    args {}
    outputs { y: "Matrices of shape (B, n, n)." }
}

function! {
    /// Logarithms of the magnitudes of determinants; -inf for a singular matrix.
    BatchLogdet batch_logdet in Array, forward_on_any_device
    inputs { x: "Square matrices, of shape (B, n, n)." }
    args {}
    outputs { y: "Array of shape (B,)." }
}

function! {
    /// Inverses; NaN for a singular matrix.
    BatchInv batch_inv in Array, forward_on_any_device
    inputs { x: "Square matrices, of shape (B, n, n)." }
    args {}
    outputs { y: "Matrices of shape (B, n, n)." }
}

function! {
    /// Cholesky's decomposition of symmetric positive-definite matrices, `x = y y^T`, or `x = y^T y` if upper. Only the lower triangle of x is
    /// read. NaN for a matrix that is not positive definite. The gradient is symmetric.
    BatchCholesky batch_cholesky in Array, forward_on_any_device
    inputs { x: "Symmetric matrices, of shape (B, n, n)." }
    args { upper: bool = false, "Give upper triangles; if not, lower ones." }
    outputs { y: "Triangular matrices of shape (B, n, n)." }
}

fn resolve(x: &Shape, wanted: Wanted) -> Result<Resolved> {
    match x[..] {
        [batch, n, m] if n == m => {
            let y = if wanted.is_number() { [batch].into() } else { x.clone() };
            Ok(Resolved::one(y, BatchMatrix { batch, n, wanted }))
        }
        _ => Err(Error::shape("x", "square matrices, of shape (B, n, n)").actual(x)),
    }
}

/// Numbers as matrices of one element.
fn scalars(v: &Variable) -> Result<Variable> {
    f::reshape(v, f::Reshape::to(&[v.shape()[0], 1, 1].into()))
}

fn transposed(v: &Variable) -> Result<Variable> {
    f::transpose(v, f::Transpose::by(&[0, 2, 1]))
}

fn product(a: &Variable, b: &Variable) -> Result<Variable> {
    f::batch_matmul(a, b, f::BatchMatmul::default())
}

fn times(a: &Variable, b: &Variable) -> Result<Variable> {
    f::mul2(a, b, f::Mul2::default())
}

fn scaled(v: &Variable, val: f64) -> Result<Variable> {
    f::mul_scalar(v, f::MulScalar { val, inplace: false })
}

impl Function for BatchDet {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        resolve(&x[0], Wanted::Determinant)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(times(&batch_cofactors(&g.x[0])?, &scalars(&g.gy[0])?)?)])
    }
}

impl Function for BatchCofactors {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        resolve(&x[0], Wanted::Cofactors)
    }

    /// With `S` the transposed inverse: `det(x) (sum(gy S) S - S gy^T S)`.
    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let s = transposed(&batch_inv(&g.x[0])?)?;
        let both = f::sum(&times(&g.gy[0], &s)?, f::Sum { axis: Some(vec![1, 2]), keepdims: true })?;
        let other = product(&product(&s, &transposed(&g.gy[0])?)?, &s)?;
        let inner = f::sub2(&times(&s, &both)?, &other, f::Sub2::default())?;
        Ok(vec![Some(times(&inner, &scalars(&batch_det(&g.x[0])?)?)?)])
    }
}

impl Function for BatchLogdet {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        resolve(&x[0], Wanted::LogDeterminant)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(times(&transposed(&batch_inv(&g.x[0])?)?, &scalars(&g.gy[0])?)?)])
    }
}

impl Function for BatchInv {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        resolve(&x[0], Wanted::Inverse)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let y = transposed(&g.y[0])?;
        Ok(vec![Some(scaled(&product(&product(&y, &g.gy[0])?, &y)?, -1.0)?)])
    }
}

impl Function for BatchCholesky {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        resolve(&x[0], if self.upper { Wanted::Upper } else { Wanted::Lower })
    }

    /// With `P` the lower triangle of `L^T gL`, the diagonal halved: the symmetric part of `L^-T P L^-1` (Murray, 2016).
    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let lower = |v: &Variable| if self.upper { transposed(v) } else { Ok(v.clone()) };
        let (l, gl) = (lower(&g.y[0])?, lower(&g.gy[0])?);
        let both = product(&transposed(&l)?, &gl)?;
        let triangle = |k: i64| f::trilu(&both, f::Trilu { k, upper: false });
        let half = scaled(&f::add2(&triangle(0)?, &triangle(-1)?, f::Add2::default())?, 0.5)?;
        let inverse = batch_inv(&l)?;
        let s = product(&product(&transposed(&inverse)?, &half)?, &inverse)?;
        Ok(vec![Some(scaled(&f::add2(&s, &transposed(&s)?, f::Add2::default())?, 0.5)?)])
    }
}
