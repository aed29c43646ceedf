//! On the host.

use super::CumSum;
use crate::array::Output;
use crate::kernel::axis::TOGETHER;
use crate::pool::tasks::{self, SendPtr};
use crate::simd::SimdReal;
use ndarray::{ArrayView2, ArrayViewMut2, Axis, Zip};

/// Neighbouring lines that are summed together.
const WIDTH: usize = 64;
/// From so many lines beside each other on, they are.
const FEW: usize = 8;

pub(super) fn cumsum<T: SimdReal>(c: &CumSum, x: &[T], y: &mut [T], output: Output) {
    let (n, inner) = (c.at.n, c.at.inner);
    if y.is_empty() {
        return;
    }
    // Sums are kept in double, so that long lines lose nothing.
    if inner < FEW {
        let y = SendPtr(y.as_mut_ptr());
        return c.at.each_lines(|i| lines::<T, TOGETHER>(c, i, x, y, output), |i| lines::<T, 1>(c, i, x, y, output));
    }
    let step = |&x: &T, y: &mut T, sum: &mut f64| {
        let before = *sum;
        *sum += x.to_f64();
        let v = T::from_f64(if c.exclusive { before } else { *sum });
        *y = if output == Output::Accumulate { *y + v } else { v };
    };
    tasks::parts(y, n * inner, |o, y| {
        let x = &x[o * n * inner..][..n * inner];
        let mut x = ArrayView2::from_shape((n, inner), x).expect("the sizes of the axis");
        let mut y = ArrayViewMut2::from_shape((n, inner), y).expect("the sizes of the axis");
        if c.reverse {
            x.invert_axis(Axis(0));
            y.invert_axis(Axis(0));
        }
        for (x, mut y) in x.axis_chunks_iter(Axis(1), WIDTH).zip(y.axis_chunks_iter_mut(Axis(1), WIDTH)) {
            let mut sums = [0.0; WIDTH];
            for (x, y) in x.rows().into_iter().zip(y.rows_mut()) {
                Zip::from(x).and(y).and(&mut sums[..x.len()]).for_each(step);
            }
        }
    });
}

/// Sums along `G` lines from number `first` on.
fn lines<T: SimdReal, const G: usize>(c: &CumSum, first: usize, x: &[T], y: SendPtr<T>, output: Output) {
    let (n, inner) = (c.at.n, c.at.inner);
    let starts: [usize; G] = std::array::from_fn(|g| c.at.line(first + g));
    let mut sums = [0.0; G];
    for k in 0..n {
        let place = if c.reverse { n - 1 - k } else { k } * inner;
        for (sum, start) in sums.iter_mut().zip(starts) {
            let before = *sum;
            *sum += x[start + place].to_f64();
            let v = T::from_f64(if c.exclusive { before } else { *sum });
            // SAFETY: inside y, which is as long as x; a line has elements of its own.
            let y = unsafe { &mut y.slice(start + place, 1)[0] };
            *y = if output == Output::Accumulate { *y + v } else { v };
        }
    }
}
