//! Kernels of one point with stride 1, channels first: products of the weights, as they are, with the points of all images, which lie
//! side by side in memory already. Neither weights nor results are turned.

mod weight;

use super::{ChannelOrder, Conv};
use crate::array::Output;
use crate::array::scratch;
use crate::dtype::Real;
use crate::gemm::parts::ColumnParts;
use crate::gemm::{Dest, GemmProduct, Mat, MatMut, Side, matmul};
use crate::pool::tasks::SendPtr;
use crate::simd::lanes::dispatch;
use crate::tuned;
use weight::TurnSums;
pub(super) use weight::{PointwiseWeight, PointwiseWeightScratch};

/// Whether a convolution is one of these.
pub(super) fn suits(c: &Conv) -> bool {
    c.kernel == [1; 3] && c.stride == [1; 3] && c.pad == [0; 3] && c.layout == ChannelOrder::ChannelFirst
}

/// y = x * w + bias, of slices that have the sizes.
pub(super) fn forward<T: Real>(c: &Conv, x: &[T], w: &[T], bias: Option<&[T]>, y: &mut [T]) {
    let [channels, made] = [c.in_channels, c.out_channels].map(|n| n / c.group);
    let weights = Side { data: w.as_ptr(), rs: channels as isize, cs: 1 };
    // SAFETY: the slices have the sizes.
    unsafe { each_group(c, [channels, made], weights, SendPtr::of(x), SendPtr(y.as_mut_ptr()), bias, Output::Write) }
}

/// The gradient of x from that of y.
pub(super) fn data<T: Real>(c: &Conv, gy: &[T], w: &[T], gx: &mut [T], output: Output) {
    let [channels, made] = [c.in_channels, c.out_channels].map(|n| n / c.group);
    let weights = Side { data: w.as_ptr(), rs: 1, cs: channels as isize };
    // SAFETY: the slices have the sizes.
    unsafe { each_group(c, [made, channels], weights, SendPtr::of(gy), SendPtr(gx.as_mut_ptr()), None, output) }
}

/// Sums of a group's channels at each point, for each group; `weights` are the first one's.
unsafe fn each_group<T: Real>(
    c: &Conv,
    [channels, made]: [usize; 2],
    weights: Side<T>,
    source: SendPtr<T>,
    result: SendPtr<T>,
    bias: Option<&[T]>,
    output: Output,
) {
    let points = c.input.iter().product::<usize>();
    let [read, written] = [channels, made].map(|n| n * c.group * points);
    for group in 0..c.group {
        let a = Side { data: weights.data.wrapping_add(group * channels * made), ..weights };
        let b = source.add(group * channels * points).0.cast_const();
        let d = result.add(group * made * points).0;
        let p = GemmProduct {
            m: made,
            n: c.batch * points,
            k: channels,
            a,
            b: Side { data: b, rs: points as isize, cs: 1 },
            c: Dest { data: d, rs: points as isize, cs: 1 },
        };
        let (p, parts) = if points == 1 {
            let (b, c) = (Side { cs: read as isize, ..p.b }, Dest { cs: written as isize, ..p.c });
            (GemmProduct { b, c, ..p }, ColumnParts::ONE)
        } else {
            (p, ColumnParts { count: c.batch, each: points, b: read, c: written })
        };
        let begins = bias.map(|b| b[group * made..(group + 1) * made].as_ptr());
        // SAFETY: the caller's promise; groups make channels of their own.
        unsafe { p.run_parts(parts, begins, output) }
    }
}

/// Whether the gradient of w is better made by a matrix product for each image.
fn by_products(c: &Conv) -> bool {
    if c.group != 1 || c.batch == 0 {
        return false;
    }
    let weights = tuned::WINOGRAD_CHANNELS.map(|n| n * n);
    let points = tuned::WINOGRAD_SIDES.map(|n| n * n);
    let at = [c.weight_len(), c.input.iter().product()];
    tuned::percent(&tuned::get().pointwise, [&weights, &points], at) < 95
}

/// The gradient of w by a matrix product for each image, one after another; or nothing (false) where blocks of points are to make it.
pub(super) fn weight_by_products<T: Real>(c: &Conv, gy: &[T], x: &[T], gw: &mut [T], output: Output) -> bool {
    let [channels, made] = [c.in_channels, c.out_channels];
    let does = by_products(c);
    if does {
        let points = c.input.iter().product::<usize>();
        let images = x.chunks_exact(channels * points).zip(gy.chunks_exact(made * points)).enumerate();
        let images = images.map(|(i, (x, gy))| (i > 0, Mat::new(x, channels, points), Mat::new(gy, made, points)));
        let write = |added: bool| if added { Output::Accumulate } else { Output::Write };
        // The second matrix is turned on its way: the smaller one.
        if made < channels {
            scratch::with(channels * made, |sums: &mut [T]| {
                images.for_each(|(n, x, gy)| matmul(x, gy.t(), MatMut::new(sums, channels, made), write(n)));
                dispatch(TurnSums { sums, gw, made, output });
            });
        } else {
            let adds = output == Output::Accumulate;
            images.for_each(|(n, x, gy)| matmul(gy, x.t(), MatMut::new(gw, made, channels), write(n || adds)));
        }
    }
    does
}
