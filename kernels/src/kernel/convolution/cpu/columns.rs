//! Few points and many weights, channels first: products of the weights, as they lie, with the windows of all images as a matrix. To turn
//! the weights into panels, or their gradient out of these, would take longer than all sums.

use super::{ChannelOrder, Conv};
use crate::array::{Output, scratch};
use crate::dtype::Real;
use crate::gemm::{Mat, MatMut, matmul};
use crate::pool::tasks::{SendPtr, share};
use crate::tuned::{self, Percents};

/// Points of all images, at most.
const POINTS: usize = 1 << 8;
/// Channels that are made, at least.
const MADE: usize = 16;

/// Whether a convolution is one of these.
pub(super) fn suits(c: &Conv) -> bool {
    c.out_channels / c.group >= MADE && pays(c, &tuned::get().columns[0])
}

/// Whether the gradient of x is.
pub(super) fn suits_data(c: &Conv) -> bool {
    pays(c, &tuned::get().columns[1])
}

/// Whether the gradient of w is.
pub(super) fn suits_weight(c: &Conv) -> bool {
    pays(c, &tuned::get().columns[2])
}

fn pays(c: &Conv, percents: &Percents) -> bool {
    let all = c.batch * c.output().iter().product::<usize>();
    c.layout == ChannelOrder::ChannelFirst && (1..=POINTS).contains(&all) && {
        let weights = tuned::COLUMNS_CHANNELS.map(|n| n * n * 9);
        let points = tuned::COLUMNS_SIDES.map(|n| n * n);
        tuned::percent(percents, [&weights, &points], [c.weight_len() / c.group, all]) < 100
    }
}

/// The sizes of one group.
struct WindowSizes<'a> {
    c: &'a Conv,
    /// Channels that are summed, and made.
    each: usize,
    made: usize,
    taps: usize,
    /// Numbers of a channel of x, and of y.
    image: usize,
    points: usize,
    /// Numbers of a window, and windows.
    sums: usize,
    all: usize,
}

impl WindowSizes<'_> {
    fn new(c: &Conv) -> WindowSizes<'_> {
        let (each, made, taps) = (c.in_channels / c.group, c.out_channels / c.group, c.kernel.iter().product());
        let (image, points) = (c.input.iter().product(), c.output().iter().product());
        WindowSizes { c, each, made, taps, image, points, sums: each * taps, all: c.batch * points }
    }

    /// A window is a column of the matrix, or a row.
    fn in_columns(&self) -> WindowMatrix<'_> {
        WindowMatrix { s: self, point: 1, tap: self.all, pairs: self.pairs(1, self.all) }
    }

    fn in_rows(&self) -> WindowMatrix<'_> {
        WindowMatrix { s: self, point: self.sums, tap: 1, pairs: self.pairs(self.sums, 1) }
    }

    /// Each point and each tap that meet inside the image: where they are in a matrix of such distances, and in the image.
    fn pairs(&self, point: usize, tap: usize) -> Vec<[usize; 2]> {
        let (c, [_, oh, ow]) = (self.c, self.c.output());
        let [_, kh, kw] = c.kernel;
        let mut pairs = Vec::with_capacity(self.points * self.taps);
        for t in 0..self.taps {
            let taps = [t / (kh * kw), t / kw % kh, t % kw];
            for p in 0..self.points {
                let points = [p / (oh * ow), p / ow % oh, p % ow];
                let source = |axis: usize| {
                    let at = points[axis] * c.stride[axis] + taps[axis] * c.dilation[axis];
                    at.checked_sub(c.pad[axis]).filter(|&at| at < c.input[axis])
                };
                if let (Some(z), Some(y), Some(x)) = (source(0), source(1), source(2)) {
                    pairs.push([p * point + t * tap, (z * c.input[1] + y) * c.input[2] + x]);
                }
            }
        }
        pairs
    }

    /// The images' y of group `g` as one matrix of made channels, in `room` where there are several.
    fn joined<'a, T: Real>(&self, g: usize, y: &'a [T], room: &'a mut [T]) -> &'a [T] {
        if self.c.batch == 1 {
            return &y[g * room.len()..][..room.len()];
        }
        self.each_row(g, |row, at| room[row..][..self.points].copy_from_slice(&y[at..][..self.points]));
        room
    }

    /// `f(where it is in that matrix, where in y)` for each image and each channel of group `g`.
    fn each_row(&self, g: usize, mut f: impl FnMut(usize, usize)) {
        for i in 0..self.c.batch {
            for m in 0..self.made {
                f(m * self.all + i * self.points, (i * self.c.out_channels + g * self.made + m) * self.points);
            }
        }
    }
}

