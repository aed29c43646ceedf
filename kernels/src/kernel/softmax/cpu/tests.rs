//! Against plain loops in f64, for rows and for blocks, written and added, in both types.

use super::*;

const AXES: [Axis; 13] = [
    Axis { outer: 3, n: 5, inner: 1 },
    Axis { outer: 1, n: 3000, inner: 1 },
    Axis { outer: 20, n: 1, inner: 1 },
    Axis { outer: 300, n: 3, inner: 1 },
    Axis { outer: 70, n: 17, inner: 1 },
    Axis { outer: 33, n: 32, inner: 1 },
    Axis { outer: 33, n: 33, inner: 1 },
    Axis { outer: 40, n: 1000, inner: 1 },
    Axis { outer: 2, n: 4, inner: 3 },
    Axis { outer: 3, n: 7, inner: 600 },
    Axis { outer: 1, n: 1, inner: 257 },
    Axis { outer: 0, n: 3, inner: 1 },
    Axis { outer: 2, n: 3, inner: 0 },
];

/// Numbers without a pattern, from -4 to 4.
fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f64 / (1 << 21) as f64 - 4.0
        })
        .collect()
}

/// Index of place `k` of row number `r`.
fn at(a: Axis, r: usize, k: usize) -> usize {
    (r / a.inner * a.n + k) * a.inner + r % a.inner
}

/// For each row its elements through `f`, back in the array's order.
fn by_rows(a: Axis, x: &[f64], mut f: impl FnMut(usize, &[f64]) -> Vec<f64>) -> Vec<f64> {
    let mut y = vec![0.0; x.len()];
    for r in 0..a.outer * a.inner {
        let row: Vec<f64> = (0..a.n).map(|k| x[at(a, r, k)]).collect();
        f(r, &row).into_iter().enumerate().for_each(|(k, v)| y[at(a, r, k)] = v);
    }
    y
}

fn probabilities(row: &[f64]) -> Vec<f64> {
    let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|v| (v - max).exp()).sum();
    row.iter().map(|v| (v - max).exp() / sum).collect()
}

fn close(got: &[f64], want: &[f64], what: &str, a: Axis) {
    assert_eq!(got.len(), want.len());
    for (g, w) in got.iter().zip(want) {
        assert!((g - w).abs() <= 1e-5 * w.abs().max(1.0), "{what} {a:?}: {g} instead of {w}");
    }
}

fn check<T: SimdReal>(what: &str, a: Axis, want: &[f64], f: impl Fn(&mut [T], Output)) {
    for (output, start) in [(Output::Write, f64::NAN), (Output::Accumulate, 2.0)] {
        let mut y = vec![T::from_f64(start); want.len()];
        f(&mut y, output);
        let got: Vec<f64> = y.iter().map(|v| v.to_f64()).collect();
        let shift = if output == Output::Write { 0.0 } else { 2.0 };
        close(&got, &want.iter().map(|w| w + shift).collect::<Vec<_>>(), what, a);
    }
}

