//! Kernels of one point with stride 1, channels first: products of the weights, as they are, with the points of all images, which lie
//! side by side in memory already. Neither weights nor results are turned.

use super::{ChannelOrder, Conv};
use crate::array::Output;
use crate::array::scratch;
use crate::dtype::Real;
use crate::gemm::parts::ColumnParts;
use crate::gemm::{Dest, GemmProduct, Mat, MatMut, Side, matmul};
use crate::pool::tasks::SendPtr;
use crate::simd::lanes::{Choose, Lanes, TransposeBlock, WithLanes, dispatch, transpose_or_add};

/// Points of an image that is joined with others, at most, and of those together.
const SMALL: usize = 16;
const JOINED: usize = 256;

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

/// Images whose points are joined for the gradient of w.
fn joined(c: &Conv) -> usize {
    match c.input.iter().product() {
        1 => c.batch.max(1),
        points @ 2..=SMALL => (JOINED / points).min(c.batch).max(1),
        _ => 1,
    }
}

/// The gradient of w, by a matrix product for each image, or for some small ones, one after another.
pub(super) fn weight<T: Real>(c: &Conv, gy: &[T], x: &[T], gw: &mut [T], output: Output) {
    let [channels, made] = [c.in_channels, c.out_channels].map(|n| n / c.group);
    let (points, each) = (c.input.iter().product::<usize>(), joined(c));
    if c.batch * points == 0 {
        return if output == Output::Write {
            gw.fill(T::ZERO)
        };
    }
    for (group, gw) in gw.chunks_exact_mut(made * channels).enumerate() {
        // The second matrix is turned on its way: the smaller one.
        let is_turned = made < channels;
        let add = |to: &mut [T], output: Output| {
            for first in (0..c.batch).step_by(each) {
                let part = JoinedImages { c, group, first, count: each.min(c.batch - first) };
                let output = if first > 0 { Output::Accumulate } else { output };
                scratch::with(part.room(channels) + part.room(made), |room: &mut [T]| {
                    let (of_x, of_gy) = room.split_at_mut(part.room(channels));
                    let (x, gy) = (part.matrix(x, channels, of_x), part.matrix(gy, made, of_gy));
                    if is_turned {
                        matmul(x, gy.t(), MatMut::new(&mut *to, channels, made), output);
                    } else {
                        matmul(gy, x.t(), MatMut::new(&mut *to, made, channels), output);
                    }
                });
            }
        };
        if is_turned {
            scratch::with(channels * made, |sums: &mut [T]| {
                add(sums, Output::Write);
                dispatch(TurnSums { sums, gw, made, output });
            });
        } else {
            add(gw, output);
        }
    }
}

/// Some images of a group.
struct JoinedImages<'a> {
    c: &'a Conv,
    group: usize,
    first: usize,
    count: usize,
}

impl JoinedImages<'_> {
    /// Numbers that the points of `channels` channels need where they are joined.
    fn room(&self, channels: usize) -> usize {
        let points = self.c.input.iter().product::<usize>();
        if self.count > 1 && points > 1 { channels * self.count * points } else { 0 }
    }

    /// A row of points for each of the group's `channels` channels: as they lie, or in `room`.
    fn matrix<'a, T: Real>(&self, all: &'a [T], channels: usize, room: &'a mut [T]) -> Mat<'a, T> {
        let points = self.c.input.iter().product::<usize>();
        let start = |i: usize, channel: usize| ((i * self.c.group + self.group) * channels + channel) * points;
        if points == 1 {
            let rows = &all[start(self.first, 0)..];
            return Mat::strided(rows, [self.count, channels], [self.c.group * channels, 1], 0, &[]).t();
        }
        if self.count == 1 {
            return Mat::new(&all[start(self.first, 0)..], channels, points);
        }
        for (channel, row) in room.chunks_exact_mut(self.count * points).enumerate() {
            for (i, to) in row.chunks_exact_mut(points).enumerate() {
                to.copy_from_slice(&all[start(self.first + i, channel)..][..points]);
            }
        }
        Mat::new(room, channels, self.count * points)
    }
}

/// Bytes of the large buffers that it works in.
pub(super) fn weight_scratch<T: Real>(c: &Conv) -> usize {
    let [channels, made] = [c.in_channels, c.out_channels].map(|n| n / c.group);
    let part = JoinedImages { c, group: 0, first: 0, count: joined(c) };
    let sums = if made < channels { channels * made } else { 0 };
    [sums, part.room(channels + made)].map(|n| scratch::counted(n * size_of::<T>())).iter().sum()
}

/// Sums `[channel][made]`, put into the gradient.
struct TurnSums<'a, T> {
    sums: &'a [T],
    gw: &'a mut [T],
    made: usize,
    output: Output,
}

impl<T: Real> Choose<T> for TurnSums<'_, T> {
    fn with<L: Lanes<T>>(self) {
        // SAFETY: the machine has what `dispatch` chose.
        unsafe { L::enter(self) }
    }
}

impl<T: Real> WithLanes<T> for TurnSums<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let TurnSums { sums, gw, made, output } = self;
        let channels = sums.len() / made;
        let gw = &mut gw[..sums.len()];
        let (src, dst) = (sums.as_ptr(), gw.as_mut_ptr());
        let block = TransposeBlock { src, src_stride: made, rows: channels, cols: made, dst, dst_stride: channels };
        // SAFETY: both have `channels * made` numbers.
        unsafe { transpose_or_add::<T, L>(block, output == Output::Accumulate) }
    }
}
