//! Normalization of rows whose elements have a scale and a shift each: layer normalization.

// Loops run over many arrays side by side.
#![allow(clippy::needless_range_loop)]

mod backward;
mod forward;

use super::{Moments, Output, SendPtr, UNIT};
use crate::array::scratch::{Scratch, list};
use crate::dtype::Real;
use crate::kernel::short_rows::group_count;
use crate::pool;
use crate::simd::lanes::{Lanes, enter};
use crate::simd::{self, SimdReal};
use backward::LayerBackwardPart;
use forward::LayerForwardPart;

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

impl<T: Real> LayerBackward<'_, T> {
    /// As [`normalizing`], of a row.
    #[inline(always)]
    pub(super) fn row(&self, i: usize) -> [T; 3] {
        normalizing(self.mean[i], self.inverse[i])
    }
}

/// The numbers that normalize a row, minus, times and rest: `(x - minus) * times + rest`; the last is what rounding takes from the mean.
#[inline(always)]
fn normalizing<T: Real>(mean: f64, inverse: f64) -> [T; 3] {
    let minus = T::from_f64(mean);
    [minus, T::from_f64(inverse), T::from_f64((minus.to_f64() - mean) * inverse)]
}

/// Gradients to write or add to.
pub struct LayerGradients<'a, T> {
    pub x: Option<(&'a mut [T], Output)>,
    pub beta: Option<(&'a mut [T], Output)>,
    pub gamma: Option<(&'a mut [T], Output)>,
}

/// Elements of a row from which its gradients are found faster along the row.
const LONG: usize = 24;
/// Elements of rows whose sums are added up together, at most: all of them stay in the second cache.
const WIDE: usize = 1024;
/// Tasks of the backward pass at most: each has sums of its own.
const PARTS: usize = 16;

impl LayerRows {
    fn size(&self) -> usize {
        self.rows * self.width
    }

    /// A number for each element of a row, if they are wanted.
    fn all<T: Real>(&self, value: T, wanted: bool) -> Scratch<T> {
        Scratch::filled(if wanted { self.width } else { 0 }, value)
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
        let (ones, zeros) = (self.all(T::ONE, gamma.is_none()), self.all(T::ZERO, beta.is_none()));
        let (gamma, beta) = (gamma.unwrap_or(&ones), beta.unwrap_or(&zeros));
        pool::run(self.rows.div_ceil(each), &|t| {
            let (first, n) = (t * each, each.min(self.rows - t * each));
            // SAFETY: each task has its own rows.
            let (y, mean, variance) = unsafe {
                (y.slice(first * self.width, n * self.width), mean.slice(first, n), variance.slice(first, n))
            };
            let x = &x[first * self.width..][..n * self.width];
            // SAFETY: the slices are as long as the job says.
            unsafe { enter(LayerForwardPart { width: self.width, x, y, gamma, beta, eps, mean, variance }) };
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
        let ones = self.all(T::ONE, b.gamma.is_none());
        let scale = b.gamma.unwrap_or(&ones);
        pool::run(parts, &|p| {
            let (first, end) = (self.rows * p / parts, self.rows * (p + 1) / parts);
            // SAFETY: each part has its own sums and rows.
            unsafe {
                let beta = has_beta.then(|| pb.slice(p * width, width));
                let gamma = has_gamma.then(|| pg.slice(p * width, width));
                let gx = gx.map(|(gx, output)| (gx.slice(first * width, (end - first) * width), output));
                enter(LayerBackwardPart { width, first, rows: end - first, b: &b, scale, gx, beta, gamma });
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

/// Rows of `n` elements that are gone through side by side.
#[inline(always)]
fn together<T: Real, L: Lanes<T>>(n: usize) -> usize {
    if n <= WIDE { L::N } else { 1 }
}
