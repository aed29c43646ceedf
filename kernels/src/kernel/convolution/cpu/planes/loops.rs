//! The loops over planes: copies with zeros around, what is made of all taps, the sums for each of them.

use super::layout::{PlaneLayout, Results};
use crate::array::Output;
use crate::dtype::Real;
use crate::simd::lanes::{Lanes, WithLanes};

/// Vectors of results that are made together.
pub(super) const TOGETHER: usize = 4;

/// Elements 0, 2, .. of `from`: pairs, since the compiler has vectors for these.
#[inline(always)]
pub(super) fn every_second<T: Copy>(to: &mut [T], from: &[T]) {
    let (pairs, last) = from.as_chunks::<2>();
    to.iter_mut().zip(pairs).for_each(|(t, s)| *t = s[0]);
    if let (Some(t), Some(&s)) = (to.get_mut(pairs.len()), last.first()) {
        *t = s;
    }
}

/// Numbers `0, 2, ..` of `to` are those of `from`, with zeros between.
#[inline(always)]
pub(super) fn with_zeros<T: Real>(to: &mut [T], from: &[T]) {
    let (pairs, last) = to.as_chunks_mut::<2>();
    let n = pairs.len();
    pairs.iter_mut().zip(from).for_each(|(t, &s)| *t = [s, T::ZERO]);
    if let (Some(t), Some(&s)) = (last.first_mut(), from.get(n)) {
        *t = s;
    }
}

/// `to` is `from`, which is as long; vectors that hang over are written as parts.
///
/// # Safety
/// Inside `enter` of L.
#[inline(always)]
unsafe fn copy_row<T: Real, L: Lanes<T>>(to: &mut [T], from: &[T]) {
    let n = to.len().min(from.len());
    for i in (0..n).step_by(L::N) {
        let part = L::N.min(n - i);
        // SAFETY: both have that many numbers from i on.
        unsafe { L::store_part(to.as_mut_ptr().add(i), L::load_part(from.as_ptr().add(i), part), part) }
    }
}

/// `to += from`
///
/// # Safety
/// As `copy_row`.
#[inline(always)]
unsafe fn add_row<T: Real, L: Lanes<T>>(to: &mut [T], from: &[T]) {
    let n = to.len().min(from.len());
    for i in (0..n).step_by(L::N) {
        let part = L::N.min(n - i);
        // SAFETY: as above.
        unsafe {
            let (to, from) = (to.as_mut_ptr().add(i), from.as_ptr().add(i));
            let sum = L::fma(L::load_part(from, part), L::splat(T::ONE), L::load_part(to, part));
            L::store_part(to, sum, part);
        }
    }
}

/// # Safety
/// As `copy_row`.
#[inline(always)]
unsafe fn zero_row<T: Real, L: Lanes<T>>(to: &mut [T]) {
    for i in (0..to.len()).step_by(L::N) {
        // SAFETY: numbers of the row.
        unsafe { L::store_part(to.as_mut_ptr().add(i), L::splat(T::ZERO), L::N.min(to.len() - i)) }
    }
}

/// Copies the band of places from row `first` on; `plane` elements for each remainder.
pub(super) struct BandCopy<'a, T> {
    pub(super) layout: &'a PlaneLayout,
    pub(super) source: &'a [T],
    pub(super) first: usize,
    pub(super) rows: usize,
    pub(super) to: &'a mut [T],
    pub(super) plane: usize,
}

impl<T: Real> WithLanes<T> for BandCopy<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let (l, pitch) = (self.layout, self.layout.pitch());
        let used = (self.rows + l.more[0]) * pitch;
        let mut to = self.to;
        for top in 0..l.step[0] {
            for left in 0..l.step[1] {
                let (plane, rest) = to.split_at_mut(self.plane);
                let (copied, behind) = plane.split_at_mut(used);
                let mut at = (self.first * l.step[0] + top) as isize + l.low[0];
                for row in copied.chunks_exact_mut(pitch) {
                    let is_inside = at >= 0 && (at as usize) < l.source[0];
                    // SAFETY: the caller's promise.
                    unsafe {
                        match is_inside {
                            true => {
                                row_of::<T, L>(l, left, &self.source[at as usize * l.source[1]..][..l.source[1]], row)
                            }
                            false => zero_row::<T, L>(row),
                        }
                    }
                    at += l.step[0] as isize;
                }
                behind.fill(T::ZERO);
                to = rest;
            }
        }
    }
}

