//! Few points and many weights, channels first: the product of the weights, as they lie, with the windows of an image as columns,
//! and for the gradient of the image the way back. To turn the weights into panels would take longer than all their products.

use super::{ChannelOrder, Conv};
use crate::array::{Output, scratch};
use crate::dtype::Real;
use crate::gemm::{Mat, MatMut, matmul};
use crate::pool::tasks::{SendPtr, share};
use crate::tuned;
use std::ops::Range;

/// Points of all images, at most, and images: each is a product of its own.
const POINTS: usize = 1 << 8;
const IMAGES: usize = 4;
/// Channels that are made, at least.
const MADE: usize = 16;

/// Channels that the gradient of x is made of, at least, and that it has at most: more of them fill vectors.
const SUMMED: usize = 64;
const FEW: usize = 32;

/// Whether a convolution is one of these.
pub(super) fn suits(c: &Conv) -> bool {
    let (each, made) = (c.in_channels / c.group, c.out_channels / c.group);
    has_few_points(c) && made >= MADE && {
        let weights = tuned::COLUMNS_CHANNELS.map(|n| n * n * 9);
        let points = tuned::COLUMNS_SIDES.map(|n| n * n);
        let at = [made * each * taps(c), c.batch * c.output().iter().product::<usize>()];
        tuned::percent(&tuned::get().columns, [&weights, &points], at) < 100
    }
}

/// Whether the gradient of x is.
pub(super) fn suits_data(c: &Conv) -> bool {
    has_few_points(c) && c.out_channels / c.group >= SUMMED && c.in_channels / c.group <= FEW
}

fn has_few_points(c: &Conv) -> bool {
    let points = c.output().iter().product::<usize>();
    c.layout == ChannelOrder::ChannelFirst && c.batch <= IMAGES && (1..=POINTS).contains(&(c.batch * points))
}

fn taps(c: &Conv) -> usize {
    c.kernel.iter().product()
}

/// Bytes of the large buffers that the convolution works in.
pub(super) fn scratch<T: Real>(c: &Conv) -> usize {
    let points = c.output().iter().product::<usize>();
    scratch::counted(c.in_channels / c.group * taps(c) * points * size_of::<T>())
}

/// y = x * w + bias, of slices that have the sizes.
pub(super) fn forward<T: Real>(c: &Conv, x: &[T], w: &[T], bias: Option<&[T]>, y: &mut [T]) {
    let points = c.output().iter().product::<usize>();
    let (each, made, image) = (c.in_channels / c.group, c.out_channels / c.group, c.input.iter().product::<usize>());
    let sums = each * taps(c);
    scratch::with(sums * points, |columns: &mut [T]| {
        for (i, y) in y.chunks_exact_mut(made * points).enumerate() {
            let (x, g) = (&x[i * each * image..][..each * image], i % c.group);
            let (to, rows) = (SendPtr(columns.as_mut_ptr()), taps(c) * points);
            // SAFETY: each channel has rows of its own.
            share(each, columns.len(), |i| lay(c, &x[i * image..][..image], unsafe { to.slice(i * rows, rows) }));
            let (w, columns) = (&w[g * made * sums..][..made * sums], &*columns);
            matmul(
                Mat::new(w, made, sums),
                Mat::new(columns, sums, points),
                MatMut::new(y, made, points),
                Output::Write,
            );
            for (y, b) in y.chunks_exact_mut(points).zip(bias.iter().flat_map(|b| &b[g * made..])) {
                y.iter_mut().for_each(|y| *y += *b);
            }
        }
    });
}

/// The gradient of x from that of y, of slices that have the sizes.
pub(super) fn data<T: Real>(c: &Conv, gy: &[T], w: &[T], gx: &mut [T], output: Output) {
    let points = c.output().iter().product::<usize>();
    let (each, made, image) = (c.in_channels / c.group, c.out_channels / c.group, c.input.iter().product::<usize>());
    let sums = each * taps(c);
    if output == Output::Write {
        gx.fill(T::ZERO);
    }
    scratch::with(sums * points, |columns: &mut [T]| {
        for (i, gx) in gx.chunks_exact_mut(each * image).enumerate() {
            let (gy, w) = (&gy[i * made * points..][..made * points], &w[i % c.group * made * sums..][..made * sums]);
            matmul(
                Mat::new(w, made, sums).t(),
                Mat::new(gy, made, points),
                MatMut::new(columns, sums, points),
                Output::Write,
            );
            let (columns, to, rows) = (&*columns, SendPtr(gx.as_mut_ptr()), taps(c) * points);
            share(each, columns.len(), |i| {
                // SAFETY: each channel has a part of its own.
                let gx = unsafe { to.slice(i * image, image) };
                collect(c, &columns[i * rows..][..rows], gx)
            });
        }
    });
}

/// The windows of a channel: a row for each tap, with a number for each point.
fn lay<T: Real>(c: &Conv, x: &[T], columns: &mut [T]) {
    each_line(c, |line, inside, from| {
        let line = &mut columns[line];
        line[..inside.start].fill(T::ZERO);
        line[inside.end..].fill(T::ZERO);
        let inside = &mut line[inside];
        match c.stride[2] {
            1 => inside.copy_from_slice(&x[from..from + inside.len()]),
            step => inside.iter_mut().zip(x[from..].iter().step_by(step)).for_each(|(to, v)| *to = *v),
        }
    });
}

/// Adds what is at the windows of a channel to the channel.
fn collect<T: Real>(c: &Conv, columns: &[T], x: &mut [T]) {
    each_line(c, |line, inside, from| {
        let to = x[from..].iter_mut().step_by(c.stride[2]);
        to.zip(&columns[line][inside]).for_each(|(x, v)| *x += *v);
    });
}

/// Calls `f` with each line of points of each tap, as a range of a channel's columns, those of its points that read inside
/// the image, and where the first of them does.
fn each_line(c: &Conv, mut f: impl FnMut(Range<usize>, Range<usize>, usize)) {
    let [_, kh, kw] = c.kernel;
    let [_, h, w] = c.input;
    let [od, oh, ow] = c.output();
    for tap in 0..taps(c) {
        let at = [tap / (kh * kw), tap / kw % kh, tap % kw];
        let source = |axis: usize, point: usize| {
            let from = (point * c.stride[axis] + at[axis] * c.dilation[axis]).checked_sub(c.pad[axis])?;
            (from < c.input[axis]).then_some(from)
        };
        let first = (0..ow).find(|&p| source(2, p).is_some()).unwrap_or(ow);
        let count = (first..ow).take_while(|&p| source(2, p).is_some()).count();
        let column = source(2, first).filter(|_| count > 0).unwrap_or(0);
        for p in 0..od * oh {
            let line = (tap * od * oh + p) * ow;
            let (inside, from) = match (source(0, p / oh), source(1, p % oh)) {
                (Some(z), Some(y)) => (first..first + count, (z * h + y) * w + column),
                _ => (0..0, 0),
            };
            f(line..line + ow, inside, from);
        }
    }
}
