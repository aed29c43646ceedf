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
    // In double no product of a few single numbers overflows, nor underflows.
    (0..c.at.lines()).for_each(|i| match T::DTYPE {
        DType::F64 => line::<T, 1>(c, c.at.line(i), x, gy, gx, add),
        _ => line::<T, STEP>(c, c.at.line(i), x, gy, gx, add),
    });
}

/// Elements of a step along a line: only the first waits for the step before.
const STEP: usize = 4;

/// The gradient of the line that begins at `start`, in steps of G elements.
fn line<T: SimdReal, const G: usize>(c: &CumProd, start: usize, x: &[T], gy: &[T], gx: &mut [T], add: bool) {
    let n = c.at.n;
    let place = |k: usize| start + if c.reverse { n - 1 - k } else { k } * c.at.inner;
    let elements = |x: &[T], k: usize, beyond: f64| -> [f64; G] {
        match k + G <= n {
            true => std::array::from_fn(|j| x[place(k + j)].to_f64()),
            false => std::array::from_fn(|j| if k + j < n { x[place(k + j)].to_f64() } else { beyond }),
        }
    };
    let mut product = 1.0;
    let before = Scratch::each(n.div_ceil(G), |step| {
        let before = product;
        product *= elements(x, step * G, 1.0).iter().product::<f64>();
        before
    });
    // The element behind a step, its gradient, and the sum there.
    let (mut x_behind, mut gy_behind, mut sum) = (0.0, 0.0, 0.0);
    for (step, before) in before.iter().enumerate().rev() {
        let k = step * G;
        let (x, gy) = (elements(x, k, 0.0), elements(gy, k, 0.0));
        // What the step alone gives to the sums, and what the sum behind is multiplied by in each.
        let (mut sums, mut factors) = ([0.0; G], [0.0; G]);
        let (mut own, mut factor) = (0.0, 1.0);
        for j in (0..G).rev() {
            let (times, behind) = if j + 1 < G { (x[j + 1], gy[j + 1]) } else { (x_behind, gy_behind) };
            own = times * own + if c.exclusive { behind } else { gy[j] };
            factor *= times;
            (sums[j], factors[j]) = (own, factor);
        }
        let mut before = *before;
        for j in 0..G.min(n - k) {
            let v = T::from_f64(before * (sums[j] + factors[j] * sum));
            let gx = &mut gx[place(k + j)];
            *gx = if add { *gx + v } else { v };
            before *= x[j];
        }
        (x_behind, gy_behind, sum) = (x[0], gy[0], sums[0] + factors[0] * sum);
    }
}
