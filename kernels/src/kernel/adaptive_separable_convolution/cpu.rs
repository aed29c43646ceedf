//! On the host: a row of places at a time, whose numbers are neighbours in all arrays.

use super::{SeparablePart, SeparableSizes};
use crate::array::Output;
use crate::array::scratch;
use crate::pool::tasks::{self, Shared};
use crate::simd::SimdReal;
use crate::simd::lanes::{Choose, Lanes, WithLanes, dispatch};

/// Arrays as slices, what is made as a pointer.
struct SeparableWork<'a, T> {
    s: &'a SeparableSizes,
    part: SeparablePart,
    x: [&'a [T]; 3],
    y: Shared<T>,
}

pub(super) fn product<T: SimdReal>(s: &SeparableSizes, part: SeparablePart, x: [&[T]; 3], y: &mut [T], output: Output) {
    if output == Output::Write {
        y.fill(T::ZERO);
    }
    dispatch(&SeparableWork { s, part, x, y: Shared(y.as_mut_ptr()) });
}

impl<T: SimdReal> Choose<T> for &SeparableWork<'_, T> {
    fn with<L: Lanes<T>>(self) {
        let s = self.s;
        // Gradients of the images overlap between rows of places, those of the kernels between channels.
        let tasks = match self.part {
            SeparablePart::Images => s.batch * s.channels,
            SeparablePart::Result => s.batch * s.channels * s.output[0],
            _ => s.batch * s.output[0],
        };
        let work = s.batch * s.channels * s.output[0] * s.output[1] * s.taps[0] * s.taps[1];
        tasks::share(tasks, work, |task| {
            scratch::with(2 * s.output[1], |room: &mut [T]| {
                // SAFETY: L is what the machine has; no other task writes what this one does.
                unsafe { L::enter(SeparableTask { w: self, task, room }) }
            });
        });
    }
}

struct SeparableTask<'a, 'b, T> {
    w: &'a SeparableWork<'b, T>,
    task: usize,
    /// Two rows.
    room: &'a mut [T],
}

impl<T: SimdReal> WithLanes<T> for SeparableTask<'_, '_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let (s, task) = (self.w.s, self.task);
        let (a, b) = self.room.split_at_mut(s.output[1]);
        let height = s.output[0];
        match self.w.part {
            SeparablePart::Result => self.w.result(task / height, task % height, a, b),
            SeparablePart::Images => {
                for i in 0..height {
                    self.w.images(task, i, a);
                }
            }
            SeparablePart::Columns => self.w.columns(task / height, task % height, a),
            SeparablePart::Rows => self.w.rows(task / height, task % height, a),
        }
    }
}

/// sum += x y
#[inline(always)]
fn add<T: SimdReal>(sum: &mut [T], x: &[T], y: &[T]) {
    sum.iter_mut().zip(x.iter().zip(y)).for_each(|(s, (&x, &y))| *s += x * y);
}

/// z = x y
#[inline(always)]
fn multiply<T: SimdReal>(z: &mut [T], x: &[T], y: &[T]) {
    z.iter_mut().zip(x.iter().zip(y)).for_each(|(z, (&x, &y))| *z = x * y);
}

impl<T: SimdReal> SeparableWork<'_, T> {
    /// Row `i` of a plane of an array with planes of this size.
    #[inline(always)]
    fn at([height, width]: [usize; 2], plane: usize, i: usize) -> usize {
        (plane * height + i) * width
    }

    /// The same numbers of what is made.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "tasks write rows of their own")]
    fn made(&self, size: [usize; 2], plane: usize, i: usize, from: usize, n: usize) -> &mut [T] {
        // SAFETY: a part of a row of what is made, which this task alone writes.
        unsafe { std::slice::from_raw_parts_mut(self.y.0.add(Self::at(size, plane, i) + from), n) }
    }

    /// Row `i` of image and channel `c`: images, columns, rows.
    #[inline(always)]
    fn result(&self, c: usize, i: usize, sum: &mut [T], part: &mut [T]) {
        let (s, [x, v, h]) = (self.s, self.x);
        let (b, n) = (c / s.channels, s.output[1]);
        sum.fill(T::ZERO);
        for k in 0..s.taps[0] {
            self.along(&x[Self::at(s.input, c, i + k)..], h, b, i, part);
            add(sum, &v[Self::at(s.columns, b * s.taps[0] + k, i)..][..n], part);
        }
        let y = self.made(s.output, c, i, 0, n);
        y.iter_mut().zip(&*sum).for_each(|(y, &v)| *y += v);
    }

    /// A row of an image convolved with the rows.
    #[inline(always)]
    fn along(&self, x: &[T], h: &[T], b: usize, i: usize, part: &mut [T]) {
        let (s, n) = (self.s, self.s.output[1]);
        part.fill(T::ZERO);
        for k in 0..s.taps[1] {
            add(part, &x[k..][..n], &h[Self::at(s.rows, b * s.taps[1] + k, i)..][..n]);
        }
    }

    /// The gradient of an image by row `i` of the result: columns, rows, gradient.
    #[inline(always)]
    fn images(&self, c: usize, i: usize, part: &mut [T]) {
        let (s, [v, h, g]) = (self.s, self.x);
        let (b, n) = (c / s.channels, s.output[1]);
        let g = &g[Self::at(s.output, c, i)..][..n];
        for k in 0..s.taps[0] {
            multiply(part, g, &v[Self::at(s.columns, b * s.taps[0] + k, i)..][..n]);
            for l in 0..s.taps[1] {
                let row = &h[Self::at(s.rows, b * s.taps[1] + l, i)..][..n];
                add(self.made(s.input, c, i + k, l, n), part, row);
            }
        }
    }

    /// The gradient of the columns at row `i`: images, rows, gradient.
    #[inline(always)]
    fn columns(&self, b: usize, i: usize, part: &mut [T]) {
        let (s, [x, h, g]) = (self.s, self.x);
        for c in b * s.channels..(b + 1) * s.channels {
            let g = &g[Self::at(s.output, c, i)..][..s.output[1]];
            for k in 0..s.taps[0] {
                self.along(&x[Self::at(s.input, c, i + k)..], h, b, i, part);
                add(self.made(s.columns, b * s.taps[0] + k, i, 0, s.output[1]), g, part);
            }
        }
    }

    /// The gradient of the rows at row `i`: images, columns, gradient.
    #[inline(always)]
    fn rows(&self, b: usize, i: usize, part: &mut [T]) {
        let (s, [x, v, g]) = (self.s, self.x);
        let n = s.output[1];
        for c in b * s.channels..(b + 1) * s.channels {
            let g = &g[Self::at(s.output, c, i)..][..n];
            for k in 0..s.taps[0] {
                multiply(part, g, &v[Self::at(s.columns, b * s.taps[0] + k, i)..][..n]);
                let x = &x[Self::at(s.input, c, i + k)..];
                for l in 0..s.taps[1] {
                    add(self.made(s.rows, b * s.taps[1] + l, i, 0, n), part, &x[l..][..n]);
                }
            }
        }
    }
}
