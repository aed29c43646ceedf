//! On the host: rows of a patch are neighbours in memory, with all channels.

use super::Correlation;
use crate::array::Output;
use crate::pool::tasks;
use crate::simd::{self, SimdReal};
use std::ops::Range;

/// Elements of a result that a task makes at least.
const TASK: usize = 1 << 10;

impl Correlation {
    /// Which of the `patch` elements from `start` on are inside an axis of `n`, both as they are and shifted.
    fn inside(&self, a: usize, start: isize, shift: isize) -> Range<isize> {
        let n = self.size[a] as isize;
        let first = (-start).max(-start - shift).max(0);
        let end = (n - start).min(n - start - shift).min(self.patch[a] as isize);
        first..end.max(first)
    }

    /// Number of the first channel of an element of image `b`.
    fn element(&self, b: usize, i: isize, j: isize) -> usize {
        ((b * self.size[0] + i as usize) * self.size[1] + j as usize) * self.channels
    }

    fn product<T: SimdReal>(&self, x: [&[T]; 2], b: usize, at: [usize; 2], shift: [isize; 2]) -> T {
        let start = |a: usize| (at[a] * self.patch_step[a]) as isize - self.pad[a] as isize;
        let (top, left) = (start(0), start(1));
        let columns = self.inside(1, left, shift[1]);
        let length = columns.len() * self.channels;
        let row = |i: isize| {
            if length == 0 {
                return T::ZERO;
            }
            let (i, j) = (top + i, left + columns.start);
            let first = &x[0][self.element(b, i, j)..][..length];
            let second = &x[1][self.element(b, i + shift[0], j + shift[1])..][..length];
            simd::dot(first, second)
        };
        self.inside(0, top, shift[0]).map(row).sum()
    }

    /// The sum over the places whose patch has an element of the first image, for one shift.
    fn covered<T: SimdReal>(&self, gy: &[T], b: usize, i: usize, j: usize, shift: usize) -> T {
        let (shifts, columns) = (self.shifts[0] * self.shifts[1], self.over(1, j));
        let at = |row: usize, column: usize| ((b * self.out[0] + row) * self.out[1] + column) * shifts + shift;
        self.over(0, i).map(|row| columns.clone().map(|column| gy[at(row, column)]).sum::<T>()).sum()
    }
}

pub(super) fn correlate<T: SimdReal>(c: &Correlation, x: [&[T]; 2], y: &mut [T]) {
    let shifts = c.shifts[0] * c.shifts[1];
    let place = |p: usize| (p / (c.out[0] * c.out[1]), [p / c.out[1] % c.out[0], p % c.out[1]]);
    let together = (TASK / shifts).max(1);
    tasks::parts(y, together * shifts, |task, y| {
        for (k, y) in y.chunks_exact_mut(shifts).enumerate() {
            let (b, at) = place(task * together + k);
            for (s, y) in y.iter_mut().enumerate() {
                let shift = [c.shifted(0, s / c.shifts[1]), c.shifted(1, s % c.shifts[1])];
                *y = c.product(x, b, at, shift);
            }
        }
    });
}

pub(super) fn gradient<T: SimdReal>(
    c: &Correlation,
    second: bool,
    gy: &[T],
    other: &[T],
    gx: &mut [T],
    output: Output,
) {
    let (shifts, [height, width]) = (c.shifts[0] * c.shifts[1], c.size);
    let together = (TASK / c.channels).max(1);
    tasks::parts(gx, together * c.channels, |task, gx| {
        for (k, gx) in gx.chunks_exact_mut(c.channels).enumerate() {
            let p = task * together + k;
            let (b, i, j) = (p / (height * width), p / width % height, p % width);
            if output == Output::Write {
                gx.fill(T::ZERO);
            }
            for s in 0..shifts {
                let (down, right) = (c.shifted(0, s / c.shifts[1]), c.shifted(1, s % c.shifts[1]));
                // The element of the other image that is multiplied with this one.
                let (row, column) = match second {
                    false => (i as isize + down, j as isize + right),
                    true => (i as isize - down, j as isize - right),
                };
                if !(0..height as isize).contains(&row) || !(0..width as isize).contains(&column) {
                    continue;
                }
                let (first_i, first_j) = if second { (row as usize, column as usize) } else { (i, j) };
                let g = c.covered(gy, b, first_i, first_j, s);
                let x = &other[c.element(b, row, column)..][..c.channels];
                simd::axpy(gx, g, x);
            }
        }
    });
}
