//! Along the last axis: each row is contiguous. Work goes in pieces that stay in the first cache, so that several plain
//! vector loops cost little more than one.

use crate::array::Output;
use crate::expr::op::{Binary, Unary};
use crate::simd::lanes::{Choose, Lanes, WithLanes, dispatch};
use crate::simd::{self, SimdReal};

const PIECE: usize = 1024;

pub(super) fn softmax<T: SimdReal>(x: &[T], y: &mut [T]) {
    let sum = simd::exp_sum(y, x, simd::max(x));
    simd::scale(y, T::ONE / sum);
}

pub(super) fn log_softmax<T: SimdReal>(x: &[T], y: &mut [T]) {
    let max = simd::max(x);
    let log = simd::exp_sum(y, x, max).ln();
    for (y, x) in y.chunks_mut(PIECE).zip(x.chunks(PIECE)) {
        y.copy_from_slice(x);
        simd::add_scalar(y, -max);
        // Not both at once: max + log would round where the maximum is large.
        simd::add_scalar(y, -log);
    }
}

pub(super) fn softmax_backward<T: SimdReal>(y: &[T], gy: &[T], gx: &mut [T], output: Output) {
    let (mean, n) = (simd::dot(y, gy), gx.len());
    dispatch(FromMean { y: &y[..n], gy: &gy[..n], gx, mean, add: output == Output::Accumulate });
}

/// `gx = y (gy - mean)`, or what is added.
struct FromMean<'a, T> {
    y: &'a [T],
    gy: &'a [T],
    gx: &'a mut [T],
    mean: T,
    add: bool,
}

impl<T: SimdReal> Choose<T> for FromMean<'_, T> {
    fn with<L: Lanes<T>>(self) {
        // SAFETY: L is what the machine has.
        unsafe { L::enter(self) }
    }
}

impl<T: SimdReal> WithLanes<T> for FromMean<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let mean = self.mean;
        if self.add {
            for ((gx, &gy), &y) in self.gx.iter_mut().zip(self.gy).zip(self.y) {
                *gx += (gy - mean) * y;
            }
            return;
        }
        for ((gx, &gy), &y) in self.gx.iter_mut().zip(self.gy).zip(self.y) {
            *gx = (gy - mean) * y;
        }
    }
}

/// As `softmax_backward`, with `gy` in the place of `gx`.
pub(super) fn softmax_over<T: SimdReal>(y: &[T], g: &mut [T]) {
    let mean = simd::dot(y, g);
    for (g, y) in g.chunks_mut(PIECE).zip(y.chunks(PIECE)) {
        simd::add_scalar(g, -mean);
        super::update(Binary::Mul, g, y);
    }
}

/// As `log_softmax_backward`, with `gy` in the place of `gx`.
pub(super) fn log_softmax_over<T: SimdReal>(y: &[T], g: &mut [T]) {
    let sum = simd::sum(g);
    let mut part = [T::ZERO; PIECE];
    for (g, y) in g.chunks_mut(PIECE).zip(y.chunks(PIECE)) {
        let part = &mut part[..y.len()];
        super::map(Unary::Exp, part, y);
        simd::scale(part, -sum);
        simd::add_assign(g, part);
    }
}

pub(super) fn log_softmax_backward<T: SimdReal>(y: &[T], gy: &[T], gx: &mut [T]) {
    let sum = simd::sum(gy);
    for (gx, (y, gy)) in gx.chunks_mut(PIECE).zip(y.chunks(PIECE).zip(gy.chunks(PIECE))) {
        super::map(Unary::Exp, gx, y);
        simd::scale(gx, -sum);
        simd::add_assign(gx, gy);
    }
}

pub(super) fn cross_entropy<T: SimdReal>(x: &[T], label: i64) -> T {
    if label < 0 {
        return T::ZERO;
    }
    let max = simd::max(x);
    simd::sum_exp(x, max).ln() - (x[label as usize] - max)
}

/// As `cross_entropy`; keeps `exp(x - max)`, and gives the sum too.
pub(super) fn cross_entropy_keeping<T: SimdReal>(x: &[T], label: i64, terms: &mut [T]) -> (T, T) {
    if label < 0 {
        return (T::ZERO, T::ONE);
    }
    let max = simd::max(x);
    let sum = simd::exp_sum(terms, x, max);
    (sum.ln() - (x[label as usize] - max), sum)
}

pub(super) fn cross_entropy_backward<T: SimdReal>(terms: &[T], sum: T, label: i64, gy: T, gx: &mut [T]) {
    if label < 0 {
        return gx.fill(T::ZERO);
    }
    let factor = gy / sum;
    for (gx, terms) in gx.chunks_mut(PIECE).zip(terms.chunks(PIECE)) {
        gx.copy_from_slice(terms);
        simd::scale(gx, factor);
    }
    let gx = &mut gx[label as usize];
    *gx = *gx - gy;
}
