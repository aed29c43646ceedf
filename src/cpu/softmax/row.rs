//! Along the last axis: each row is contiguous.

use crate::cpu::simd::{self, SimdReal};

pub(super) fn softmax<T: SimdReal>(x: &[T], y: &mut [T]) {
    let sum = simd::exp_sum(y, x, simd::max(x));
    simd::scale(y, T::ONE / sum);
}

pub(super) fn log_softmax<T: SimdReal>(x: &[T], y: &mut [T]) {
    let max = simd::max(x);
    let log = simd::sum_exp(x, max).ln();
    // Not max + log first: that would round twice where the maximum is large.
    y.iter_mut().zip(x).for_each(|(y, &x)| *y = (x - max) - log);
}

pub(super) fn softmax_backward<T: SimdReal>(y: &[T], gy: &[T], gx: &mut [T]) {
    let mean = simd::dot(y, gy);
    gx.iter_mut().zip(y.iter().zip(gy)).for_each(|(gx, (&y, &gy))| *gx = y * (gy - mean));
}

pub(super) fn log_softmax_backward<T: SimdReal>(y: &[T], gy: &[T], gx: &mut [T]) {
    let sum = simd::sum(gy);
    simd::exp_sum(gx, y, T::ZERO);
    gx.iter_mut().zip(gy).for_each(|(gx, &gy)| *gx = gy - *gx * sum);
}

pub(super) fn cross_entropy<T: SimdReal>(x: &[T], label: i64) -> T {
    if label < 0 {
        return T::ZERO;
    }
    let max = simd::max(x);
    simd::sum_exp(x, max).ln() - (x[label as usize] - max)
}

pub(super) fn cross_entropy_backward<T: SimdReal>(x: &[T], label: i64, gy: T, gx: &mut [T]) {
    if label < 0 {
        return gx.fill(T::ZERO);
    }
    let sum = simd::exp_sum(gx, x, simd::max(x));
    simd::scale(gx, gy / sum);
    let gx = &mut gx[label as usize];
    *gx = *gx - gy;
}
