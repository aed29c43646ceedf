//! Matrices of up to four rows: loops that the compiler unrolls, over numbers that stay in registers.

use super::Wanted;
use crate::array::Output;
use crate::dtype::DType;
use crate::simd::SimdReal;

/// Rows of the largest matrix that is done here.
pub(super) const MOST: usize = 4;

type SmallMatrix<T, const N: usize> = [[T; N]; N];

/// Makes what is wanted of matrices one after another; each result has `size` numbers.
pub(super) fn run<T: SimdReal>(n: usize, wanted: Wanted, x: &[T], y: &mut [T], size: usize) {
    match n {
        1 => each::<T, 1>(wanted, x, y, size),
        2 => each::<T, 2>(wanted, x, y, size),
        3 => each::<T, 3>(wanted, x, y, size),
        _ => each::<T, MOST>(wanted, x, y, size),
    }
}

#[inline(always)]
fn matrix<T: SimdReal, const N: usize>(x: &[T]) -> SmallMatrix<T, N> {
    std::array::from_fn(|i| std::array::from_fn(|j| x[i * N + j]))
}

#[inline(always)]
fn put<T: SimdReal, const N: usize>(x: &SmallMatrix<T, N>, y: &mut [T], output: Output) {
    for (y, &v) in y.iter_mut().zip(x.as_flattened()) {
        *y = if output == Output::Write { v } else { *y + v };
    }
}

fn each<T: SimdReal, const N: usize>(wanted: Wanted, x: &[T], y: &mut [T], size: usize) {
    for (x, y) in x.chunks_exact(N * N).zip(y.chunks_exact_mut(size)) {
        let x = matrix::<T, N>(x);
        match wanted {
            Wanted::Determinant => y[0] = determinant(x),
            Wanted::LogDeterminant => y[0] = log_determinant(x),
            Wanted::Inverse => put(&inverse(x), y, Output::Write),
            Wanted::Cofactors => put(&cofactors(&x), y, Output::Write),
            Wanted::Lower | Wanted::Upper => factor(&x, wanted == Wanted::Upper, y),
        }
    }
}

/// The upper factor, by the largest pivots of the columns, and whether rows were exchanged an odd number of times.
// Several rows go by one index, and are exchanged without a branch.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn upper<T: SimdReal, const N: usize>(mut u: SmallMatrix<T, N>) -> (SmallMatrix<T, N>, bool) {
    let mut odd = false;
    for k in 0..N {
        for i in k + 1..N {
            // Row k becomes the larger of both, in turn: the largest in the end.
            let exchange = u[i][k].abs() > u[k][k].abs();
            for j in k..N {
                let (a, b) = (u[k][j], u[i][j]);
                (u[k][j], u[i][j]) = if exchange { (b, a) } else { (a, b) };
            }
            odd ^= exchange;
        }
        if u[k][k] == T::ZERO {
            continue;
        }
        let share = T::ONE / u[k][k];
        for i in k + 1..N {
            let times = u[i][k] * share;
            for j in k + 1..N {
                u[i][j] = u[i][j] - times * u[k][j];
            }
        }
    }
    (u, odd)
}

#[inline(always)]
fn determinant<T: SimdReal, const N: usize>(x: SmallMatrix<T, N>) -> T {
    let (u, odd) = upper(x);
    let product = (1..N).fold(u[0][0], |product, k| product * u[k][k]);
    if odd { -product } else { product }
}

/// Of the magnitude. A product of few numbers in single precision has a logarithm in double.
#[inline(always)]
fn log_determinant<T: SimdReal, const N: usize>(x: SmallMatrix<T, N>) -> T {
    let (u, _) = upper(x);
    let magnitudes = (0..N).map(|k| u[k][k].to_f64().abs());
    T::from_f64(match T::DTYPE {
        DType::F32 => magnitudes.product::<f64>().ln(),
        _ => magnitudes.map(f64::ln).sum(),
    })
}

