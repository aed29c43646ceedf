//! The Cholesky factor of a large matrix, some columns at a time: most of the work is a matrix product.

use crate::array::Output;
use crate::array::scratch::Scratch;
use crate::gemm::{Mat, MatMut, matmul};
use crate::simd::{self, SimdReal};

/// Columns that are done together.
const COLUMNS: usize = 48;
/// Rows whose rest is brought up to date together.
const ROWS: usize = 128;
/// Matrices below this size are no large ones.
pub(super) const LARGE: usize = 2 * COLUMNS;

/// Makes a lower factor of the lower triangle, row by row; zeros above it. None where the matrix is not positive definite.
pub(super) fn factor<T: SimdReal>(y: &mut [T], n: usize) -> Option<()> {
    let (mut panel, mut product) = (Scratch::filled(n * COLUMNS, T::ZERO), Scratch::filled(ROWS * n, T::ZERO));
    for first in (0..n).step_by(COLUMNS) {
        let end = n.min(first + COLUMNS);
        (first..n).try_for_each(|i| row(y, n, i, first..end.min(i + 1)))?;
        let (width, rest) = (end - first, n - end);
        for i in 0..rest {
            panel[i * width..][..width].copy_from_slice(&y[(end + i) * n + first..][..width]);
        }
        for from in (0..rest).step_by(ROWS) {
            let to = rest.min(from + ROWS);
            let (rows, columns) = (Mat::new(&panel[from * width..], to - from, width), Mat::new(&panel, to, width).t());
            matmul(rows, columns, MatMut::new(&mut product, to - from, to), Output::Write);
            for (i, product) in (from..to).zip(product.chunks_exact(to)) {
                simd::axpy(&mut y[(end + i) * n + end..][..i + 1], -T::ONE, &product[..i + 1]);
            }
        }
    }
    y.chunks_exact_mut(n).enumerate().for_each(|(i, row)| row[i + 1..].fill(T::ZERO));
    Some(())
}

/// Elements of row `i` of the factor in some columns, those before them done with.
fn row<T: SimdReal>(y: &mut [T], n: usize, i: usize, columns: std::ops::Range<usize>) -> Option<()> {
    let first = columns.start;
    for j in columns {
        let (above, own) = y.split_at_mut(i * n);
        let other = if i == j { &own[first..j] } else { &above[j * n + first..][..j - first] };
        let v = own[j] - simd::dot(&own[first..j], other);
        if i != j {
            own[j] = v / above[j * n + j];
            continue;
        }
        own[j] = if v > T::ZERO { v.sqrt() } else { return None };
    }
    Some(())
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(the_factor_times_itself_is_the_matrix);
    fn the_factor_times_itself_is_the_matrix() {
        for n in [LARGE, 97, 145, 300] {
            let g: Vec<f64> = (0..n * n).map(|i| ((i * 7919 + i / n) % 101) as f64 / 50.0 - 1.0).collect();
            let of = |i: usize, j: usize| {
                (0..n).map(|k| g[i * n + k] * g[j * n + k]).sum::<f64>() + if i == j { n as f64 } else { 0.0 }
            };
            let x: Vec<f64> = (0..n * n).map(|e| of(e / n, e % n)).collect();
            let mut y = x.clone();
            factor(&mut y, n).expect("a positive definite matrix");
            for e in 0..n * n {
                let (i, j) = (e / n, e % n);
                let made: f64 = (0..n).map(|k| y[i * n + k] * y[j * n + k]).sum();
                assert!((made - x[e]).abs() < 1e-9 * n as f64 && (j <= i || y[e] == 0.0), "{n}: {i}, {j}");
            }
            y.copy_from_slice(&x);
            y[n * n - 1] = 0.0;
            assert!(factor(&mut y, n).is_none());
        }
    }
}