/// The windows of a group's images.
struct WindowMatrix<'a> {
    s: &'a WindowSizes<'a>,
    /// Distances of points and taps.
    point: usize,
    tap: usize,
    pairs: Vec<[usize; 2]>,
}

impl WindowMatrix<'_> {
    /// Calls `f` with each image's channels of group `g`, by threads that have channels of their own: where it begins in x and in the
    /// matrix.
    fn each_channel(&self, g: usize, f: impl Fn(usize, usize) + Sync) {
        let s = self.s;
        share(s.each, s.sums * s.all, |channel| {
            for i in 0..s.c.batch {
                let x = (i * s.c.in_channels + g * s.each + channel) * s.image;
                f(x, i * s.points * self.point + channel * s.taps * self.tap);
            }
        });
    }

    fn lay<T: Real>(&self, g: usize, x: &[T], matrix: &mut [T]) {
        matrix.fill(T::ZERO);
        let matrix = SendPtr(matrix.as_mut_ptr());
        self.each_channel(g, |x_at, at| {
            let x = &x[x_at..][..self.s.image];
            // SAFETY: pairs are in the matrix; each channel has places of its own.
            self.pairs.iter().for_each(|&[to, from]| unsafe { *matrix.add(at + to).0 = x[from] });
        });
    }

    /// Adds what is at the windows to the image.
    fn collect<T: Real>(&self, g: usize, matrix: &[T], x: &mut [T]) {
        let x = SendPtr(x.as_mut_ptr());
        self.each_channel(g, |x_at, at| {
            // SAFETY: each channel has an image of its own.
            let x = unsafe { x.slice(x_at, self.s.image) };
            self.pairs.iter().for_each(|&[from, to]| x[to] += matrix[at + from]);
        });
    }
}

/// Bytes of the large buffers that the convolution or one of its gradients works in.
pub(super) fn scratch<T: Real>(c: &Conv) -> usize {
    let s = WindowSizes::new(c);
    scratch::counted((s.sums + s.made) * s.all * size_of::<T>())
}

/// y = x * w + bias, of slices that have the sizes.
pub(super) fn forward<T: Real>(c: &Conv, x: &[T], w: &[T], bias: Option<&[T]>, y: &mut [T]) {
    let s = WindowSizes::new(c);
    let windows = s.in_columns();
    scratch::with((s.sums + s.made) * s.all, |room: &mut [T]| {
        let (columns, made) = room.split_at_mut(s.sums * s.all);
        for g in 0..c.group {
            windows.lay(g, x, columns);
            let w = Mat::new(&w[g * s.made * s.sums..], s.made, s.sums);
            let one = c.batch == 1;
            let to = if one { &mut y[g * made.len()..][..made.len()] } else { &mut *made };
            matmul(w, Mat::new(columns, s.sums, s.all), MatMut::new(to, s.made, s.all), Output::Write);
            if let Some(b) = bias {
                let rows = to.chunks_exact_mut(s.all).zip(&b[g * s.made..]);
                rows.for_each(|(row, b)| row.iter_mut().for_each(|v| *v += *b));
            }
            if !one {
                s.each_row(g, |row, at| y[at..][..s.points].copy_from_slice(&made[row..][..s.points]));
            }
        }
    });
}

/// The gradient of x from that of y, of slices that have the sizes.
pub(super) fn data<T: Real>(c: &Conv, gy: &[T], w: &[T], gx: &mut [T], output: Output) {
    let s = WindowSizes::new(c);
    let windows = s.in_rows();
    if output == Output::Write {
        gx.fill(T::ZERO);
    }
    scratch::with((s.sums + s.made) * s.all, |room: &mut [T]| {
        let (rows, made) = room.split_at_mut(s.sums * s.all);
        for g in 0..c.group {
            let gy = Mat::new(s.joined(g, gy, made), s.made, s.all);
            let w = Mat::new(&w[g * s.made * s.sums..], s.made, s.sums);
            matmul(gy.t(), w, MatMut::new(rows, s.all, s.sums), Output::Write);
            windows.collect(g, rows, gx);
        }
    });
}

/// The gradient of w from that of y, of slices that have the sizes.
pub(super) fn weight<T: Real>(c: &Conv, gy: &[T], x: &[T], gw: &mut [T], output: Output) {
    let s = WindowSizes::new(c);
    let windows = s.in_rows();
    scratch::with((s.sums + s.made) * s.all, |room: &mut [T]| {
        let (rows, made) = room.split_at_mut(s.sums * s.all);
        for g in 0..c.group {
            windows.lay(g, x, rows);
            let gy = Mat::new(s.joined(g, gy, made), s.made, s.all);
            let gw = MatMut::new(&mut gw[g * s.made * s.sums..][..s.made * s.sums], s.made, s.sums);
            matmul(gy, Mat::new(rows, s.all, s.sums), gw, output);
        }
    });
}
