//! On the host: small matrices by unrolled loops, inverses of larger ones by loops over rows, the rest by the crate nalgebra.

use super::{BatchMatrix, Wanted, blocks, small};
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
    let size = if c.wanted.is_number() { 1 } else { square };
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
        Wanted::Cofactors => cofactors(x, n, y),
        Wanted::Lower | Wanted::Upper => factor(x, n, y, c.wanted == Wanted::Upper),
    }
}

/// Gauss and Jordan's elimination in place, row by row, by the largest pivots.
fn inverse<T: SimdReal>(x: &[T], n: usize, y: &mut [T]) {
    y.copy_from_slice(x);
    let mut from = Scratch::filled(n, 0);
    for k in 0..n {
        from[k] = largest(y, n, k);
        let pivot = y[from[k] * n + k];
        if pivot == T::ZERO {
            return y.fill(T::from_f64(f64::NAN));
        }
        exchange_rows(y, n, k, from[k]);
        eliminate(y, n, k, pivot);
    }
    exchange_columns(y, n, &from);
}

/// The row from `k` on with the largest element of column `k`.
fn largest<T: SimdReal>(y: &[T], n: usize, k: usize) -> usize {
    (k + 1..n).fold(k, |best, i| if y[i * n + k].abs() > y[best * n + k].abs() { i } else { best })
}

/// Exchanged rows of a matrix are columns of its inverse.
fn exchange_columns<T>(y: &mut [T], n: usize, from: &[usize]) {
    for k in (0..n).rev().filter(|k| from[*k] != *k) {
        y.chunks_exact_mut(n).for_each(|row| row.swap(k, from[k]));
    }
}

/// The determinant times the transposed inverse, by the same elimination. The last pivot is no divisor, so it may be 0; a column that
/// has no other pivot becomes the last one. If there are two of them, all is 0.
fn cofactors<T: SimdReal>(x: &[T], n: usize, y: &mut [T]) {
    y.copy_from_slice(x);
    let last = n - 1;
    let mut from = Scratch::filled(n, last);
    let (mut product, mut exchanged) = (T::ONE, None);
    for k in 0..last {
        from[k] = largest(y, n, k);
        if y[from[k] * n + k] == T::ZERO {
            if exchanged.replace(k).is_some() {
                return y.fill(T::ZERO);
            }
            y.chunks_exact_mut(n).for_each(|row| row.swap(k, last));
            from[k] = largest(y, n, k);
            product = -product;
        }
        let pivot = y[from[k] * n + k];
        if pivot == T::ZERO {
            return y.fill(T::ZERO);
        }
        product = if from[k] == k { product * pivot } else { -(product * pivot) };
        exchange_rows(y, n, k, from[k]);
        eliminate(y, n, k, pivot);
    }
    let (above, row) = y.split_at_mut(last * n);
    let pivot = std::mem::replace(&mut row[last], T::ONE);
    for other in above.chunks_exact_mut(n) {
        let times = -std::mem::replace(&mut other[last], T::ZERO);
        other.iter_mut().for_each(|v| *v = *v * pivot);
        simd::axpy(other, times, row);
    }
    exchange_columns(y, n, &from);
    if let Some(k) = exchanged {
        exchange_rows(y, n, k, last);
    }
    transpose(y, n);
    y.iter_mut().for_each(|v| *v = *v * product);
}

fn transpose<T>(y: &mut [T], n: usize) {
    for i in 0..n {
        (0..i).for_each(|j| y.swap(i * n + j, j * n + i));
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
    if n >= blocks::LARGE {
        y.copy_from_slice(x);
        return match blocks::factor(y, n) {
            Some(()) if upper => transpose(y, n),
            Some(()) => {}
            None => y.fill(<T as crate::dtype::Element>::from_f64(f64::NAN)),
        };
    }
    // Only the lower triangle is read, which is that of the rows after a transposition.
    let mut out = DMatrixViewMut::from_slice(y, n, n);
    match Cholesky::new(matrix(x, n).transpose()) {
        Some(found) if upper => out.copy_from(&found.l()),
        Some(found) => out.copy_from(&found.l().transpose()),
        None => out.fill(<T as crate::dtype::Element>::from_f64(f64::NAN)),
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::super::small::tests::slow;
    use super::*;

    fn made(wanted: Wanted, n: usize, x: &[f64]) -> Vec<f64> {
        let mut y = vec![9.0; n * n];
        run(&BatchMatrix { batch: 1, n, wanted }, x, &mut y);
        y
    }

    /// Without row `i` and column `j`.
    fn minor(x: &[f64], n: usize, i: usize, j: usize) -> f64 {
        let left: Vec<f64> = (0..n * n).filter(|e| e / n != i && e % n != j).map(|e| x[e]).collect();
        slow(&left, n - 1) * if (i + j).is_multiple_of(2) { 1.0 } else { -1.0 }
    }

    unit_test!(cofactors_of_all_ranks_match_their_definition);
    fn cofactors_of_all_ranks_match_their_definition() {
        for n in 1..7 {
            let regular: Vec<f64> = (0..n * n).map(|e| (e * 7919 % 23) as f64 - 11.0).collect();
            let zeros = |is_zero: &dyn Fn(usize) -> bool| -> Vec<f64> {
                regular.iter().enumerate().map(|(e, v)| if is_zero(e) { 0.0 } else { *v }).collect()
            };
            let mut all = vec![regular.clone(), vec![0.0; n * n], vec![1.0; n * n]];
            for k in 0..n {
                all.push(zeros(&|e| e % n == k));
                all.push(zeros(&|e| e / n == k));
                all.push(zeros(&|e| e % n == k || e / n == 0));
                all.push(zeros(&|e| e % n == k || e % n == 0));
                // A column and a row that are another's double.
                all.push((0..n * n).map(|e| if e % n == k { 2.0 * regular[e / n * n] } else { regular[e] }).collect());
                all.push((0..n * n).map(|e| if e / n == k { 2.0 * regular[e % n] } else { regular[e] }).collect());
            }
            for x in all {
                let y = made(Wanted::Cofactors, n, &x);
                for (e, y) in y.iter().enumerate() {
                    let want = minor(&x, n, e / n, e % n);
                    assert!((y - want).abs() <= 1e-12 * 20f64.powi(n as i32), "{n}: {x:?}: {y} for {want}");
                }
            }
        }
    }

    unit_test!(matrices_without_elements);
    fn matrices_without_elements() {
        let mut y = [9.0; 2];
        run(&BatchMatrix { batch: 2, n: 0, wanted: Wanted::Determinant }, &[], &mut y);
        assert_eq!(y, [1.0; 2]);
        run(&BatchMatrix { batch: 2, n: 0, wanted: Wanted::LogDeterminant }, &[], &mut y);
        assert_eq!(y, [0.0; 2]);
        let g = small::MatrixGradient { wanted: Wanted::Determinant, x: &[], y: &[], gy: &y };
        backward(0, &g, &mut [], Output::Write);
    }
}