/// Gauss and Jordan's elimination by the largest pivots; NaN for a singular matrix.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn inverse<T: SimdReal, const N: usize>(mut x: SmallMatrix<T, N>) -> SmallMatrix<T, N> {
    let mut y: SmallMatrix<T, N> =
        std::array::from_fn(|i| std::array::from_fn(|j| if i == j { T::ONE } else { T::ZERO }));
    let mut is_singular = false;
    for k in 0..N {
        for i in k + 1..N {
            let exchange = x[i][k].abs() > x[k][k].abs();
            for j in 0..N {
                let ([a, b], [c, d]) = ([x[k][j], x[i][j]], [y[k][j], y[i][j]]);
                (x[k][j], x[i][j]) = if exchange { (b, a) } else { (a, b) };
                (y[k][j], y[i][j]) = if exchange { (d, c) } else { (c, d) };
            }
        }
        is_singular |= x[k][k] == T::ZERO;
        let pivot = x[k][k];
        for j in 0..N {
            (x[k][j], y[k][j]) = (x[k][j] / pivot, y[k][j] / pivot);
        }
        for i in (0..N).filter(|i| *i != k) {
            let times = x[i][k];
            for j in 0..N {
                x[i][j] = x[i][j] - times * x[k][j];
                y[i][j] = y[i][j] - times * y[k][j];
            }
        }
    }
    if is_singular { [[T::from_f64(f64::NAN); N]; N] } else { y }
}

/// Each element's cofactor: the signed determinant of what is left without its row and column.
#[inline(always)]
fn cofactors<T: SimdReal, const N: usize>(x: &SmallMatrix<T, N>) -> SmallMatrix<T, N> {
    std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            // Rows and columns behind those, around the matrix: of three of them the order has the sign.
            let at = |a: usize, b: usize| x[(i + a) % N][(j + b) % N];
            let minor = |a: usize, b: usize| at(2, a) * at(3, b) - at(2, b) * at(3, a);
            match N {
                1 => T::ONE,
                2 if i == j => at(1, 1),
                2 => -at(1, 1),
                3 => at(1, 1) * at(2, 2) - at(1, 2) * at(2, 1),
                _ => {
                    let v = at(1, 1) * minor(2, 3) - at(1, 2) * minor(1, 3) + at(1, 3) * minor(1, 2);
                    if (i + j) % 2 == 0 { v } else { -v }
                }
            }
        })
    })
}

/// Cholesky's factor of the lower triangle; NaN where there is none.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn factor<T: SimdReal, const N: usize>(x: &SmallMatrix<T, N>, is_upper: bool, y: &mut [T]) {
    let mut l = [[T::ZERO; N]; N];
    let mut is_definite = true;
    for j in 0..N {
        let diagonal = (0..j).fold(x[j][j], |v, k| v - l[j][k] * l[j][k]);
        is_definite &= diagonal > T::ZERO;
        l[j][j] = diagonal.sqrt();
        let share = T::ONE / l[j][j];
        for i in j + 1..N {
            l[i][j] = (0..j).fold(x[i][j], |v, k| v - l[i][k] * l[j][k]) * share;
        }
    }
    for i in 0..N {
        for j in 0..N {
            let v = if is_upper { l[j][i] } else { l[i][j] };
            y[i * N + j] = if is_definite { v } else { T::from_f64(f64::NAN) };
        }
    }
}

/// What a gradient is made of: matrices or numbers one after another.
pub(super) struct MatrixGradient<'a, T> {
    pub wanted: Wanted,
    /// Empty where they are not read.
    pub x: &'a [T],
    pub y: &'a [T],
    pub gy: &'a [T],
}

/// Writes or adds the gradient of matrices from number `first` on.
pub(super) fn backward<T: SimdReal>(n: usize, g: &MatrixGradient<T>, first: usize, gx: &mut [T], output: Output) {
    match n {
        1 => each_gradient::<T, 1>(g, first, gx, output),
        2 => each_gradient::<T, 2>(g, first, gx, output),
        3 => each_gradient::<T, 3>(g, first, gx, output),
        _ => each_gradient::<T, MOST>(g, first, gx, output),
    }
}

