//! On the host.

use super::{CumProd, Recurrence, rows};
use crate::array::Output;
use crate::array::scratch::Scratch;
use crate::kernel::axis::Axis as Line;
use crate::kernel::axis::TOGETHER;
use crate::pool::tasks::{self, SendPtr};
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

/// The gradient of `cumprod`: the product of the elements before, times what the gradients behind give.
pub(super) fn backward<T: SimdReal>(c: &CumProd, x: &[T], gy: &[T], gx: &mut [T], output: Output) {
    let (gx, add) = (SendPtr(gx.as_mut_ptr()), output == Output::Accumulate);
    if c.at.inner == 1 {
        return rows::backward(c, x, gy, gx, add);
    }
    let gradient = Gradient { c, x, gy, gx, add };
    c.at.each_lines(|i| gradient.lines::<TOGETHER>(i), |i| gradient.lines::<1>(i));
}

struct Gradient<'a, T> {
    c: &'a CumProd,
    x: &'a [T],
    gy: &'a [T],
    gx: SendPtr<T>,
    add: bool,
}

impl<T: SimdReal> Gradient<'_, T> {
    /// That of `G` lines from number `first` on.
    fn lines<const G: usize>(&self, first: usize) {
        let (c, n) = (self.c, self.c.at.n);
        let starts: [usize; G] = std::array::from_fn(|g| c.at.line(first + g));
        let place = |k: usize| if c.reverse { n - 1 - k } else { k } * c.at.inner;
        let before = self.before(&starts, place);
        // The element behind, its gradient, and the sum there.
        let (mut x, mut gy, mut sum) = ([0.0; G], [0.0; G], [0.0; G]);
        for (k, before) in before.iter().enumerate().rev() {
            for g in 0..G {
                let at = starts[g] + place(k);
                let behind = gy[g];
                gy[g] = self.gy[at].to_f64();
                sum[g] = x[g] * sum[g] + if c.exclusive { behind } else { gy[g] };
                x[g] = self.x[at].to_f64();
                let v = T::from_f64(before[g].to_f64() * sum[g]);
                // SAFETY: inside gx, which is as long as x; a line has elements of its own.
                let gx = unsafe { &mut self.gx.slice(at, 1)[0] };
                *gx = if self.add { *gx + v } else { v };
            }
        }
    }

    /// For each element the product of those before it.
    fn before<const G: usize>(&self, starts: &[usize; G], place: impl Fn(usize) -> usize) -> Scratch<[T; G]> {
        let mut product = [1.0; G];
        Scratch::each(self.c.at.n, |k| {
            let before = product.map(T::from_f64);
            for g in 0..G {
                product[g] *= self.x[starts[g] + place(k)].to_f64();
            }
            before
        })
    }
}
