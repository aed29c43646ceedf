//! The gradients of rows.

use super::super::turned::backward_factors;
use super::super::{BLOCK, InputGradient};
use super::{LayerBackward, Output, together};
use crate::dtype::Real;
use crate::kernel::vector_sums::{self, SIDE, VectorAccumulator};
use crate::simd::lanes::{Lanes, WithLanes};
use std::ops::Range;

/// Some rows backward.
pub(super) struct LayerBackwardPart<'a, T> {
    pub width: usize,
    pub first: usize,
    pub rows: usize,
    pub b: &'a LayerBackward<'a, T>,
    /// What gy is multiplied by.
    pub scale: &'a [T],
    pub gx: Option<(&'a mut [T], Output)>,
    pub beta: Option<&'a mut [T]>,
    pub gamma: Option<&'a mut [T]>,
}

impl<T: Real> WithLanes<T> for LayerBackwardPart<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(mut self) {
        let (n, scale) = (self.width, self.scale);
        let together = together::<T, L>(n);
        let mut lanes = [[T::ZERO; SIDE * SIDE]; 2];
        for first in (0..self.rows).step_by(together) {
            let rows = first..self.rows.min(first + together);
            if self.gx.is_none() {
                // SAFETY: inside `enter`.
                unsafe { self.add_to_sums::<L>(rows) };
                continue;
            }
            let mut sums = [[0.0; SIDE]; 2];
            if together > 1 {
                for (i, r) in rows.clone().enumerate() {
                    let ((gy, x), minus) = (self.row(r), self.b.row(self.first + r)[0]);
                    // SAFETY: inside `enter`; there is room for a vector of each row.
                    unsafe {
                        let (mut s, mut p) = (VectorAccumulator::new::<T, L>(), VectorAccumulator::new::<T, L>());
                        vector_sums::multiply::<T, L>(gy, Some(scale), x, minus, &mut s, &mut p);
                        L::store(lanes[0].as_mut_ptr().add(i * L::N), s.lanes::<T, L>());
                        L::store(lanes[1].as_mut_ptr().add(i * L::N), p.lanes::<T, L>());
                    }
                }
                for (sums, lanes) in sums.iter_mut().zip(&lanes) {
                    // SAFETY: inside `enter`.
                    let totals = unsafe { vector_sums::totals::<T, L>(lanes) };
                    for i in 0..SIDE {
                        sums[i] = totals[i].to_f64();
                    }
                }
            } else {
                let (gy, x) = self.row(first);
                // SAFETY: inside `enter`.
                (sums[0][0], sums[1][0]) = unsafe { self.b.sums::<L>(self.first + first, gy, scale, x) };
            }
            // The rows are in the cache now. SAFETY: inside `enter`.
            unsafe { self.add_to_sums::<L>(rows.clone()) };
            let all = self.first + rows.start..self.first + rows.end;
            let by = self.b.factors(all.clone(), &sums, n as f64);
            let [gy, x] = [self.b.gy, self.b.x].map(|of| &of[all.start * n..all.end * n]);
            if let Some((gx, output)) = &mut self.gx {
                let gx = &mut gx[rows.start * n..rows.end * n];
                // SAFETY: inside `enter`.
                unsafe { gradients::<T, L>(&by, [gy, x], scale, gx, *output) };
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

    /// What rows give to the gradients of beta and gamma.
    ///
    /// # Safety
    /// Inside `enter`; not more rows than a vector has lanes.
    #[inline(always)]
    unsafe fn add_to_sums<L: Lanes<T>>(&mut self, rows: Range<usize>) {
        let (n, count) = (self.width, rows.len());
        if self.beta.is_none() && self.gamma.is_none() {
            return;
        }
        let mut by = [[T::ZERO; 3]; SIDE];
        for (by, r) in by.iter_mut().zip(rows.clone()) {
            *by = self.b.row(self.first + r);
        }
        let at = (self.first + rows.start) * n;
        let (gy, x) = (self.b.gy[at..][..count * n].as_ptr(), self.b.x[at..][..count * n].as_ptr());
        // SAFETY: inside `enter`; all vectors lie within the rows.
        unsafe {
            let (one, zero) = (L::splat(T::ONE), L::splat(T::ZERO));
            for j in (0..n).step_by(L::N) {
                let (mut beta, mut gamma) = (zero, zero);
                let (is_whole, m) = (j + L::N <= n, L::mask(0, (n - j).min(L::N)));
                for (i, by) in by[..count].iter().enumerate() {
                    let (gy, x) = (gy.add(i * n + j), x.add(i * n + j));
                    let (gy, x) = match is_whole {
                        true => (L::load(gy), L::load(x)),
                        false => (L::load_masked(gy, m), L::load_masked(x, m)),
                    };
                    let v = L::fma(L::fma(x, one, L::splat(-by[0])), L::splat(by[1]), L::splat(by[2]));
                    beta = L::fma(gy, one, beta);
                    gamma = L::fma(gy, v, gamma);
                }
                for (to, sum) in [(&mut self.beta, beta), (&mut self.gamma, gamma)] {
                    let Some(to) = to.as_mut().map(|to| to[j..n].as_mut_ptr()) else { continue };
                    match is_whole {
                        true => L::store(to, L::fma(L::load(to), one, sum)),
                        false => L::store_masked(to, m, L::fma(L::load_masked(to, m), one, sum)),
                    }
                }
            }
        }
    }
}

impl<'a, T: Real> LayerBackward<'a, T> {
    /// The sums of row `i` of the gradient of the normalized numbers, and of it times x without its rounded mean.
    #[inline(always)]
    unsafe fn sums<L: Lanes<T>>(&self, i: usize, gy: &[T], scale: &[T], x: &[T]) -> (f64, f64) {
        let (n, minus) = (x.len(), T::from_f64(self.mean[i]));
        let mut sums = (0.0, 0.0);
        for from in (0..n).step_by(BLOCK) {
            let at = from..n.min(from + BLOCK);
            // SAFETY: the caller is inside `enter`.
            unsafe {
                let (mut s, mut p) = (VectorAccumulator::new::<T, L>(), VectorAccumulator::new::<T, L>());
                let (gy, scale) = (&gy[at.clone()], &scale[at.clone()]);
                vector_sums::multiply::<T, L>(gy, Some(scale), &x[at], minus, &mut s, &mut p);
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

/// The gradients of some rows of x from those of the normalized numbers, by their factors.
///
/// # Safety
/// Inside `enter` of L.
#[inline(always)]
unsafe fn gradients<T: Real, L: Lanes<T>>(
    [minus, times, by_x, plus]: &[[T; SIDE]; 4],
    [gy, x]: [&[T]; 2],
    scale: &[T],
    gx: &mut [T],
    output: Output,
) {
    let (n, size, add) = (scale.len(), gx.len(), output == Output::Accumulate);
    let (gy, x, scale, gx) = (gy[..size].as_ptr(), x[..size].as_ptr(), scale.as_ptr(), gx.as_mut_ptr());
    // SAFETY: inside `enter`.
    let (whole, m) = (n - n % L::N, unsafe { L::mask(0, n % L::N) });
    for i in 0..(size / n).min(SIDE) {
        // SAFETY: all vectors lie within row i.
        unsafe {
            let (gy, x, gx) = (gy.add(i * n), x.add(i * n), gx.add(i * n));
            let (one, zero) = (L::splat(T::ONE), L::splat(T::ZERO));
            let [minus, times] = [L::splat(-minus[i]), L::splat(times[i])];
            let [by_x, plus] = [L::splat(by_x[i]), L::splat(plus[i])];
            for j in (0..whole).step_by(L::N) {
                let v = L::fma(L::fma(L::load(x.add(j)), one, minus), by_x, plus);
                let before = if add { L::fma(L::load(gx.add(j)), one, v) } else { v };
                let g = L::fma(L::load(gy.add(j)), L::load(scale.add(j)), zero);
                L::store(gx.add(j), L::fma(g, times, before));
            }
            if whole < n {
                let j = whole;
                let v = L::fma(L::fma(L::load_masked(x.add(j), m), one, minus), by_x, plus);
                let before = if add { L::fma(L::load_masked(gx.add(j), m), one, v) } else { v };
                let g = L::fma(L::load_masked(gy.add(j), m), L::load_masked(scale.add(j), m), zero);
                L::store_masked(gx.add(j), m, L::fma(g, times, before));
            }
        }
    }
}
