//! On the host, by the crate nalgebra.

use super::{BatchMatrix, Wanted};
use crate::array::scratch::list;
use crate::pool::tasks;
use crate::simd::SimdReal;
use nalgebra::{Cholesky, DMatrix, DMatrixViewMut, Dyn, LU, RealField, VecStorage};

/// A matrix whose columns are the rows of `x`.
fn matrix<T: SimdReal + RealField>(x: &[T], n: usize) -> DMatrix<T> {
    let mut elements = list(n * n, <T as crate::dtype::Real>::ZERO);
    elements.copy_from_slice(x);
    DMatrix::from_data(VecStorage::new(Dyn(n), Dyn(n), elements))
}

pub(super) fn run<T: SimdReal + RealField>(c: &BatchMatrix, x: &[T], y: &mut [T]) {
    let n = c.n;
    let size = if matches!(c.wanted, Wanted::Determinant | Wanted::LogDeterminant) { 1 } else { n * n };
    if y.is_empty() {
        return;
    }
    tasks::parts(y, size, |i, y| {
        let x = &x[i * n * n..][..n * n];
        match c.wanted {
            Wanted::Determinant => y[0] = LU::new(matrix(x, n)).determinant(),
            Wanted::LogDeterminant => {
                let u = LU::new(matrix(x, n));
                let magnitudes =
                    (0..n).map(|k| <T as crate::dtype::Element>::to_f64(u.lu_internal()[(k, k)]).abs().ln());
                y[0] = <T as crate::dtype::Element>::from_f64(magnitudes.sum());
            }
            Wanted::Inverse => inverse(x, n, y),
            Wanted::Lower | Wanted::Upper => factor(x, n, y, c.wanted == Wanted::Upper),
        }
    });
}

/// The inverse of the transpose is that of the matrix transposed, so rows may stand for columns.
fn inverse<T: SimdReal + RealField>(x: &[T], n: usize, y: &mut [T]) {
    let lu = LU::new(matrix(x, n));
    let mut out = DMatrixViewMut::from_slice(y, n, n);
    out.fill_with_identity();
    if !lu.solve_mut(&mut out) {
        out.fill(<T as crate::dtype::Element>::from_f64(f64::NAN));
    }
}

fn factor<T: SimdReal + RealField>(x: &[T], n: usize, y: &mut [T], upper: bool) {
    // Only the lower triangle is read, which is that of the rows after a transposition.
    let mut out = DMatrixViewMut::from_slice(y, n, n);
    match Cholesky::new(matrix(x, n).transpose()) {
        Some(found) if upper => out.copy_from(&found.l()),
        Some(found) => out.copy_from(&found.l().transpose()),
        None => out.fill(<T as crate::dtype::Element>::from_f64(f64::NAN)),
    }
}
