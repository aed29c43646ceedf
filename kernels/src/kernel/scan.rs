//! What a running number becomes along an axis: cumulative sums and products.

use super::axis::Axis as Line;
use crate::array::Output;
use crate::pool::tasks::{self, SendPtr, share};
use crate::simd::SimdReal;
use ndarray::{ArrayView2, ArrayViewMut2, Axis, Zip};

/// Neighbouring lines that are gone along together.
const WIDTH: usize = 64;
/// From so many lines beside each other on, they are; else as many, wherever they lie: in one line alone each step would wait
/// for the one before.
const TOGETHER: usize = 8;

/// Along which axis, and how.
#[derive(Clone, Copy)]
pub struct Scan {
    pub at: Line,
    /// Each element is left out of its own result.
    pub exclusive: bool,
    /// It begins at the end.
    pub reverse: bool,
    pub output: Output,
}

impl Scan {
    /// `op` takes the number, first `start`, and an element. The number is kept in double, so that long lines lose nothing.
    pub fn run<T: SimdReal>(&self, x: &[T], y: &mut [T], start: f64, op: impl Fn(f64, f64) -> f64 + Sync) {
        let Line { n, inner, .. } = self.at;
        if y.is_empty() {
            return;
        }
        if inner < TOGETHER {
            let (y, lines) = (SendPtr(y.as_mut_ptr()), self.at.lines());
            return share(lines.div_ceil(TOGETHER), lines * n, |task| match task * TOGETHER {
                first if first + TOGETHER <= lines => self.lines::<T, TOGETHER>(first, x, y, start, &op),
                first => (first..lines).for_each(|i| self.lines::<T, 1>(i, x, y, start, &op)),
            });
        }
        let step = |&x: &T, y: &mut T, number: &mut f64| {
            let before = *number;
            *number = op(before, x.to_f64());
            self.put(if self.exclusive { before } else { *number }, y);
        };
        tasks::parts(y, n * inner, |o, y| {
            let x = &x[o * n * inner..][..n * inner];
            let mut x = ArrayView2::from_shape((n, inner), x).expect("the sizes of the axis");
            let mut y = ArrayViewMut2::from_shape((n, inner), y).expect("the sizes of the axis");
            if self.reverse {
                x.invert_axis(Axis(0));
                y.invert_axis(Axis(0));
            }
            for (x, mut y) in x.axis_chunks_iter(Axis(1), WIDTH).zip(y.axis_chunks_iter_mut(Axis(1), WIDTH)) {
                let mut numbers = [start; WIDTH];
                for (x, y) in x.rows().into_iter().zip(y.rows_mut()) {
                    Zip::from(x).and(y).and(&mut numbers[..x.len()]).for_each(step);
                }
            }
        });
    }

    /// `G` lines from number `first` on.
    fn lines<T: SimdReal, const G: usize>(
        &self,
        first: usize,
        x: &[T],
        y: SendPtr<T>,
        start: f64,
        op: &impl Fn(f64, f64) -> f64,
    ) {
        let (n, inner) = (self.at.n, self.at.inner);
        let starts: [usize; G] = std::array::from_fn(|g| self.at.line(first + g));
        let mut numbers = [start; G];
        for k in 0..n {
            let place = if self.reverse { n - 1 - k } else { k } * inner;
            for (number, start) in numbers.iter_mut().zip(starts) {
                let before = *number;
                *number = op(before, x[start + place].to_f64());
                // SAFETY: inside y, which is as long as x; a line has elements of its own.
                let y = unsafe { &mut y.slice(start + place, 1)[0] };
                self.put(if self.exclusive { before } else { *number }, y);
            }
        }
    }

    #[inline(always)]
    fn put<T: SimdReal>(&self, number: f64, y: &mut T) {
        let v = T::from_f64(number);
        *y = if self.output == Output::Accumulate { *y + v } else { v };
    }
}