fn all<T: SimdReal>(a: Axis) {
    let (size, rows) = (a.outer * a.n * a.inner, a.outer * a.inner);
    let to = |v: &[f64]| v.iter().map(|&v| T::from_f64(v)).collect::<Vec<T>>();
    let (x, gy, one) = (numbers(size, 1), numbers(size, 2), numbers(rows, 3));
    let label: Vec<i64> = (0..rows).map(|r| if r % 5 == 4 { -1 } else { (r * 7 % a.n) as i64 }).collect();
    let p = by_rows(a, &x, |_, row| probabilities(row));
    let logs: Vec<f64> = p.iter().map(|p| p.ln()).collect();
    let sums = |v: &[f64]| by_rows(a, v, |_, row| vec![row.iter().sum(); a.n]);
    let weighted = sums(&p.iter().zip(&gy).map(|(p, g)| p * g).collect::<Vec<_>>());
    let total = sums(&gy);
    let softmax_gx: Vec<f64> = (0..size).map(|i| p[i] * (gy[i] - weighted[i])).collect();
    let log_gx: Vec<f64> = (0..size).map(|i| gy[i] - p[i] * total[i]).collect();
    let loss: Vec<f64> =
        (0..rows).map(|r| if label[r] < 0 { 0.0 } else { -logs[at(a, r, label[r] as usize)] }).collect();
    let loss_gx = by_rows(a, &p, |r, row| {
        let hit = |k: usize| (k as i64 == label[r]) as u8 as f64;
        row.iter().enumerate().map(|(k, p)| if label[r] < 0 { 0.0 } else { one[r] * (p - hit(k)) }).collect()
    });
    let (x, y, log_y, gy, one) = (to(&x), to(&p), to(&logs), to(&gy), to(&one));
    let mut out = vec![T::ZERO; size];
    softmax(a, &x, &mut out);
    close(&out.iter().map(|v| v.to_f64()).collect::<Vec<_>>(), &p, "softmax", a);
    log_softmax(a, &x, &mut out);
    close(&out.iter().map(|v| v.to_f64()).collect::<Vec<_>>(), &logs, "log_softmax", a);
    let mut losses = vec![T::ZERO; rows];
    cross_entropy(a, &x, &label, &mut losses);
    close(&losses.iter().map(|v| v.to_f64()).collect::<Vec<_>>(), &loss, "cross_entropy", a);
    check::<T>("softmax_backward", a, &softmax_gx, |gx, o| softmax_backward(a, &y, &gy, gx, o));
    check::<T>("log_softmax_backward", a, &log_gx, |gx, o| log_softmax_backward(a, &log_y, &gy, gx, o));
    let (mut again, mut terms, mut s) = (losses.clone(), x.clone(), losses.clone());
    cross_entropy_keeping(a, &x, &label, &mut again, &mut terms, &mut s);
    close(&again.iter().map(|v| v.to_f64()).collect::<Vec<_>>(), &loss, "cross_entropy_keeping", a);
    let back = |gx: &mut [T], o| cross_entropy_backward(a, &terms, &s, &label, &one, gx, o);
    check::<T>("cross_entropy_backward", a, &loss_gx, back);
    let mut over = gy.clone();
    if a.inner == 1 {
        softmax_over(a, &y, &mut over);
        close(&over.iter().map(|v| v.to_f64()).collect::<Vec<_>>(), &softmax_gx, "softmax_over", a);
        over.copy_from_slice(&gy);
        log_softmax_over(a, &log_y, &mut over);
        close(&over.iter().map(|v| v.to_f64()).collect::<Vec<_>>(), &log_gx, "log_softmax_over", a);
    }
}

unit_test!(kernels_match_loops);
fn kernels_match_loops() {
    for a in AXES {
        all::<f32>(a);
        all::<f64>(a);
    }
}

unit_test!(what_is_not_finite_fills_its_row_alone);
fn what_is_not_finite_fills_its_row_alone() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let rows = [[1.0, nan, 3.0], [1.0, inf, 3.0], [-inf; 3], [1.0, -inf, 1.0]];
    for inner in [1, 4] {
        let a = Axis { outer: 4 / inner, n: 3, inner };
        let mut x = [0.0; 12];
        (0..12).for_each(|i| x[at(a, i / 3, i % 3)] = rows[i / 3][i % 3]);
        let mut y = [0.0; 12];
        softmax(a, &x, &mut y);
        (0..9).for_each(|i| assert!(y[at(a, i / 3, i % 3)].is_nan()));
        assert_eq!([0, 1, 2].map(|k| y[at(a, 3, k)]), [0.5, 0.0, 0.5]);
        let (mut gx, mut terms, mut sums, label) = ([1.0; 12], [nan; 12], [nan; 4], [-1, -1, -1, 0]);
        cross_entropy_keeping(a, &x, &label, &mut [0.0; 4], &mut terms, &mut sums);
        cross_entropy_backward(a, &terms, &sums, &label, &[2.0; 4], &mut gx, Output::Write);
        (0..9).for_each(|i| assert_eq!(gx[at(a, i / 3, i % 3)], 0.0));
        assert_eq!([0, 1, 2].map(|k| gx[at(a, 3, k)]), [-1.0, 0.0, 1.0]);
    }
}
