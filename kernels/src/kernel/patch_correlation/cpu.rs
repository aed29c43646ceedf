//! On the host: rows of a patch are neighbours in memory, with all channels.

use super::Correlation;
use crate::array::Output;
use crate::pool;
use crate::pool::tasks::Shared;
use crate::simd::SimdReal;
use crate::simd::lanes::{Choose, Lanes, WithLanes, dispatch};
use std::ops::Range;

/// Elements of a result that a task makes at least.
const TASK: usize = 1 << 10;
/// Numbers of the longest vectors.
const MOST_LANES: usize = 16;

impl Correlation {
    /// Which of the `patch` elements from `start` on are inside an axis of `n`, both as they are and shifted.
    #[inline(always)]
    fn inside(&self, a: usize, start: isize, shift: isize) -> Range<isize> {
        let n = self.size[a] as isize;
        let first = (-start).max(-start - shift).max(0);
        let end = (n - start).min(n - start - shift).min(self.patch[a] as isize);
        first..end.max(first)
    }

    /// Number of the first channel of an element of image `b`.
    #[inline(always)]
    fn element(&self, b: usize, i: isize, j: isize) -> usize {
        ((b * self.size[0] + i as usize) * self.size[1] + j as usize) * self.channels
    }

    /// # Safety
    /// Inside `L::enter`.
    #[inline(always)]
    unsafe fn product<T: SimdReal, L: Lanes<T>>(&self, x: [&[T]; 2], b: usize, at: [usize; 2], shift: [isize; 2]) -> T {
        let start = |a: usize| (at[a] * self.patch_step[a]) as isize - self.pad[a] as isize;
        let (top, left) = (start(0), start(1));
        let columns = self.inside(1, left, shift[1]);
        let length = columns.len() * self.channels;
        if length == 0 {
            return T::ZERO;
        }
        // SAFETY: the caller's promise.
        let (mut even, mut odd) = unsafe { (L::splat(T::ZERO), L::splat(T::ZERO)) };
        let mut rest = T::ZERO;
        let (pairs, whole) = (length - length % (2 * L::N), length - length % L::N);
        for i in self.inside(0, top, shift[0]) {
            let (i, j) = (top + i, left + columns.start);
            let first = &x[0][self.element(b, i, j)..][..length];
            let second = &x[1][self.element(b, i + shift[0], j + shift[1])..][..length];
            // SAFETY: vectors of both slices.
            unsafe {
                let (p, q) = (first.as_ptr(), second.as_ptr());
                let mut k = 0;
                while k < pairs {
                    even = L::fma(L::load(p.add(k)), L::load(q.add(k)), even);
                    odd = L::fma(L::load(p.add(k + L::N)), L::load(q.add(k + L::N)), odd);
                    k += 2 * L::N;
                }
                if pairs < whole {
                    even = L::fma(L::load(p.add(pairs)), L::load(q.add(pairs)), even);
                }
            }
            rest = first[whole..].iter().zip(&second[whole..]).fold(rest, |s, (&a, &b)| s + a * b);
        }
        let mut all = [T::ZERO; 2 * MOST_LANES];
        // SAFETY: room for two of the longest vectors.
        unsafe {
            L::store(all.as_mut_ptr(), even);
            L::store(all.as_mut_ptr().add(L::N), odd);
        }
        for k in 0..L::N {
            all[k] += all[k + L::N];
        }
        let mut n = L::N / 2;
        while n > 0 {
            for k in 0..n {
                all[k] += all[k + n];
            }
            n /= 2;
        }
        rest + all[0]
    }

    /// The sum over the places whose patch has an element of the first image, for one shift.
    #[inline(always)]
    fn covered<T: SimdReal>(&self, gy: &[T], b: usize, i: usize, j: usize, shift: usize) -> T {
        let (shifts, columns) = (self.shifts[0] * self.shifts[1], self.over(1, j));
        let at = |row: usize, column: usize| ((b * self.out[0] + row) * self.out[1] + column) * shifts + shift;
        self.over(0, i).map(|row| columns.clone().map(|column| gy[at(row, column)]).sum::<T>()).sum()
    }
}

/// A pass over all places or elements, whose results are cut into tasks.
struct PatchPass<'a, T> {
    c: &'a Correlation,
    work: Work<'a, T>,
    made: Shared<T>,
    size: usize,
}

