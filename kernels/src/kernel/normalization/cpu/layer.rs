//! Normalization of rows whose elements have a scale and a shift each: layer normalization.

// Loops run over many arrays side by side.
#![allow(clippy::needless_range_loop)]

use super::rows::add_moments;
use super::turned::backward_factors;
use super::{BLOCK, InputGradient, Moments, Output, SendPtr, UNIT};
use crate::array::scratch::{Scratch, list};
use crate::dtype::Real;
use crate::kernel::short_rows::group_count;
use crate::kernel::vector_sums::{self, SIDE, VectorAccumulator};
use crate::pool;
use crate::simd::lanes::{Choose, Lanes, WithLanes, dispatch};
use crate::simd::{self, SimdReal};
use std::ops::Range;

/// An array of rows, each of which is normalized by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerRows {
    pub rows: usize,
    pub width: usize,
}

/// What the gradients are made of.
#[derive(Clone, Copy, Debug)]
pub struct LayerBackward<'a, T> {
    pub gy: &'a [T],
    pub x: &'a [T],
    /// For each row.
    pub mean: &'a [f64],
    /// For each row: `1 / sqrt(variance + eps)`.
    pub inverse: &'a [f64],
    /// For each element of a row.
    pub gamma: Option<&'a [T]>,
    /// Gradients of mean and variance themselves.
    pub gmean: Option<&'a [T]>,
    pub gvariance: Option<&'a [T]>,
}

/// Gradients to write or add to.
pub struct LayerGradients<'a, T> {
    pub x: Option<(&'a mut [T], Output)>,
    pub beta: Option<(&'a mut [T], Output)>,
    pub gamma: Option<(&'a mut [T], Output)>,
}

/// Elements of a row from which its gradients are found faster along the row.
const LONG: usize = 24;
/// Elements of rows whose sums are added up together, at most: all of them stay in the first cache.
const NARROW: usize = 64;
/// Tasks of the backward pass at most: each has sums of its own.
const PARTS: usize = 16;

impl LayerRows {
    fn size(&self) -> usize {
        self.rows * self.width
    }

    /// `y = (x - mean) / sqrt(variance + eps) * gamma + beta`; gives the moments of the rows.
    pub fn normalize<T: SimdReal>(
        &self,
        x: &[T],
        y: &mut [T],
        gamma: Option<&[T]>,
        beta: Option<&[T]>,
        eps: f64,
    ) -> Moments {
        let right = |s: Option<&[T]>| s.is_none_or(|s| s.len() == self.width);
        assert!(x.len() == self.size() && y.len() == x.len() && right(gamma) && right(beta), "sizes do not fit");
        let nan = || list(self.rows, f64::NAN);
        let mut m = Moments { mean: nan(), variance: nan() };
        if x.is_empty() {
            return m;
        }
        if self.are_short() {
            return self.normalize_turned(x, y, gamma, beta, eps);
        }
        let each = (UNIT / 2 / self.width).max(1);
        let (y, mean, variance) =
            (SendPtr(y.as_mut_ptr()), SendPtr(m.mean.as_mut_ptr()), SendPtr(m.variance.as_mut_ptr()));
        pool::run(self.rows.div_ceil(each), &|t| {
            let (first, n) = (t * each, each.min(self.rows - t * each));
            // SAFETY: each task has its own rows.
            let (y, mean, variance) = unsafe {
                (y.slice(first * self.width, n * self.width), mean.slice(first, n), variance.slice(first, n))
            };
            let x = &x[first * self.width..][..n * self.width];
            dispatch(LayerForwardPart { width: self.width, x, y, gamma, beta, eps, mean, variance });
        });
        m
    }

    /// The gradients of x, beta and gamma.
    pub fn backward<T: SimdReal>(&self, b: LayerBackward<T>, g: LayerGradients<T>) {
        assert!(b.gy.len() == self.size() && b.x.len() == self.size(), "sizes do not fit");
        assert!(g.x.as_ref().is_none_or(|g| g.0.len() == self.size()), "sizes do not fit");
        let width = self.width;
        let is_turned = self.are_short() && width < LONG;
        let parts = match is_turned {
            true => group_count(self.rows, width),
            false => (self.size() / UNIT).clamp(1, PARTS).min(self.rows.max(1)),
        };
        let sums = |on: bool| Scratch::filled(if on { parts * width } else { 0 }, T::ZERO);
        let (mut beta, mut gamma) = (sums(g.beta.is_some()), sums(g.gamma.is_some()));
        if is_turned {
            self.backward_turned(
                b,
                g.x,
                g.beta.as_ref().map(|_| &mut beta[..]),
                g.gamma.as_ref().map(|_| &mut gamma[..]),
            );
            deliver(g.beta, &beta);
            return deliver(g.gamma, &gamma);
        }
        let (pb, pg) = (SendPtr(beta.as_mut_ptr()), SendPtr(gamma.as_mut_ptr()));
        let (has_beta, has_gamma) = (g.beta.is_some(), g.gamma.is_some());
        let gx = g.x.map(|(gx, output)| (SendPtr(gx.as_mut_ptr()), output));
        pool::run(parts, &|p| {
            let (first, end) = (self.rows * p / parts, self.rows * (p + 1) / parts);
            // SAFETY: each part has its own sums and rows.
            unsafe {
                let beta = has_beta.then(|| pb.slice(p * width, width));
                let gamma = has_gamma.then(|| pg.slice(p * width, width));
                let gx = gx.map(|(gx, output)| (gx.slice(first * width, (end - first) * width), output));
                dispatch(LayerBackwardPart { width, first, rows: end - first, b: &b, gx, beta, gamma });
            }
        });
        deliver(g.beta, &beta);
        deliver(g.gamma, &gamma);
    }
}

/// Adds up the parts of a gradient.
fn deliver<T: SimdReal>(to: Option<(&mut [T], Output)>, parts: &[T]) {
    let Some((to, output)) = to.filter(|t| !t.0.is_empty()) else { return };
    if output == Output::Write {
        to.fill(T::ZERO);
    }
    parts.chunks_exact(to.len()).for_each(|p| simd::add_assign(to, p));
}

/// Some rows forward.
struct LayerForwardPart<'a, T> {
    width: usize,
    x: &'a [T],
    y: &'a mut [T],
    gamma: Option<&'a [T]>,
    beta: Option<&'a [T]>,
    eps: f64,
    mean: &'a mut [f64],
    variance: &'a mut [f64],
}

impl<T: Real> Choose<T> for LayerForwardPart<'_, T> {
    fn with<L: Lanes<T>>(self) {
        // SAFETY: the machine has these lanes.
        unsafe { L::enter(self) }
    }
}

