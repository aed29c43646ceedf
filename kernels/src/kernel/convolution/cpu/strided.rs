//! Kernels of one point with strides, channels first: the points that they read are gathered, those of some images at a time, and are a
//! kernel's without strides.

use super::{ChannelOrder, Conv, pointwise};
use crate::array::{Output, scratch};
use crate::dtype::Real;
use crate::pool::tasks;
use std::ops::Range;

/// Numbers that are gathered at a time: they stay in the second-level cache.
const PART: usize = 1 << 18;
/// Numbers of a task.
const TASK: usize = 1 << 14;

/// Whether a convolution is one of these.
pub(super) fn suits(c: &Conv) -> bool {
    let is_one = c.kernel == [1; 3] && c.stride != [1; 3] && c.pad == [0; 3];
    is_one && c.layout == ChannelOrder::ChannelFirst && c.output_len() > 0
}

/// The kernel of the points that are read.
fn gathered(c: &Conv) -> Conv {
    Conv { input: c.output(), stride: [1; 3], ..c.clone() }
}

/// The convolutions of some images each, and their numbers in x and in y.
fn parts(c: &Conv) -> impl Iterator<Item = (Conv, Range<usize>, Range<usize>)> {
    c.in_parts((PART * c.batch / gathered(c).input_len().max(1)).clamp(1, c.batch))
}

/// Channels of a task, and numbers of one in x, among gathered points, and of a row of these.
fn sizes(c: &Conv) -> [usize; 4] {
    let [points, wide] = [c.output().iter().product::<usize>(), c.output()[2]];
    [(TASK / points).max(1), c.input.iter().product(), points, wide]
}

/// Where the rows that are read begin in a channel.
fn rows(c: &Conv) -> impl Iterator<Item = usize> {
    let ([slices, rows, _], [_, high, wide], stride) = (c.output(), c.input, c.stride);
    (0..slices * rows).map(move |i| (i / rows * stride[0] * high + i % rows * stride[1]) * wide)
}

/// The points of x.
fn gather<T: Real>(c: &Conv, x: &[T], to: &mut [T]) {
    let ([each, image, points, wide], step) = (sizes(c), c.stride[2]);
    tasks::parts(to, each * points, |task, to| {
        for (to, x) in to.chunks_exact_mut(points).zip(x.chunks_exact(image).skip(task * each)) {
            for (row, start) in to.chunks_exact_mut(wide).zip(rows(c)) {
                let from = &x[start..][..(wide - 1) * step + 1];
                // The steps of most: their loop goes in vectors.
                match step {
                    1 => row.copy_from_slice(from),
                    2 => {
                        row.iter_mut().zip(from.chunks_exact(2)).for_each(|(to, pair)| *to = pair[0]);
                        row[wide - 1] = from[2 * (wide - 1)];
                    }
                    _ => row.iter_mut().zip(from.iter().step_by(step)).for_each(|(to, v)| *to = *v),
                }
            }
        }
    });
}

/// Puts gradients of gathered points into that of x.
fn scatter<T: Real>(c: &Conv, from: &[T], x: &mut [T], output: Output) {
    let ([each, image, points, wide], step) = (sizes(c), c.stride[2]);
    tasks::parts(x, each * image, |task, x| {
        for (x, from) in x.chunks_exact_mut(image).zip(from.chunks_exact(points).skip(task * each)) {
            if output == Output::Write {
                x.fill(T::ZERO);
            }
            for (row, start) in from.chunks_exact(wide).zip(rows(c)) {
                x[start..].iter_mut().step_by(step).zip(row).for_each(|(to, v)| *to += *v);
            }
        }
    });
}

/// Bytes of the large buffers that forward works in, and backward.
pub(super) fn scratch<T: Real>(c: &Conv) -> [usize; 2] {
    let part = gathered(&parts(c).next().map_or_else(|| c.clone(), |part| part.0));
    let bytes = scratch::counted(part.input_len() * size_of::<T>());
    [bytes, bytes + pointwise::weight_scratch::<T>(&part)]
}

/// y = x * w + bias, of slices that have the sizes.
pub(super) fn forward<T: Real>(c: &Conv, x: &[T], w: &[T], bias: Option<&[T]>, y: &mut [T]) {
    for (c, of_x, of_y) in parts(c) {
        let one = gathered(&c);
        scratch::with(one.input_len(), |room: &mut [T]| {
            gather(&c, &x[of_x], room);
            pointwise::forward(&one, room, w, bias, &mut y[of_y]);
        });
    }
}

/// The gradient of x from that of y.
pub(super) fn data<T: Real>(c: &Conv, gy: &[T], w: &[T], gx: &mut [T], output: Output) {
    for (c, of_x, of_y) in parts(c) {
        let one = gathered(&c);
        scratch::with(one.input_len(), |room: &mut [T]| {
            pointwise::data(&one, &gy[of_y], w, room, Output::Write);
            scatter(&c, room, &mut gx[of_x], output);
        });
    }
}

/// The gradient of w from that of y.
pub(super) fn weight<T: Real>(c: &Conv, gy: &[T], x: &[T], gw: &mut [T], output: Output) {
    for (i, (c, of_x, of_y)) in parts(c).enumerate() {
        let one = gathered(&c);
        scratch::with(one.input_len(), |room: &mut [T]| {
            gather(&c, &x[of_x], room);
            let output = if i > 0 { Output::Accumulate } else { output };
            pointwise::weight(&one, &gy[of_y], room, gw, output);
        });
    }
}
