//! Rows forward.

use super::super::rows::add_moments;
use super::super::wide_moments;
use super::{normalizing, together};
use crate::dtype::Real;
use crate::kernel::vector_sums::{self, SIDE, VectorAccumulator};
use crate::simd::lanes::{Lanes, WithLanes};

/// Some rows forward.
pub(super) struct LayerForwardPart<'a, T> {
    pub width: usize,
    pub x: &'a [T],
    pub y: &'a mut [T],
    pub gamma: &'a [T],
    pub beta: &'a [T],
    pub eps: f64,
    pub mean: &'a mut [f64],
    pub variance: &'a mut [f64],
}

impl<T: Real> WithLanes<T> for LayerForwardPart<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let n = self.width;
        let together = together::<T, L>(n);
        let mut lanes = [[T::ZERO; SIDE * SIDE]; 2];
        let rows = self.x.chunks(together * n).zip(self.y.chunks_mut(together * n));
        let moments = self.mean.chunks_mut(together).zip(self.variance.chunks_mut(together));
        for ((x, y), (mean, variance)) in rows.zip(moments) {
            // SAFETY: inside `enter`.
            unsafe {
                if together > 1 {
                    moments_together::<T, L>(n, x, &mut lanes, mean, variance);
                } else {
                    let mut m = [0.0; 2];
                    add_moments::<T, L>(x, 0.0, &mut m);
                    (mean[0], variance[0]) = (m[0], m[1] / n as f64);
                }
                let mut inverse = [0.0; SIDE];
                for i in 0..mean.len() {
                    inverse[i] = 1.0 / (variance[i] + self.eps).sqrt();
                }
                for (i, (x, y)) in x.chunks_exact(n).zip(y.chunks_exact_mut(n)).enumerate() {
                    normalized::<T, L>(normalizing(mean[i], inverse[i]), x, self.gamma, self.beta, y);
                }
            }
        }
    }
}

/// Mean and variance of rows of `n` elements.
///
/// # Safety
/// Inside `enter`; not more rows than a vector has lanes.
#[inline(always)]
unsafe fn moments_together<T: Real, L: Lanes<T>>(
    n: usize,
    x: &[T],
    lanes: &mut [[T; SIDE * SIDE]; 2],
    mean: &mut [f64],
    variance: &mut [f64],
) {
    let size = n as f64;
    // SAFETY: the caller's promise; there is room for a vector of each row.
    unsafe {
        for (i, x) in x.chunks_exact(n).enumerate() {
            let mut sum = VectorAccumulator::new::<T, L>();
            vector_sums::add::<T, L>(x, &mut sum);
            L::store(lanes[0].as_mut_ptr().add(i * L::N), sum.lanes::<T, L>());
        }
        let mut rounded = vector_sums::totals::<T, L>(&lanes[0]);
        rounded.iter_mut().for_each(|sum| *sum = T::from_f64(sum.to_f64() / size));
        for (i, x) in x.chunks_exact(n).enumerate() {
            let (mut rest, mut squares) = (VectorAccumulator::new::<T, L>(), VectorAccumulator::new::<T, L>());
            vector_sums::deviate::<T, L>(x, rounded[i], &mut rest, &mut squares);
            L::store(lanes[0].as_mut_ptr().add(i * L::N), rest.lanes::<T, L>());
            L::store(lanes[1].as_mut_ptr().add(i * L::N), squares.lanes::<T, L>());
        }
        let (rest, squares) = (vector_sums::totals::<T, L>(&lanes[0]), vector_sums::totals::<T, L>(&lanes[1]));
        for i in 0..mean.len() {
            let rest = rest[i].to_f64();
            mean[i] = rounded[i].to_f64() + rest / size;
            variance[i] = (squares[i].to_f64() - rest * rest / size) / size;
        }
    }
    for (i, x) in x.chunks_exact(n).enumerate() {
        if !variance[i].is_finite() {
            let [m, deviation] = wide_moments(x.iter().copied());
            (mean[i], variance[i]) = (m, deviation / size);
        }
    }
}

/// `((x - minus) * times + rest) * gamma + beta`
///
/// # Safety
/// Inside `enter`.
#[inline(always)]
unsafe fn normalized<T: Real, L: Lanes<T>>(by: [T; 3], x: &[T], gamma: &[T], beta: &[T], y: &mut [T]) {
    let n = x.len();
    let (px, py, gamma, beta) = (x.as_ptr(), y[..n].as_mut_ptr(), gamma[..n].as_ptr(), beta[..n].as_ptr());
    // SAFETY: all vectors lie within the rows.
    unsafe {
        let (one, minus, times, rest) = (L::splat(T::ONE), L::splat(-by[0]), L::splat(by[1]), L::splat(by[2]));
        for j in (0..n - n % L::N).step_by(L::N) {
            let v = L::fma(L::fma(L::load(px.add(j)), one, minus), times, rest);
            L::store(py.add(j), L::fma(v, L::load(gamma.add(j)), L::load(beta.add(j))));
        }
        let (j, m) = (n - n % L::N, L::mask(0, n % L::N));
        if j < n {
            let v = L::fma(L::fma(L::load_masked(px.add(j), m), one, minus), times, rest);
            let v = L::fma(v, L::load_masked(gamma.add(j), m), L::load_masked(beta.add(j), m));
            L::store_masked(py.add(j), m, v);
        }
    }
}