impl<T: Real> WithLanes<T> for LayerForwardPart<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let n = self.width;
        for (i, (x, y)) in self.x.chunks_exact(n).zip(self.y.chunks_exact_mut(n)).enumerate() {
            let mut m = [0.0; 2];
            // SAFETY: inside `enter`.
            unsafe { add_moments::<T, L>(x, 0.0, &mut m) };
            (self.mean[i], self.variance[i]) = (m[0], m[1] / n as f64);
            let inverse = 1.0 / (self.variance[i] + self.eps).sqrt();
            let minus = T::from_f64(m[0]);
            let rest = T::from_f64((minus.to_f64() - m[0]) * inverse);
            let times = T::from_f64(inverse);
            match (self.gamma, self.beta) {
                (Some(g), Some(b)) => {
                    let (g, b) = (&g[..n], &b[..n]);
                    for j in 0..n {
                        y[j] = ((x[j] - minus) * times + rest) * g[j] + b[j];
                    }
                }
                (Some(g), None) => {
                    let g = &g[..n];
                    for j in 0..n {
                        y[j] = ((x[j] - minus) * times + rest) * g[j];
                    }
                }
                (None, Some(b)) => {
                    let b = &b[..n];
                    for j in 0..n {
                        y[j] = ((x[j] - minus) * times + rest) + b[j];
                    }
                }
                (None, None) => {
                    for j in 0..n {
                        y[j] = (x[j] - minus) * times + rest;
                    }
                }
            }
        }
    }
}

/// Some rows backward.
struct LayerBackwardPart<'a, T> {
    width: usize,
    first: usize,
    rows: usize,
    b: &'a LayerBackward<'a, T>,
    gx: Option<(&'a mut [T], Output)>,
    beta: Option<&'a mut [T]>,
    gamma: Option<&'a mut [T]>,
}

