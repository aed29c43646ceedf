//! Along the last axis: each row is contiguous. Work goes in pieces that stay in the first cache, so that several plain
//! vector loops cost little more than one.

use crate::array::Output;
use crate::expr::op::{Binary, Unary};
use crate::kernel::vector_sums::{self, SIDE, VectorAccumulator};
use crate::simd::lanes::{Lanes, WithLanes, enter};
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

/// Of rows of `n` elements.
pub(super) fn softmax_backward<T: SimdReal>(n: usize, y: &[T], gy: &[T], gx: &mut [T], output: Output) {
    // SAFETY: the slices are as long as the job says.
    unsafe {
        enter(SoftmaxGradients { n, y: &y[..gx.len()], gy: &gy[..gx.len()], gx, add: output == Output::Accumulate })
    };
}

/// `gx = y (gy - sum(y gy))` of rows of `n` elements, or what is added.
struct SoftmaxGradients<'a, T> {
    n: usize,
    y: &'a [T],
    gy: &'a [T],
    gx: &'a mut [T],
    add: bool,
}

impl<T: SimdReal> WithLanes<T> for SoftmaxGradients<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let (n, rows) = (self.n, self.n * L::N);
        for ((y, gy), gx) in self.y.chunks(rows).zip(self.gy.chunks(rows)).zip(self.gx.chunks_mut(rows)) {
            let pairs = y.chunks_exact(n).zip(gy.chunks_exact(n));
            // SAFETY: inside `enter`; there are at most so many rows.
            let means = unsafe { dots::<T, L>(pairs.clone()) };
            for (((y, gy), gx), mean) in pairs.zip(gx.chunks_exact_mut(n)).zip(means) {
                // SAFETY: inside `enter`.
                unsafe { gradient::<T, L>(y, gy, gx, mean, self.add) };
            }
        }
    }
}

/// `gx = y (gy - mean)`, or what is added.
#[inline(always)]
unsafe fn gradient<T: SimdReal, L: Lanes<T>>(y: &[T], gy: &[T], gx: &mut [T], mean: T, add: bool) {
    let n = gx.len();
    let (y, gy, gx, whole) = (y.as_ptr(), gy.as_ptr(), gx.as_mut_ptr(), n - n % L::N);
    // SAFETY: the caller is inside `enter`; all vectors lie within the row.
    unsafe {
        let (minus, one, zero) = (L::splat(-mean), L::splat(T::ONE), L::splat(T::ZERO));
        for i in (0..whole).step_by(L::N) {
            let before = if add { L::load(gx.add(i)) } else { zero };
            let rest = L::fma(L::load(gy.add(i)), one, minus);
            L::store(gx.add(i), L::fma(rest, L::load(y.add(i)), before));
        }
        if whole < n {
            let (y, gy, gx, last) = (y.add(whole), gy.add(whole), gx.add(whole), L::mask(0, n - whole));
            let before = if add { L::load_masked(gx, last) } else { zero };
            let rest = L::fma(L::load_masked(gy, last), one, minus);
            L::store_masked(gx, last, L::fma(rest, L::load_masked(y, last), before));
        }
    }
}

/// The sums of the products of pairs of rows, of as many as a vector has numbers at most.
#[inline(always)]
unsafe fn dots<'a, T: SimdReal, L: Lanes<T>>(rows: impl Iterator<Item = (&'a [T], &'a [T])>) -> [T; SIDE] {
    let mut lanes = [T::ZERO; SIDE * SIDE];
    // SAFETY: the caller is inside `enter`; the array has room for a vector of as many rows.
    unsafe {
        for (r, (y, gy)) in rows.enumerate() {
            if y.len() > PIECE {
                // In blocks, which lose less.
                lanes[r * L::N] = simd::dot(y, gy);
                continue;
            }
            let mut sum = VectorAccumulator::new::<T, L>();
            vector_sums::dot::<T, L>(y, gy, &mut sum);
            L::store(lanes.as_mut_ptr().add(r * L::N), sum.lanes::<T, L>());
        }
        vector_sums::totals::<T, L>(&lanes)
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
