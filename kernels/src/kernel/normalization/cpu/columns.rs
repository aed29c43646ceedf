//! Channels whose elements lie apart, one or a few in each row: vectors run across the channels.

// Loops run over many arrays side by side.
#![allow(clippy::needless_range_loop)]

use super::{ChannelPair, ChannelTile, ChannelWork, Channels, Coefficients, merge_moments, wide_moments};
use crate::array::Output;
use crate::array::scratch::Scratch;
use crate::dtype::Real;
use crate::pool::tasks::SendPtr;

/// Rows that are summed up in their own type; the sums are merged in f64.
const ROWS: usize = 32;

/// Inside `Lanes::enter`, so that the loops become vectors: plain loops, since a closure may not be inlined.
///
/// # Safety
/// The unit lies within the slices of the work.
#[inline(always)]
pub(super) unsafe fn run<T: Real>(c: &Channels, unit: &ChannelTile, work: ChannelWork<T>) {
    let columns = Columns { c, unit, width: unit.channels.len() * c.inner };
    match work {
        ChannelWork::Moments { x, out } => columns.moments(x, out),
        // SAFETY: the caller's promise.
        ChannelWork::Sums { gy, x, mean, out } => unsafe { columns.sums(gy, x, mean, out) },
        ChannelWork::Map { a, x, y, output, by } => {
            let spread;
            let by = if c.inner == 1 {
                by
            } else {
                spread = columns.spread_all(by);
                &spread
            };
            for o in unit.outer.clone() {
                let at = columns.start(o);
                // SAFETY: the caller's promise.
                let y = unsafe { y.slice(at, columns.width) };
                let x = x.map(|x| &x[at..]);
                match a {
                    Some(a) => map(&a[at..], x, y, output, by),
                    None => map_over(x, y, by),
                }
            }
        }
    }
}

/// A unit as rows of `width` neighbouring numbers.
struct Columns<'a> {
    c: &'a Channels,
    unit: &'a ChannelTile,
    width: usize,
}

impl Columns<'_> {
    #[inline(always)]
    fn start(&self, o: usize) -> usize {
        (o * self.c.channels + self.unit.channels.start) * self.c.inner
    }

    #[inline(always)]
    fn row<'x, T>(&self, x: &'x [T], o: usize) -> &'x [T] {
        &x[self.start(o)..][..self.width]
    }

    /// The block of rows that begins at `o`.
    #[inline(always)]
    fn block(&self, o: usize) -> std::ops::Range<usize> {
        o..self.unit.outer.end.min(o + ROWS)
    }

    #[inline(always)]
    fn moments<T: Real>(&self, x: &[T], out: &mut [ChannelPair]) {
        let (mut mean, mut rest, mut squares) = (self.zeros(), self.zeros(), self.zeros());
        let (mut total, mut deviation) = (Scratch::filled(self.width, 0.0), Scratch::filled(self.width, 0.0));
        let mut before = 0.0;
        for first in self.unit.outer.clone().step_by(ROWS) {
            let n = self.block(first).len() as f64;
            mean.fill(T::ZERO);
            rest.fill(T::ZERO);
            squares.fill(T::ZERO);
            for o in self.block(first) {
                add(&mut mean, self.row(x, o));
            }
            scale(&mut mean, T::from_f64(1.0 / n));
            for o in self.block(first) {
                deviate(&mean, self.row(x, o), &mut rest, &mut squares);
            }
            let block = ColumnSums { before, n, mean: &mean, rest: &rest, squares: &squares };
            block.merge(&mut total, &mut deviation);
            before += n;
        }
        for (k, deviation) in deviation.iter_mut().enumerate().filter(|(_, d)| !d.is_finite()) {
            [total[k], *deviation] = wide_moments(self.unit.outer.clone().map(|o| self.row(x, o)[k]));
        }
        for (i, out) in out.iter_mut().enumerate() {
            let at = i * self.c.inner;
            *out = [total[at], deviation[at]];
            for k in 1..self.c.inner {
                merge_moments(out, k as f64 * before, &[total[at + k], deviation[at + k]], before);
            }
        }
    }

    /// # Safety
    /// gy has the unit's numbers, and no other thread writes them meanwhile.
    #[inline(always)]
    unsafe fn sums<T: Real>(&self, gy: SendPtr<T>, x: Option<&[T]>, mean: &[T], out: &mut [ChannelPair]) {
        let mean = self.spread(mean);
        let (mut sum, mut product) = (self.zeros(), self.zeros());
        out.fill([0.0; 2]);
        for first in self.unit.outer.clone().step_by(ROWS) {
            sum.fill(T::ZERO);
            product.fill(T::ZERO);
            for o in self.block(first) {
                // SAFETY: the caller's promise.
                let gy = unsafe { gy.read(self.start(o), self.width) };
                match x {
                    Some(x) => multiply(gy, self.row(x, o), &mean, &mut sum, &mut product),
                    None => add(&mut sum, gy),
                }
            }
            for (i, out) in out.iter_mut().enumerate() {
                for k in i * self.c.inner..(i + 1) * self.c.inner {
                    out[0] += sum[k].to_f64();
                    out[1] += product[k].to_f64();
                }
            }
        }
    }

    fn zeros<T: Real>(&self) -> Scratch<T> {
        Scratch::filled(self.width, T::ZERO)
    }

    /// A number for each column from those of the channels.
    fn spread<T: Real>(&self, each: &[T]) -> Vec<T> {
        if self.c.inner == 1 {
            return each.to_vec();
        }
        each.iter().flat_map(|&m| std::iter::repeat_n(m, self.c.inner)).collect()
    }

    fn spread_all<T: Real>(&self, by: &Coefficients<T>) -> Coefficients<T> {
        let [minus, times, by_x, plus] = [&by.minus, &by.times, &by.by_x, &by.plus].map(|v| self.spread(v));
        Coefficients { minus, times, by_x, plus }
    }
}

