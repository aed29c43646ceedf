//! Channels whose elements are long rows: vectors run along the row.

// Loops run over many arrays side by side.
#![allow(clippy::needless_range_loop)]

use super::{BLOCK, ChannelPair, ChannelTile, ChannelWork, Channels, Coefficients, merge_moments, wide_moments};
use crate::array::Output;
use crate::dtype::Real;
use crate::finish;
use crate::kernel::vector_sums::{self, VectorAccumulator};
use crate::pool::tasks::SendPtr;
use crate::simd::lanes::Lanes;
use std::ops::Range;

/// # Safety
/// Inside `enter`; the unit lies within the slices of the work.
#[inline(always)]
pub(super) unsafe fn run<T: Real, L: Lanes<T>>(c: &Channels, unit: &ChannelTile, work: ChannelWork<T>) {
    // SAFETY: the caller's promise.
    unsafe {
        match work {
            ChannelWork::Moments { x, out } => {
                for (i, total) in out.iter_mut().enumerate() {
                    moments::<T, L>(&Strip::new(c, unit, i), x, total);
                }
            }
            ChannelWork::Sums { gy, x, mean, out } => {
                for (i, total) in out.iter_mut().enumerate() {
                    sums::<T, L>(&Strip::new(c, unit, i), gy, x, mean[i], total);
                }
            }
            ChannelWork::Map { a, x, y, output, by } => {
                for o in 0..unit.outer.len() {
                    for i in 0..unit.channels.len() {
                        let at = Strip::new(c, unit, i).row(o);
                        let y = y.slice(at.start, c.inner);
                        let x = x.map(|x| &x[at.clone()]);
                        match a {
                            Some(a) => map(&a[at], x, y, output, by, i),
                            None => map_over(x, y, by, i),
                        }
                    }
                }
            }
        }
    }
}

/// The rows of one channel of a unit.
struct Strip {
    first: usize,
    stride: usize,
    rows: usize,
    width: usize,
}

impl Strip {
    #[inline(always)]
    fn new(c: &Channels, unit: &ChannelTile, i: usize) -> Strip {
        let first = (unit.outer.start * c.channels + unit.channels.start + i) * c.inner;
        Strip { first, stride: c.channels * c.inner, rows: unit.outer.len(), width: c.inner }
    }

    #[inline(always)]
    fn row(&self, o: usize) -> Range<usize> {
        let at = self.first + o * self.stride;
        at..at + self.width
    }

    /// Rows that make a block.
    #[inline(always)]
    fn per_block(&self) -> usize {
        (BLOCK / self.width).max(1)
    }

    /// The block of rows that begins at `o`.
    #[inline(always)]
    fn block(&self, o: usize) -> Range<usize> {
        o..self.rows.min(o + self.per_block())
    }
}

/// Mean and squared deviation, in two passes over blocks of whole rows, or of a part of one row.
#[inline(always)]
unsafe fn moments<T: Real, L: Lanes<T>>(s: &Strip, x: &[T], total: &mut ChannelPair) {
    *total = [0.0; 2];
    for first in (0..s.rows).step_by(s.per_block()) {
        let before = (first * s.width) as f64;
        // SAFETY: the caller is inside `enter`.
        unsafe {
            if s.width > BLOCK {
                add_moments::<T, L>(&x[s.row(first)], before, total);
                continue;
            }
            let n = (s.block(first).len() * s.width) as f64;
            let (mut sum, mut rest, mut squares) =
                (VectorAccumulator::new::<T, L>(), VectorAccumulator::new::<T, L>(), VectorAccumulator::new::<T, L>());
            for o in s.block(first) {
                vector_sums::add::<T, L>(&x[s.row(o)], &mut sum);
            }
            let mean = T::from_f64(sum.total::<T, L>().to_f64() / n);
            for o in s.block(first) {
                vector_sums::deviate::<T, L>(&x[s.row(o)], mean, &mut rest, &mut squares);
            }
            let (rest, squares) = (rest.total::<T, L>().to_f64(), squares.total::<T, L>().to_f64());
            merge_moments(total, before, &[mean.to_f64() + rest / n, squares - rest * rest / n], n);
        }
    }
    if !total[1].is_finite() {
        *total = wide_moments((0..s.rows).flat_map(|o| x[s.row(o)].iter().copied()));
    }
}