fn each_gradient<T: SimdReal, const N: usize>(g: &MatrixGradient<T>, first: usize, gx: &mut [T], output: Output) {
    for (i, gx) in gx.chunks_exact_mut(N * N).enumerate() {
        let i = first + i;
        let of = |x: &[T]| matrix::<T, N>(&x[i * N * N..][..N * N]);
        let found = match g.wanted {
            Wanted::Determinant => scaled(&cofactors(&of(g.x)), g.gy[i]),
            Wanted::LogDeterminant => scaled(&transposed(&inverse(of(g.x))), g.gy[i]),
            Wanted::Cofactors => unreachable!("its gradient is made of other functions"),
            Wanted::Inverse => {
                let y = transposed(&of(g.y));
                scaled(&product(&product(&y, &of(g.gy)), &y), -T::ONE)
            }
            Wanted::Lower => factor_gradient(&of(g.y), &of(g.gy)),
            Wanted::Upper => factor_gradient(&transposed(&of(g.y)), &transposed(&of(g.gy))),
        };
        put(&found, gx, output);
    }
}

/// As the rule of `batch_cholesky` has it, for a lower factor.
#[inline(always)]
fn factor_gradient<T: SimdReal, const N: usize>(l: &SmallMatrix<T, N>, gl: &SmallMatrix<T, N>) -> SmallMatrix<T, N> {
    let half = T::from_f64(0.5);
    let both = product(&transposed(l), gl);
    let weight = |i: usize, j: usize| match i.cmp(&j) {
        std::cmp::Ordering::Less => T::ZERO,
        std::cmp::Ordering::Equal => both[i][j] * half,
        std::cmp::Ordering::Greater => both[i][j],
    };
    let lower: SmallMatrix<T, N> = std::array::from_fn(|i| std::array::from_fn(|j| weight(i, j)));
    let back = inverse(*l);
    let s = product(&product(&transposed(&back), &lower), &back);
    std::array::from_fn(|i| std::array::from_fn(|j| (s[i][j] + s[j][i]) * half))
}

#[inline(always)]
fn transposed<T: SimdReal, const N: usize>(x: &SmallMatrix<T, N>) -> SmallMatrix<T, N> {
    std::array::from_fn(|i| std::array::from_fn(|j| x[j][i]))
}

#[inline(always)]
fn product<T: SimdReal, const N: usize>(a: &SmallMatrix<T, N>, b: &SmallMatrix<T, N>) -> SmallMatrix<T, N> {
    let sum = |i: usize, j: usize| (1..N).fold(a[i][0] * b[0][j], |s, k| s + a[i][k] * b[k][j]);
    std::array::from_fn(|i| std::array::from_fn(|j| sum(i, j)))
}

#[inline(always)]
fn scaled<T: SimdReal, const N: usize>(x: &SmallMatrix<T, N>, by: T) -> SmallMatrix<T, N> {
    x.map(|row| row.map(|v| v * by))
}

#[cfg(feature = "emulate")]
pub(super) mod tests {
    use super::*;

    /// Sums over all permutations.
    pub fn slow(x: &[f64], n: usize) -> f64 {
        if n == 0 {
            return 1.0;
        }
        let minor = |c: usize| -> Vec<f64> {
            (1..n).flat_map(|i| (0..n).filter(|j| *j != c).map(|j| x[i * n + j]).collect::<Vec<_>>()).collect()
        };
        (0..n).map(|c| if c % 2 == 0 { x[c] } else { -x[c] } * slow(&minor(c), n - 1)).sum()
    }