impl<T: Real> Choose<T> for LayerBackwardPart<'_, T> {
    fn with<L: Lanes<T>>(self) {
        // SAFETY: the machine has these lanes.
        unsafe { L::enter(self) }
    }
}

impl<T: Real> WithLanes<T> for LayerBackwardPart<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(mut self) {
        let n = self.width;
        let together = if n <= NARROW { L::N } else { 1 };
        // gy * gamma.
        let mut g = Scratch::filled(if self.b.gamma.is_some() { together * n } else { 0 }, T::ZERO);
        let mut lanes = [[T::ZERO; SIDE * SIDE]; 2];
        for first in (0..self.rows).step_by(together) {
            let rows = first..self.rows.min(first + together);
            for (i, r) in rows.clone().enumerate() {
                self.add_to_sums(r);
                let (gy, x) = self.row(r);
                if let Some(gamma) = self.b.gamma {
                    let (g, gamma) = (&mut g[i * n..][..n], &gamma[..n]);
                    for j in 0..n {
                        g[j] = gy[j] * gamma[j];
                    }
                }
                if together > 1 {
                    let g = if self.b.gamma.is_some() { &g[i * n..][..n] } else { gy };
                    // SAFETY: inside `enter`; there is room for a vector of each row.
                    unsafe {
                        let (mut s, mut p) = (VectorAccumulator::new::<T, L>(), VectorAccumulator::new::<T, L>());
                        let (minus, _, _) = self.b.row(self.first + r);
                        vector_sums::multiply::<T, L>(g, x, minus, &mut s, &mut p);
                        L::store(lanes[0].as_mut_ptr().add(i * L::N), s.lanes::<T, L>());
                        L::store(lanes[1].as_mut_ptr().add(i * L::N), p.lanes::<T, L>());
                    }
                }
            }
            if self.gx.is_none() {
                continue;
            }
            let mut sums = [[0.0; SIDE]; 2];
            if together > 1 {
                for (sums, lanes) in sums.iter_mut().zip(&lanes) {
                    // SAFETY: inside `enter`.
                    let totals = unsafe { vector_sums::totals::<T, L>(lanes) };
                    for i in 0..SIDE {
                        sums[i] = totals[i].to_f64();
                    }
                }
            } else {
                let (gy, x) = self.row(first);
                let g = if self.b.gamma.is_some() { &g[..n] } else { gy };
                // SAFETY: inside `enter`.
                (sums[0][0], sums[1][0]) = unsafe { self.b.sums::<L>(self.first + first, g, x) };
            }
            let by = self.b.factors(self.first + first..self.first + rows.end, &sums, n as f64);
            for (i, r) in rows.enumerate() {
                let (gy, x) = self.row(r);
                let g = if self.b.gamma.is_some() { &g[i * n..][..n] } else { gy };
                if let Some((gx, output)) = &mut self.gx {
                    // SAFETY: inside `enter`.
                    unsafe { gradient::<T, L>(by.map(|by| by[i]), g, x, &mut gx[r * n..][..n], *output) };
                }
            }
        }
    }
}

impl<'a, T: Real> LayerBackwardPart<'a, T> {
    /// The part's row `r` of gy and x.
    #[inline(always)]
    fn row(&self, r: usize) -> (&'a [T], &'a [T]) {
        let at = (self.first + r) * self.width..(self.first + r + 1) * self.width;
        (&self.b.gy[at.clone()], &self.b.x[at])
    }

    /// What row `r` gives to the gradients of beta and gamma.
    #[inline(always)]
    fn add_to_sums(&mut self, r: usize) {
        let (n, (gy, x)) = (self.width, self.row(r));
        if let Some(beta) = &mut self.beta {
            let beta = &mut beta[..n];
            for j in 0..n {
                beta[j] += gy[j];
            }
        }
        if let Some(gamma) = &mut self.gamma {
            let (minus, times, rest) = self.b.row(self.first + r);
            let gamma = &mut gamma[..n];
            for j in 0..n {
                gamma[j] += gy[j] * ((x[j] - minus) * times + rest);
            }
        }
    }
}