#[derive(Clone, Copy)]
enum Work<'a, T> {
    /// Sums of products of these two images.
    Products([&'a [T]; 2]),
    /// The gradient of an image by that of the sums and the other image.
    Gradient { second: bool, gy: &'a [T], other: &'a [T], output: Output },
}

pub(super) fn correlate<T: SimdReal>(c: &Correlation, x: [&[T]; 2], y: &mut [T]) {
    dispatch(&PatchPass { c, work: Work::Products(x), size: y.len(), made: Shared(y.as_mut_ptr()) });
}

pub(super) fn gradient<T: SimdReal>(
    c: &Correlation,
    second: bool,
    gy: &[T],
    other: &[T],
    gx: &mut [T],
    output: Output,
) {
    let work = Work::Gradient { second, gy, other, output };
    dispatch(&PatchPass { c, work, size: gx.len(), made: Shared(gx.as_mut_ptr()) });
}

impl<T: SimdReal> Choose<T> for &PatchPass<'_, T> {
    fn with<L: Lanes<T>>(self) {
        let each = match self.work {
            Work::Products(_) => self.c.shifts[0] * self.c.shifts[1],
            Work::Gradient { .. } => self.c.channels,
        };
        let together = (TASK / each.max(1)).max(1) * each;
        pool::run(self.size.div_ceil(together.max(1)), &|task| {
            let (first, n) = (task * together, together.min(self.size - task * together));
            // SAFETY: parts of different tasks do not overlap; L is what the machine has.
            unsafe {
                let part = std::slice::from_raw_parts_mut(self.made.0.add(first), n);
                L::enter(PatchPart { pass: self, first: first / each, each, part });
            }
        });
    }
}

/// Results from number `first` on, of `each` elements.
struct PatchPart<'a, 'b, T> {
    pass: &'a PatchPass<'b, T>,
    first: usize,
    each: usize,
    part: &'a mut [T],
}

impl<T: SimdReal> WithLanes<T> for PatchPart<'_, '_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let c = self.pass.c;
        for (k, part) in self.part.chunks_exact_mut(self.each).enumerate() {
            let p = self.first + k;
            match self.pass.work {
                // SAFETY: this runs inside `L::enter`.
                Work::Products(x) => unsafe { c.products::<T, L>(x, p, part) },
                Work::Gradient { second, gy, other, output } => c.spread(second, gy, other, p, part, output),
            }
        }
    }
}

impl Correlation {
    /// The sums of place `p`, one for each shift.
    ///
    /// # Safety
    /// Inside `L::enter`.
    #[inline(always)]
    unsafe fn products<T: SimdReal, L: Lanes<T>>(&self, x: [&[T]; 2], p: usize, y: &mut [T]) {
        let (b, at) = (p / (self.out[0] * self.out[1]), [p / self.out[1] % self.out[0], p % self.out[1]]);
        for (i, y) in y.chunks_exact_mut(self.shifts[1]).enumerate() {
            for (j, y) in y.iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                *y = unsafe { self.product::<T, L>(x, b, at, [self.shifted(0, i), self.shifted(1, j)]) };
            }
        }
    }

    /// The gradient of all channels of element `p` of an image.
    #[inline(always)]
    fn spread<T: SimdReal>(&self, second: bool, gy: &[T], other: &[T], p: usize, gx: &mut [T], output: Output) {
        let [height, width] = self.size;
        let (b, i, j) = (p / (height * width), p / width % height, p % width);
        if output == Output::Write {
            gx.fill(T::ZERO);
        }
        let sign = if second { -1 } else { 1 };
        for s in 0..self.shifts[0] {
            // The row of the other image that is multiplied with this one.
            let row = i as isize + sign * self.shifted(0, s);
            if !(0..height as isize).contains(&row) {
                continue;
            }
            for t in 0..self.shifts[1] {
                let column = j as isize + sign * self.shifted(1, t);
                if !(0..width as isize).contains(&column) {
                    continue;
                }
                let (first_i, first_j) = if second { (row as usize, column as usize) } else { (i, j) };
                let g = self.covered(gy, b, first_i, first_j, s * self.shifts[1] + t);
                let x = &other[self.element(b, row, column)..][..self.channels];
                gx.iter_mut().zip(x).for_each(|(gx, &x)| *gx += g * x);
            }
        }
    }
}