    unit_test!(determinants_match_their_definition);
    fn determinants_match_their_definition() {
        for n in 1..=MOST {
            let x: Vec<f64> = (0..50 * n * n).map(|i| (i * 7919 % 23) as f64 - 11.0).collect();
            let (mut y, mut logs) = (vec![0.0; 50], vec![0.0; 50]);
            run(n, Wanted::Determinant, &x, &mut y, 1);
            run(n, Wanted::LogDeterminant, &x, &mut logs, 1);
            let single: Vec<f32> = x.iter().map(|v| *v as f32).collect();
            let mut of_single = vec![0f32; 50];
            run(n, Wanted::LogDeterminant, &single, &mut of_single, 1);
            for (i, x) in x.chunks(n * n).enumerate() {
                let want = slow(x, n);
                assert!((y[i] - want).abs() <= 1e-11 * (want.abs() + 1e3), "{n}: {} for {want}", y[i]);
                if want.abs() > 1e-6 {
                    assert!((logs[i] - want.abs().ln()).abs() < 1e-9, "{n}: {} for {want}", logs[i]);
                    assert!((of_single[i] as f64 - logs[i]).abs() < 1e-3, "{n}: {} for {want}", of_single[i]);
                }
            }
        }
    }

    unit_test!(singular_and_not_a_number);
    fn singular_and_not_a_number() {
        let mut y = [1.0; 3];
        run(2, Wanted::Determinant, &[0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 3.0, f64::NAN, 1.0, 1.0, 1.0], &mut y, 1);
        assert!(y[0] == 0.0 && y[1] == 0.0 && y[2].is_nan());
        run(2, Wanted::LogDeterminant, &[0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 4.0, -1.0, 0.0, 0.0, 1.0], &mut y, 1);
        assert_eq!(y, [f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0]);
    }

    unit_test!(inverses_give_the_unit_matrix);
    fn inverses_give_the_unit_matrix() {
        for n in 1..=MOST {
            let x: Vec<f64> = (0..20 * n * n).map(|i| (i * 7919 % 23) as f64 - 10.5).collect();
            let mut y = vec![0.0; x.len()];
            run(n, Wanted::Inverse, &x, &mut y, n * n);
            for (x, y) in x.chunks(n * n).zip(y.chunks(n * n)).filter(|(x, _)| slow(x, n).abs() > 1e-6) {
                for e in 0..n * n {
                    let v: f64 = (0..n).map(|k| x[e / n * n + k] * y[k * n + e % n]).sum();
                    let want = if e / n == e % n { 1.0 } else { 0.0 };
                    assert!((v - want).abs() < 1e-8, "{x:?}: {y:?}");
                }
            }
        }
        let mut y = [0f32; 8];
        run(2, Wanted::Inverse, &[1.0, 2.0, 2.0, 4.0, 0.0, 1.0, 1.0, 0.0], &mut y, 4);
        assert!(y[..4].iter().all(|v| v.is_nan()) && y[4..] == [0.0, 1.0, 1.0, 0.0], "{y:?}");
    }

    unit_test!(factors_give_the_matrix_and_read_its_lower_triangle);
    fn factors_give_the_matrix_and_read_its_lower_triangle() {
        for n in 1..=MOST {
            let lower = |i: usize, j: usize| if j > i { 0.0 } else { 1.0 + (i * 3 + j) as f64 / 4.0 };
            let product = |i: usize, j: usize| (0..n).map(|k| lower(i, k) * lower(j, k)).sum::<f64>();
            let x: Vec<f64> = (0..n * n).map(|e| if e % n > e / n { 99.0 } else { product(e / n, e % n) }).collect();
            let (mut l, mut u) = (vec![9.0; n * n], vec![9.0; n * n]);
            run(n, Wanted::Lower, &x, &mut l, n * n);
            run(n, Wanted::Upper, &x, &mut u, n * n);
            for e in 0..n * n {
                assert!((l[e] - lower(e / n, e % n)).abs() < 1e-12, "{n}: {l:?}");
                assert_eq!(u[e % n * n + e / n], l[e]);
            }
        }
        let mut y = [0f32; 12];
        run(2, Wanted::Lower, &[1.0, 0.0, 2.0, 4.0, 0.0, 0.0, 0.0, 1.0, f32::NAN, 0.0, 0.0, 1.0], &mut y, 4);
        assert!(y.iter().all(|v| v.is_nan()), "{y:?}");
    }
}