/// What a block of `n` rows has found for each column.
struct ColumnSums<'a, T> {
    before: f64,
    n: f64,
    mean: &'a [T],
    rest: &'a [T],
    squares: &'a [T],
}

impl<T: Real> ColumnSums<'_, T> {
    /// As `merge_moments`, for all columns.
    #[inline(always)]
    fn merge(&self, total: &mut [f64], deviation: &mut [f64]) {
        let n = total.len();
        let (mean, rest, squares, deviation) =
            (&self.mean[..n], &self.rest[..n], &self.squares[..n], &mut deviation[..n]);
        let (each, part) = (1.0 / self.n, self.n / (self.before + self.n));
        let cross = self.before * part;
        for i in 0..n {
            let r = rest[i].to_f64();
            let delta = mean[i].to_f64() + r * each - total[i];
            total[i] += delta * part;
            deviation[i] += squares[i].to_f64() - r * r * each + delta * delta * cross;
        }
    }
}

#[inline(always)]
pub(super) fn add<T: Real>(to: &mut [T], x: &[T]) {
    for (t, &x) in to.iter_mut().zip(x) {
        *t += x;
    }
}

#[inline(always)]
pub(super) fn scale<T: Real>(to: &mut [T], by: T) {
    for t in to {
        *t = *t * by;
    }
}

#[inline(always)]
pub(super) fn deviate<T: Real>(mean: &[T], x: &[T], rest: &mut [T], squares: &mut [T]) {
    let n = x.len();
    let (mean, rest, squares) = (&mean[..n], &mut rest[..n], &mut squares[..n]);
    for i in 0..n {
        let d = x[i] - mean[i];
        rest[i] += d;
        squares[i] += d * d;
    }
}

#[inline(always)]
pub(super) fn multiply<T: Real>(gy: &[T], x: &[T], mean: &[T], sum: &mut [T], product: &mut [T]) {
    let n = x.len();
    let (gy, mean, sum, product) = (&gy[..n], &mean[..n], &mut sum[..n], &mut product[..n]);
    for i in 0..n {
        sum[i] += gy[i];
        product[i] += gy[i] * (x[i] - mean[i]);
    }
}

#[inline(always)]
fn map<T: Real>(a: &[T], x: Option<&[T]>, y: &mut [T], output: Output, by: &Coefficients<T>) {
    let n = y.len();
    let (a, minus, times, by_x, plus) = (&a[..n], &by.minus[..n], &by.times[..n], &by.by_x[..n], &by.plus[..n]);
    match (x.map(|x| &x[..n]), output) {
        (None, Output::Write) => {
            for i in 0..n {
                y[i] = (a[i] - minus[i]) * times[i] + plus[i];
            }
        }
        (None, Output::Accumulate) => {
            for i in 0..n {
                y[i] += (a[i] - minus[i]) * times[i] + plus[i];
            }
        }
        (Some(x), Output::Write) => {
            for i in 0..n {
                y[i] = a[i] * times[i] + ((x[i] - minus[i]) * by_x[i] + plus[i]);
            }
        }
        (Some(x), Output::Accumulate) => {
            for i in 0..n {
                y[i] += a[i] * times[i] + ((x[i] - minus[i]) * by_x[i] + plus[i]);
            }
        }
    }
}

/// As `map`, with `a` in the place of `y`.
#[inline(always)]
fn map_over<T: Real>(x: Option<&[T]>, y: &mut [T], by: &Coefficients<T>) {
    let n = y.len();
    let (minus, times, by_x, plus) = (&by.minus[..n], &by.times[..n], &by.by_x[..n], &by.plus[..n]);
    match x.map(|x| &x[..n]) {
        None => {
            for i in 0..n {
                y[i] = (y[i] - minus[i]) * times[i] + plus[i];
            }
        }
        Some(x) => {
            for i in 0..n {
                y[i] = y[i] * times[i] + ((x[i] - minus[i]) * by_x[i] + plus[i]);
            }
        }
    }
}