impl<'a, T: Real> LayerBackward<'a, T> {
    /// The numbers that normalize a row: `(x - .0) * .1 + .2`; the last is what rounding takes from the mean.
    #[inline(always)]
    pub(super) fn row(&self, i: usize) -> (T, T, T) {
        let (mean, inverse) = (self.mean[i], self.inverse[i]);
        let minus = T::from_f64(mean);
        (minus, T::from_f64(inverse), T::from_f64((minus.to_f64() - mean) * inverse))
    }

    /// The sums of row `i` of the gradient of the normalized numbers, and of it times x without its rounded mean.
    #[inline(always)]
    unsafe fn sums<L: Lanes<T>>(&self, i: usize, g: &[T], x: &[T]) -> (f64, f64) {
        let (n, minus) = (x.len(), T::from_f64(self.mean[i]));
        let mut sums = (0.0, 0.0);
        for from in (0..n).step_by(BLOCK) {
            let at = from..n.min(from + BLOCK);
            // SAFETY: the caller is inside `enter`.
            unsafe {
                let (mut s, mut p) = (VectorAccumulator::new::<T, L>(), VectorAccumulator::new::<T, L>());
                vector_sums::multiply::<T, L>(&g[at.clone()], &x[at], minus, &mut s, &mut p);
                sums.0 += s.total::<T, L>().to_f64();
                sums.1 += p.total::<T, L>().to_f64();
            }
        }
        sums
    }

    /// What the gradients of some rows are made by: those of x are `g * times + ((x - minus) * by_x + plus)`, in the order minus, times,
    /// by_x, plus. `sums`: those that `sums` gives, of each row.
    #[inline(always)]
    fn factors(&self, rows: Range<usize>, sums: &[[f64; SIDE]; 2], n: f64) -> [[T; SIDE]; 4] {
        let [sum, mut product] = *sums;
        let (count, mean) = (rows.len(), &self.mean[rows.clone()]);
        let mut by = [[T::ZERO; SIDE]; 4];
        let [minus, times, by_x, plus] = by.each_mut().map(|each| &mut each[..count]);
        for i in 0..count {
            minus[i] = T::from_f64(mean[i]);
            product[i] -= (mean[i] - minus[i].to_f64()) * sum[i];
        }
        let some = |list: Option<&'a [T]>| list.map(|list| &list[rows.clone()]);
        let (inverse, gmean, gvariance) = (&self.inverse[rows.clone()], some(self.gmean), some(self.gvariance));
        let b = InputGradient { gy: None, x: None, mean, inverse, gamma: None, gmean, gvariance, own: true };
        backward_factors::<T, SIDE>(n, &b, minus, [&sum, &product], times, by_x, plus);
        by
    }
}

/// The gradient of a row of x from that of the normalized numbers, by its factors.
///
/// # Safety
/// Inside `enter` of L.
#[inline(always)]
unsafe fn gradient<T: Real, L: Lanes<T>>(
    [minus, times, by_x, plus]: [T; 4],
    g: &[T],
    x: &[T],
    gx: &mut [T],
    output: Output,
) {
    let n = x.len();
    let (g, x, gx) = (g[..n].as_ptr(), x.as_ptr(), gx[..n].as_mut_ptr());
    // SAFETY: all vectors lie within the rows.
    unsafe {
        let (times, by_x, plus) = (L::splat(times), L::splat(by_x), L::splat(plus));
        let (one, minus) = (L::splat(T::ONE), L::splat(-minus));
        for j in (0..n).step_by(L::N) {
            let (g, x, gx) = (g.add(j), x.add(j), gx.add(j));
            let add = output == Output::Accumulate;
            if j + L::N <= n {
                let v = L::fma(L::fma(L::load(x), one, minus), by_x, plus);
                let before = if add { L::fma(L::load(gx), one, v) } else { v };
                L::store(gx, L::fma(L::load(g), times, before));
            } else {
                let m = L::mask(0, n - j);
                let v = L::fma(L::fma(L::load_masked(x, m), one, minus), by_x, plus);
                let before = if add { L::fma(L::load_masked(gx, m), one, v) } else { v };
                L::store_masked(gx, m, L::fma(L::load_masked(g, m), times, before));
            }
        }
    }
}
