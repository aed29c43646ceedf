//! On the host.

use super::CumSum;
use crate::array::Output;
use crate::pool::tasks;
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
        if inner < FEW {
            let line = |x: ndarray::ArrayView1<T>, y: ndarray::ArrayViewMut1<T>| {
                let mut sum = 0.0;
                x.into_iter().zip(y).for_each(|(x, y)| step(x, y, &mut sum));
            };
            return Zip::from(x.lanes(Axis(0))).and(y.lanes_mut(Axis(0))).for_each(line);
        }
        for (x, mut y) in x.axis_chunks_iter(Axis(1), WIDTH).zip(y.axis_chunks_iter_mut(Axis(1), WIDTH)) {
            let mut sums = [0.0; WIDTH];
            for (x, y) in x.rows().into_iter().zip(y.rows_mut()) {
                Zip::from(x).and(y).and(&mut sums[..x.len()]).for_each(step);
            }
        }
    });
}
