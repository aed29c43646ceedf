//! On the host.

use super::{CumProd, Recurrence};
use crate::kernel::axis::Axis as Line;
use crate::pool::tasks;
use crate::simd::SimdReal;
use ndarray::{ArrayView2, ArrayViewMut2, Axis, Zip};

/// The arrays of a task, (n, inner), in the direction of the work.
fn lines<T>(x: &[T], at: Line, outer: usize, reverse: bool) -> ArrayView2<'_, T> {
    let size = at.n * at.inner;
    let mut x = ArrayView2::from_shape((at.n, at.inner), &x[outer * size..][..size]).expect("the sizes of the axis");
    if reverse {
        x.invert_axis(Axis(0));
    }
    x
}

fn lines_mut<T>(y: &mut [T], at: Line, reverse: bool) -> ArrayViewMut2<'_, T> {
    let mut y = ArrayViewMut2::from_shape((at.n, at.inner), y).expect("the sizes of the axis");
    if reverse {
        y.invert_axis(Axis(0));
    }
    y
}

pub(super) fn cumprod<T: SimdReal>(c: &CumProd, x: &[T], y: &mut [T]) {
    if y.is_empty() {
        return;
    }
    tasks::parts(y, c.at.n * c.at.inner, |o, y| {
        let (x, mut y) = (lines(x, c.at, o, c.reverse), lines_mut(y, c.at, c.reverse));
        // Products are kept in double, so that long lines lose nothing.
        Zip::from(x.lanes(Axis(0))).and(y.lanes_mut(Axis(0))).for_each(|x, y| {
            let mut product = 1.0;
            for (x, y) in x.into_iter().zip(y) {
                let before = product;
                product *= x.to_f64();
                *y = T::from_f64(if c.exclusive { before } else { product });
            }
        });
    });
}

pub(super) fn recurrence<T: SimdReal>(c: &Recurrence, a: &[T], b: &[T], y: &mut [T]) {
    if y.is_empty() {
        return;
    }
    tasks::parts(y, c.at.n * c.at.inner, |o, y| {
        let (a, b) = (lines(a, c.at, o, c.reverse), lines(b, c.at, o, c.reverse));
        let mut y = lines_mut(y, c.at, c.reverse);
        Zip::from(a.lanes(Axis(0))).and(b.lanes(Axis(0))).and(y.lanes_mut(Axis(0))).for_each(|a, b, y| {
            let mut last = 0.0;
            for ((a, b), y) in a.into_iter().zip(b).zip(y) {
                last = a.to_f64() * last + b.to_f64();
                *y = T::from_f64(last);
            }
        });
    });
}
