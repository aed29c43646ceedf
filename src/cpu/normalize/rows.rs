//! Channels whose elements are long rows: vectors run along the row.

use super::{BLOCK, Channels, Coefficients, Pair, Unit, Work, merge_moments, vectors};
use crate::cpu::conv::lanes::Lanes;
use crate::cpu::gemm::Output;
use crate::dtype::Real;
use std::ops::Range;

/// # Safety
/// Inside `enter`; the unit lies within the slices of the work.
#[inline(always)]
pub(super) unsafe fn run<T: Real, L: Lanes<T>>(c: &Channels, unit: &Unit, work: Work<T>) {
    // SAFETY: the caller's promise.
    unsafe {
        match work {
            Work::Moments { x, out } => {
                for o in unit.outer.clone() {
                    let before = ((o - unit.outer.start) * c.inner) as f64;
                    for (i, total) in out.iter_mut().enumerate() {
                        add_moments::<T, L>(&x[row(c, unit, o, i)], before, total);
                    }
                }
            }
            Work::Sums { gy, x, mean, out } => {
                out.fill([0.0; 2]);
                for o in unit.outer.clone() {
                    for (i, total) in out.iter_mut().enumerate() {
                        let at = row(c, unit, o, i);
                        add_sums::<T, L>(&gy[at.clone()], x.map(|x| &x[at]), mean[i], total);
                    }
                }
            }
            Work::Map { a, x, y, output, by } => {
                for o in unit.outer.clone() {
                    for i in 0..unit.channels.len() {
                        let at = row(c, unit, o, i);
                        let y = y.slice(at.start, c.inner);
                        map(&a[at.clone()], x.map(|x| &x[at]), y, output, by, i);
                    }
                }
            }
        }
    }
}

/// Where the row of a unit's channel `i` is.
#[inline(always)]
fn row(c: &Channels, unit: &Unit, o: usize, i: usize) -> Range<usize> {
    let at = (o * c.channels + unit.channels.start + i) * c.inner;
    at..at + c.inner
}

/// Adds a row's mean and squared deviation to those of the `before` elements before it.
#[inline(always)]
pub(super) unsafe fn add_moments<T: Real, L: Lanes<T>>(x: &[T], mut before: f64, total: &mut Pair) {
    if before == 0.0 {
        *total = [0.0; 2];
    }
    for x in x.chunks(BLOCK) {
        let n = x.len() as f64;
        // SAFETY: the caller is inside `enter`.
        let found = unsafe {
            let mean = T::from_f64(vectors::sum::<T, L>(x).to_f64() / n);
            let (rest, squares) = vectors::deviations::<T, L>(x, mean);
            let rest = rest.to_f64();
            [mean.to_f64() + rest / n, squares.to_f64() - rest * rest / n]
        };
        merge_moments(total, before, &found, n);
        before += n;
    }
}

#[inline(always)]
unsafe fn add_sums<T: Real, L: Lanes<T>>(gy: &[T], x: Option<&[T]>, mean: T, total: &mut Pair) {
    for from in (0..gy.len()).step_by(BLOCK) {
        let at = from..gy.len().min(from + BLOCK);
        // SAFETY: the caller is inside `enter`.
        let (sum, product) = unsafe {
            match x {
                Some(x) => vectors::products::<T, L>(&gy[at.clone()], &x[at], mean),
                None => (vectors::sum::<T, L>(&gy[at]), T::ZERO),
            }
        };
        total[0] += sum.to_f64();
        total[1] += product.to_f64();
    }
}

#[inline(always)]
fn map<T: Real>(a: &[T], x: Option<&[T]>, y: &mut [T], output: Output, by: &Coefficients<T>, i: usize) {
    let (minus, times, by_x, plus) = (by.minus[i], by.times[i], by.by_x[i], by.plus[i]);
    match (x, output) {
        (None, Output::Write) => y.iter_mut().zip(a).for_each(|(y, &a)| *y = (a - minus) * times + plus),
        (None, Output::Accumulate) => y.iter_mut().zip(a).for_each(|(y, &a)| *y += (a - minus) * times + plus),
        (Some(x), Output::Write) => {
            y.iter_mut().zip(a).zip(x).for_each(|((y, &a), &x)| *y = a * times + ((x - minus) * by_x + plus))
        }
        (Some(x), Output::Accumulate) => {
            y.iter_mut().zip(a).zip(x).for_each(|((y, &a), &x)| *y += a * times + ((x - minus) * by_x + plus))
        }
    }
}