/// Adds mean and squared deviation of neighbouring numbers to those of the `before` elements before them.
#[inline(always)]
pub(super) unsafe fn add_moments<T: Real, L: Lanes<T>>(x: &[T], mut before: f64, total: &mut ChannelPair) {
    for x in x.chunks(BLOCK) {
        let n = x.len() as f64;
        // SAFETY: the caller is inside `enter`.
        let mut found = unsafe {
            let (mut sum, mut rest, mut squares) =
                (VectorAccumulator::new::<T, L>(), VectorAccumulator::new::<T, L>(), VectorAccumulator::new::<T, L>());
            vector_sums::add::<T, L>(x, &mut sum);
            let mean = T::from_f64(sum.total::<T, L>().to_f64() / n);
            vector_sums::deviate::<T, L>(x, mean, &mut rest, &mut squares);
            let rest = rest.total::<T, L>().to_f64();
            [mean.to_f64() + rest / n, squares.total::<T, L>().to_f64() - rest * rest / n]
        };
        if !found[1].is_finite() {
            found = wide_moments(x.iter().copied());
        }
        merge_moments(total, before, &found, n);
        before += n;
    }
}

/// The sums of gy and of gy * (x - mean).
///
/// # Safety
/// Inside `enter`; gy has the strip's numbers, and no other thread writes them meanwhile.
#[inline(always)]
unsafe fn sums<T: Real, L: Lanes<T>>(s: &Strip, gy: SendPtr<T>, x: Option<&[T]>, mean: T, total: &mut ChannelPair) {
    *total = [0.0; 2];
    for first in (0..s.rows).step_by(s.per_block()) {
        for from in (0..s.width).step_by(BLOCK) {
            // SAFETY: the caller's promise.
            unsafe {
                let (mut sum, mut product) = (VectorAccumulator::new::<T, L>(), VectorAccumulator::new::<T, L>());
                for o in s.block(first) {
                    let row = s.row(o);
                    let at = row.start + from..row.end.min(row.start + from + BLOCK);
                    let gy = gy.read(at.start, at.len());
                    match x {
                        Some(x) => vector_sums::multiply::<T, L>(gy, None, &x[at], mean, &mut sum, &mut product),
                        None => vector_sums::add::<T, L>(gy, &mut sum),
                    }
                }
                total[0] += sum.total::<T, L>().to_f64();
                total[1] += product.total::<T, L>().to_f64();
            }
        }
    }
}

#[inline(always)]
fn map<T: Real>(a: &[T], x: Option<&[T]>, y: &mut [T], output: Output, by: &Coefficients<T>, c: usize) {
    let (minus, times, by_x, plus) = (by.minus[c], by.times[c], by.by_x[c], by.plus[c]);
    let n = y.len();
    let a = &a[..n];
    match (x.map(|x| &x[..n]), output) {
        (None, Output::Write) => {
            for i in 0..n {
                y[i] = (a[i] - minus) * times + plus;
            }
        }
        (None, Output::Accumulate) => {
            for i in 0..n {
                y[i] += (a[i] - minus) * times + plus;
            }
        }
        (Some(x), Output::Write) => {
            for i in 0..n {
                y[i] = a[i] * times + ((x[i] - minus) * by_x + plus);
            }
        }
        (Some(x), Output::Accumulate) => {
            for i in 0..n {
                y[i] += a[i] * times + ((x[i] - minus) * by_x + plus);
            }
        }
    }
}

/// As `map`, with `a` in the place of `y`.
#[inline(always)]
fn map_over<T: Real>(x: Option<&[T]>, y: &mut [T], by: &Coefficients<T>, c: usize) {
    let (minus, times, by_x, plus) = (by.minus[c], by.times[c], by.by_x[c], by.plus[c]);
    let n = y.len();
    match x.map(|x| &x[..n]) {
        None => finish::scale(y, minus, times, plus),
        Some(x) => {
            for i in 0..n {
                y[i] = y[i] * times + ((x[i] - minus) * by_x + plus);
            }
        }
    }
}
