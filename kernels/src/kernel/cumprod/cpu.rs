//! On the host.

use super::{CumProd, Recurrence, rows};
use crate::array::Output;
use crate::array::scratch::Scratch;
use crate::dtype::DType;
use crate::kernel::axis::Axis as Line;
use crate::kernel::scan::Scan;
use crate::pool::tasks::{self, SendPtr};
use crate::simd::{self, SimdReal};
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
    let scan = Scan { at: c.at, exclusive: c.exclusive, reverse: c.reverse, output: Output::Write };
    scan.run(x, y, 1.0, |product, x| product * x);
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

/// So few lines are gone along one by one.
const FEW: usize = 4;

/// The gradient of `cumprod`: the product of the elements before, times what the gradients behind give.
pub(super) fn backward<T: SimdReal>(c: &CumProd, x: &[T], gy: &[T], gx: &mut [T], output: Output) {
    let add = output == Output::Accumulate;
    if c.at.n == 1 && !c.exclusive {
        return if add { simd::add_assign(gx, gy) } else { gx.copy_from_slice(gy) };
    }
    if c.at.lines() >= FEW {
        return rows::backward(c, x, gy, SendPtr(gx.as_mut_ptr()), add);
    }
    (0..c.at.lines()).for_each(|i| line(c, c.at.line(i), x, gy, gx, add));
}

/// The gradient of the line that begins at `start`.
fn line<T: SimdReal>(c: &CumProd, start: usize, x: &[T], gy: &[T], gx: &mut [T], add: bool) {
    let n = c.at.n;
    if c.at.inner == 1 && !c.reverse {
        let line = start..start + n;
        return in_order(c.exclusive, &x[line.clone()], &gy[line.clone()], &mut gx[line], add);
    }
    let place = |k: usize| start + if c.reverse { n - 1 - k } else { k } * c.at.inner;
    let [x, gy] = [x, gy].map(|x| Scratch::each(n, |k| x[place(k)]));
    let mut found = Scratch::filled(n, T::ZERO);
    in_order(c.exclusive, &x, &gy, &mut found, false);
    for (k, &v) in found.iter().enumerate() {
        let gx = &mut gx[place(k)];
        *gx = if add { *gx + v } else { v };
    }
}

/// The gradient of a line whose elements lie one behind the other.
fn in_order<T: SimdReal>(exclusive: bool, x: &[T], gy: &[T], gx: &mut [T], add: bool) {
    let (x, gy, gx) = match (exclusive, gx) {
        // Each element gives to those behind it alone, the last one to none.
        (true, [gx @ .., last]) => {
            *last = if add { *last } else { T::ZERO };
            (&x[..gx.len()], &gy[1..], gx)
        }
        (_, gx) => (x, gy, gx),
    };
    // In double no product of a few single numbers overflows, nor underflows: only the first of a step waits for the step behind.
    let (steps, x) = if T::DTYPE == DType::F64 { (&[][..], x) } else { x.as_chunks::<4>() };
    let (step_gy, gy) = gy.split_at(4 * steps.len());
    let (step_gx, gx) = gx.split_at_mut(4 * steps.len());
    // What is multiplied before each step, and before each element behind these.
    let mut product = 1.0;
    let mut before_steps = Scratch::filled(steps.len(), 0.0);
    for (before, x) in before_steps.iter_mut().zip(steps) {
        let [a, b, c, d] = x.map(T::to_f64);
        *before = product;
        product *= (a * b) * (c * d);
    }
    let mut before = Scratch::filled(x.len(), 0.0);
    for (before, x) in before.iter_mut().zip(x) {
        *before = product;
        product *= x.to_f64();
    }
    // Writes products, or adds them.
    let put = |to: &mut T, v: f64| *to = if add { *to + T::from_f64(v) } else { T::from_f64(v) };
    // The element behind, and the sum there.
    let (mut behind, mut sum) = (0.0, 0.0);
    for (((x, gy), gx), before) in x.iter().zip(gy).zip(gx).zip(before.iter()).rev() {
        sum = gy.to_f64() + behind * sum;
        behind = x.to_f64();
        put(gx, before * sum);
    }
    let step_gy = step_gy.as_chunks::<4>().0;
    let step_gx = step_gx.as_chunks_mut::<4>().0;
    for (((x, gy), gx), &before) in steps.iter().zip(step_gy).zip(step_gx).zip(before_steps.iter()).rev() {
        let ([x0, x1, x2, x3], [g0, g1, g2, g3]) = (x.map(T::to_f64), gy.map(T::to_f64));
        // What the step alone gives to the sums, and what the sum behind is multiplied by in each.
        let (s3, f3) = (g3, behind);
        let (s2, f2) = (g2 + x3 * s3, x3 * f3);
        let (s1, f1) = (g1 + x2 * s2, x2 * f2);
        let (s0, f0) = (g0 + x1 * s1, x1 * f1);
        let before = [before, before * x0, before * x0 * x1, before * x0 * x1 * x2];
        put(&mut gx[0], before[0] * (s0 + f0 * sum));
        put(&mut gx[1], before[1] * (s1 + f1 * sum));
        put(&mut gx[2], before[2] * (s2 + f2 * sum));
        put(&mut gx[3], before[3] * (s3 + f3 * sum));
        (behind, sum) = (x0, s0 + f0 * sum);
    }
}