/// A row of the copy.
///
/// # Safety
/// As `copy_row`.
#[inline(always)]
unsafe fn row_of<T: Real, L: Lanes<T>>(l: &PlaneLayout, left: usize, source: &[T], row: &mut [T]) {
    let (first, end) = l.columns[left];
    // SAFETY: the caller's promise.
    unsafe {
        zero_row::<T, L>(&mut row[..first]);
        zero_row::<T, L>(&mut row[end..]);
    }
    if first == end {
        return;
    }
    let (row, at) = (&mut row[first..end], (first * l.step[1]) as isize + left as isize + l.low[1]);
    match (l.spread, l.step[1]) {
        (1, 1) => {
            let at = at as usize;
            // SAFETY: the caller's promise.
            unsafe { copy_row::<T, L>(row, &source[at..]) }
        }
        (1, step) => row.iter_mut().zip(source[at as usize..].iter().step_by(step)).for_each(|(r, &s)| *r = s),
        (spread, _) => {
            // The first column may be one between two numbers.
            let between = at as usize % spread;
            let skipped = if between > 0 { spread - between } else { 0 };
            row[..skipped.min(end - first)].fill(T::ZERO);
            if skipped < row.len() {
                with_zeros(&mut row[skipped..], &source[(at as usize).div_ceil(spread)..]);
            }
        }
    }
}

/// Writes the results of a band's rows to their places, or adds them.
pub(super) struct BandStore<'a, T> {
    pub(super) layout: &'a PlaneLayout,
    pub(super) results: &'a Results,
    pub(super) first: usize,
    pub(super) rows: usize,
    pub(super) sums: &'a [T],
    pub(super) to: &'a mut [T],
    pub(super) output: Output,
}

impl<T: Real> WithLanes<T> for BandStore<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let (l, r) = (self.layout, self.results);
        let rows = self.rows.min(r.points[0].saturating_sub(self.first));
        for (i, from) in self.sums.chunks_exact(l.pitch()).take(rows).enumerate() {
            let from = &from[..r.points[1]];
            let row = (self.first + i) * l.stride[0] + r.start[0];
            let to = &mut self.to[row * l.target[1] + r.start[1]..(row + 1) * l.target[1]];
            // SAFETY: the caller's promise.
            unsafe {
                match (l.stride[1], l.pick, self.output) {
                    (1, 1, Output::Write) => copy_row::<T, L>(to, from),
                    (1, 1, _) => add_row::<T, L>(to, from),
                    (1, 2, _) => every_second(to, from), // of a forward pass, which adds nothing
                    (step, _, Output::Write) => to.iter_mut().step_by(step).zip(from).for_each(|(t, &v)| *t = v),
                    (step, _, _) => to.iter_mut().step_by(step).zip(from).for_each(|(t, &v)| *t += v),
                }
            }
        }
    }
}

/// Rows of a gradient `pitch` elements apart, its numbers `pick` elements; zeros between them and behind.
pub(super) struct GradientRows<'a, T> {
    pub(super) layout: &'a PlaneLayout,
    pub(super) from: &'a [T],
    pub(super) to: &'a mut [T],
}

impl<T: Real> WithLanes<T> for GradientRows<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let (width, pitch, pick) = (self.layout.target[1], self.layout.pitch(), self.layout.pick);
        let (rows, behind) = self.to.split_at_mut(self.from.len() / width * pitch);
        for (from, to) in self.from.chunks_exact(width).zip(rows.chunks_exact_mut(pitch)) {
            let (places, rest) = to.split_at_mut((width - 1) * pick + 1);
            // SAFETY: the caller's promise.
            unsafe {
                match pick {
                    1 => copy_row::<T, L>(places, from),
                    _ => with_zeros(places, from),
                }
                zero_row::<T, L>(rest);
            }
        }
        behind.fill(T::ZERO);
    }
}

