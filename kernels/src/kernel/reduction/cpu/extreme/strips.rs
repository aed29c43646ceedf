//! The loops of the search for extremes, compiled for the CPU's vectors.

use crate::dtype::Element;
use crate::kernel::reduction::axes::ReductionAxes;
use crate::pool::tasks::Shared;
use crate::simd::{self, Body, CacheLines, SimdReal, Vector};
use std::cell::Cell;

/// Neighbouring results that a task finds together.
pub(super) const COLUMNS: usize = 256;
/// The number where no element has won over the infinity that a search begins with.
pub(super) const UNFOUND: u32 = u32::MAX;
/// Neighbouring results that are kept in registers.
const STRIP: usize = 64;
/// Rows that are asked for ahead: they lie far apart.
const AHEAD: usize = 6;

/// Neighbouring results over `count` rows, from the element `base` on.
pub(super) struct Strips<'a> {
    pub axes: &'a ReductionAxes,
    pub count: usize,
    pub base: usize,
    pub smallest: bool,
}

impl Strips<'_> {
    /// Writes the extremes, and the numbers of the rows that have them. A search begins with an infinity, so what is not above it, NaN
    /// among them, is not found; the first of equal ones is.
    pub fn find<T: SimdReal>(&self, x: &[T], best: &mut [T], at: Option<&mut [u32]>) {
        let at = at.map(|at| Shared(at.as_mut_ptr()));
        let job = StripsOf { strips: self, x, width: best.len(), best: Shared(best.as_mut_ptr()), at };
        // SAFETY: both have the results of this width.
        unsafe { simd::run::<T>(&job) };
    }
}

/// Runs `$body` for each row and each place in it; a whole strip has a length that the compiler knows.
macro_rules! each_row {
    ($count:expr, |$k:ident| $row:expr, |$x:ident, $i:ident| $body:block) => {
        for $k in 0..$count {
            let $x = $row;
            if let Some($x) = $x.first_chunk::<STRIP>() {
                for $i in 0..STRIP $body
            } else {
                for $i in 0..$x.len() $body
            }
        }
    };
}

struct StripsOf<'a, T> {
    strips: &'a Strips<'a>,
    x: &'a [T],
    width: usize,
    best: Shared<T>,
    at: Option<Shared<u32>>,
}

impl<T: SimdReal> Body<T> for StripsOf<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        for first in (0..self.width).step_by(STRIP) {
            let width = STRIP.min(self.width - first);
            // SAFETY: columns of this job.
            let best = unsafe { std::slice::from_raw_parts_mut(self.best.0.add(first), width) };
            // SAFETY: as above.
            let at = self.at.as_ref().map(|at| unsafe { std::slice::from_raw_parts_mut(at.0.add(first), width) });
            match at {
                Some(at) => self.numbered(first, best, at),
                None => self.values(first, best),
            }
        }
    }
}

impl<T: SimdReal> StripsOf<'_, T> {
    /// 1, or -1 where the smallest are wanted: they are the largest of the negated ones.
    #[inline(always)]
    fn sign(&self) -> T {
        if self.strips.smallest { -T::ONE } else { T::ONE }
    }

    /// Row `k` of the columns from `first` on; rows to come are asked for.
    #[inline(always)]
    fn row(&self, first: usize, k: usize, width: usize, stride: Option<usize>) -> &[T] {
        let offset = match stride {
            Some(stride) => k * stride,
            None => self.strips.axes.reduced_offset(k),
        };
        let x = &self.x[self.strips.base + first + offset..][..width];
        let later = x.as_ptr().wrapping_add(AHEAD * stride.unwrap_or(0)).cast::<u8>();
        let mut line = 0;
        while line < size_of_val(x) {
            simd::prefetch(later.wrapping_add(line));
            line += 64;
        }
        x
    }

    // Indices, not iterators: the strips must stay arrays that the compiler keeps in registers.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    fn values(&self, first: usize, to: &mut [T]) {
        let (sign, stride, width) = (self.sign(), self.strips.axes.reduced_stride(), to.len());
        let mut room = CacheLines([T::from_f64(f64::NEG_INFINITY); STRIP]);
        let best = &mut room.0;
        each_row!(self.strips.count, |k| self.row(first, k, width, stride), |x, i| {
            let v = x[i] * sign;
            best[i] = if v > best[i] { v } else { best[i] };
        });
        for i in 0..width {
            to[i] = best[i] * sign;
        }
    }

    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    fn numbered(&self, first: usize, to: &mut [T], numbers: &mut [u32]) {
        let (sign, stride, width) = (self.sign(), self.strips.axes.reduced_stride(), to.len());
        let mut room = CacheLines(([T::from_f64(f64::NEG_INFINITY); STRIP], [UNFOUND; STRIP]));
        let (best, at) = &mut room.0;
        each_row!(self.strips.count, |k| self.row(first, k, width, stride), |x, i| {
            let v = x[i] * sign;
            let wins = v > best[i];
            best[i] = if wins { v } else { best[i] };
            at[i] = if wins { k as u32 } else { at[i] };
        });
        for i in 0..width {
            (to[i], numbers[i]) = (best[i] * sign, at[i]);
        }
    }
}

/// Where `v` is first.
pub(super) fn position<T: SimdReal>(x: &[T], v: T) -> Option<usize> {
    let found = Cell::new(None);
    // SAFETY: no terms.
    unsafe { simd::run::<T>(&Position { x, v, found: &found }) };
    found.get()
}

struct Position<'a, T> {
    x: &'a [T],
    v: T,
    found: &'a Cell<Option<usize>>,
}

impl<T: SimdReal> Body<T> for Position<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        let (x, n, v) = (self.x.as_ptr(), self.x.len(), V::splat(Element::to_f64(self.v)));
        let mut at = 0;
        // Four vectors together, then one.
        while at + 4 * V::N <= n {
            // SAFETY: within x.
            let found = unsafe {
                let (a, b) = (V::load(x.add(at)), V::load(x.add(at + V::N)));
                let (c, d) = (V::load(x.add(at + 2 * V::N)), V::load(x.add(at + 3 * V::N)));
                V::any(V::or(V::or(a.eq(v), b.eq(v)), V::or(c.eq(v), d.eq(v))))
            };
            if found {
                break;
            }
            at += 4 * V::N;
        }
        // SAFETY: within x.
        while at + V::N <= n && !V::any(unsafe { V::load(x.add(at)) }.eq(v)) {
            at += V::N;
        }
        while at < n && self.x[at] != self.v {
            at += 1;
        }
        self.found.set((at < n).then_some(at));
    }
}
