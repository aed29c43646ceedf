//! On the host: small matrices by unrolled loops, inverses of larger ones by loops over rows, the rest by the crate nalgebra.

use super::{BatchMatrix, Wanted, small};
use crate::array::Output;
use crate::array::scratch::{Scratch, list};
use crate::pool::tasks;
use crate::simd::{self, SimdReal};
use nalgebra::{Cholesky, DMatrix, DMatrixViewMut, Dyn, LU, RealField, VecStorage};

/// A matrix whose columns are the rows of `x`.
fn matrix<T: SimdReal + RealField>(x: &[T], n: usize) -> DMatrix<T> {
    let mut elements = list(n * n, <T as crate::dtype::Real>::ZERO);
    elements.copy_from_slice(x);
    DMatrix::from_data(VecStorage::new(Dyn(n), Dyn(n), elements))
}

/// Multiplications that are worth a task, about.
const TASK: usize = 1 << 14;

pub(super) fn run<T: SimdReal + RealField>(c: &BatchMatrix, x: &[T], y: &mut [T]) {
    let (n, square) = (c.n, c.n * c.n);
    let size = if matches!(c.wanted, Wanted::Determinant | Wanted::LogDeterminant) { 1 } else { square };
    if y.is_empty() {
        return;
    }
    if n == 0 {
        return y.fill(<T as crate::dtype::Element>::from_f64(c.wanted.of_nothing()));
    }
    let each = (TASK / square.saturating_mul(n.max(4))).max(1);
    tasks::parts(y, each * size, |task, y| {
        let x = &x[task * each * square..][..y.len() / size * square];
        if n <= small::MOST {
            return small::run(n, c.wanted, x, y, size);
        }
        x.chunks_exact(square).zip(y.chunks_exact_mut(size)).for_each(|(x, y)| one(c, x, y));
    });
}

/// Writes or adds the gradient of small matrices.
pub(super) fn backward<T: SimdReal>(n: usize, g: &small::MatrixGradient<T>, gx: &mut [T], output: Output) {
    if gx.is_empty() {
        return;
    }
    let (square, each) = (n * n, TASK / 256);
    tasks::parts(gx, each * square, |task, gx| small::backward(n, g, task * each, gx, output));
}

fn one<T: SimdReal + RealField>(c: &BatchMatrix, x: &[T], y: &mut [T]) {
    let n = c.n;
    match c.wanted {
        Wanted::Determinant => y[0] = LU::new(matrix(x, n)).determinant(),
        Wanted::LogDeterminant => {
            let u = LU::new(matrix(x, n));
            let magnitudes = (0..n).map(|k| <T as crate::dtype::Element>::to_f64(u.lu_internal()[(k, k)]).abs().ln());
            y[0] = <T as crate::dtype::Element>::from_f64(magnitudes.sum());
        }
        Wanted::Inverse => inverse(x, n, y),
        Wanted::Lower | Wanted::Upper => factor(x, n, y, c.wanted == Wanted::Upper),
    }
}

/// Gauss and Jordan's elimination in place, row by row, by the largest pivots.
fn inverse<T: SimdReal>(x: &[T], n: usize, y: &mut [T]) {
    y.copy_from_slice(x);
    let mut from = Scratch::filled(n, 0);
    for k in 0..n {
        let larger = |best: usize, i: usize| if y[i * n + k].abs() > y[best * n + k].abs() { i } else { best };
        from[k] = (k + 1..n).fold(k, larger);
        let pivot = y[from[k] * n + k];
        if pivot == T::ZERO {
            return y.fill(T::from_f64(f64::NAN));
        }
        exchange_rows(y, n, k, from[k]);
        eliminate(y, n, k, pivot);
    }
    // Exchanged rows of the matrix are columns of its inverse.
    for k in (0..n).rev().filter(|k| from[*k] != *k) {
        y.chunks_exact_mut(n).for_each(|row| row.swap(k, from[k]));
    }
}

fn exchange_rows<T>(y: &mut [T], n: usize, a: usize, b: usize) {
    if a < b {
        let (first, second) = y.split_at_mut(b * n);
        first[a * n..][..n].swap_with_slice(&mut second[..n]);
    }
}

/// Column `k` becomes that of the inverse so far.
fn eliminate<T: SimdReal>(y: &mut [T], n: usize, k: usize, pivot: T) {
    let (above, rest) = y.split_at_mut(k * n);
    let (row, below) = rest.split_at_mut(n);
    row[k] = T::ONE;
    for other in above.chunks_exact_mut(n).chain(below.chunks_exact_mut(n)) {
        let times = -(other[k] / pivot);
        simd::axpy(other, times, row);
        // Of 0 in the loop's place: a store right before its load would make it wait. Added to 0, -0 is 0.
        other[k] = times + T::ZERO;
    }
    row.iter_mut().for_each(|v| *v = *v / pivot);
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