/// `sums[q]`, for q up to `n` and a few more, is `start`, or what is there if `ADD`, and the sum over the taps of `w` times the number at
/// its distance. `from` has `SLACK` elements more than the taps reach, `sums` more than `n`.
pub(super) struct PlaneCorrelation<'a, T, const ADD: bool> {
    pub(super) from: &'a [T],
    pub(super) at: &'a [usize],
    pub(super) w: &'a [T],
    pub(super) start: T,
    pub(super) sums: &'a mut [T],
    pub(super) n: usize,
}

impl<T: Real, const ADD: bool> WithLanes<T> for PlaneCorrelation<'_, T, ADD> {
    #[allow(clippy::needless_range_loop)] // as in `some_products`
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        debug_assert!(self.at.len() == self.w.len() && self.sums.len() >= self.n + TOGETHER * L::N - 1);
        let (from, sums, w, taps) = (self.from.as_ptr(), self.sums.as_mut_ptr(), self.w.as_ptr(), self.at.len());
        let at = self.at.as_ptr();
        let mut q = 0;
        while q < self.n {
            // SAFETY: the caller's promise.
            unsafe {
                let to = sums.add(q);
                let mut v = [L::splat(self.start); TOGETHER];
                if ADD {
                    for i in 0..TOGETHER {
                        v[i] = L::load(to.add(i * L::N));
                    }
                }
                for k in 0..taps {
                    let (x, w) = (from.add(*at.add(k) + q), L::splat(*w.add(k)));
                    for i in 0..TOGETHER {
                        v[i] = L::fma(L::load(x.add(i * L::N)), w, v[i]);
                    }
                }
                for i in 0..TOGETHER {
                    L::store(to.add(i * L::N), v[i]);
                }
            }
            q += TOGETHER * L::N;
        }
    }
}

/// Adds to the vector of sums of each tap the products of what it reads and `y`. `from` has `SLACK` elements more than the taps reach, `y`
/// more than `n`, zeros; `sums` has a vector for each tap.
pub(super) struct Products<'a, T> {
    pub(super) from: &'a [T],
    pub(super) at: &'a [usize],
    pub(super) y: &'a [T],
    pub(super) n: usize,
    pub(super) sums: &'a mut [T],
}

impl<T: Real> WithLanes<T> for Products<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let Products { from, at, y, n, sums } = self;
        assert!(sums.len() >= at.len() * L::N, "a vector of sums for each tap");
        let (nine, rest) = at.as_chunks::<9>();
        let (three, one) = rest.as_chunks::<3>();
        let mut sums = sums.as_mut_ptr();
        // SAFETY: the caller's promise.
        unsafe {
            for at in nine {
                some_products::<T, L, 9>(from, at, y, n, sums);
                sums = sums.add(9 * L::N);
            }
            for at in three {
                some_products::<T, L, 3>(from, at, y, n, sums);
                sums = sums.add(3 * L::N);
            }
            for &at in one {
                some_products::<T, L, 1>(from, &[at], y, n, sums);
                sums = sums.add(L::N);
            }
        }
    }
}

/// # Safety
/// As [`Products`].
// Indices, not iterators: the sums must stay arrays that the compiler keeps in registers.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
unsafe fn some_products<T: Real, L: Lanes<T>, const K: usize>(
    from: &[T],
    at: &[usize; K],
    y: &[T],
    n: usize,
    sums: *mut T,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let (from, y) = (from.as_ptr(), y.as_ptr());
        let mut v = [L::splat(T::ZERO); K];
        for k in 0..K {
            v[k] = L::load(sums.add(k * L::N));
        }
        let mut q = 0;
        while q < n {
            let g = L::load(y.add(q));
            for k in 0..K {
                v[k] = L::fma(L::load(from.add(at[k] + q)), g, v[k]);
            }
            q += L::N;
        }
        for k in 0..K {
            L::store(sums.add(k * L::N), v[k]);
        }
    }
}
