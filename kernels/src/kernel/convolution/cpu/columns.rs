//! Few points and many weights, channels first: products of the weights, as they lie, with the windows of all images as a matrix. To turn
//! the weights into panels, or their gradient out of these, would take longer than all sums.

use super::geometry::Geometry;
use super::{ChannelOrder, Conv, strided};
use crate::array::{Output, scratch};
use crate::dtype::Real;
use crate::gemm::{Mat, MatMut, matmul};
use crate::pool::tasks::{SendPtr, share};
use crate::simd::lanes::{Choose, Lanes, WithLanes, dispatch};
use crate::tuned::{self, Percents};
use std::ops::Range;

/// Points of the images that are a matrix together, at most.
const POINTS: usize = 1 << 8;
/// Channels that are made, at least.
const MADE: usize = 16;
/// Points of an image of y from which on the gradient of x is faster by bands that lie in place.
const DATA_POINTS: usize = 9;

/// Whether a convolution is one of these.
pub(super) fn suits(c: &Conv) -> bool {
    c.out_channels / c.group >= MADE && pays(c, tuned::get().columns(0))
}

/// Whether the gradient of x is. Where no phase meets padding, bands are not copied, and sums with padding left out: of many images they
/// are faster then, but for the smallest; so are gathered points of kernels of one.
pub(super) fn suits_data(c: &Conv) -> bool {
    let points = points(c);
    let in_place = || points >= DATA_POINTS && Geometry::data(c).iter().all(Geometry::reads_inside);
    pays(c, tuned::get().columns(1)) && (c.batch * points <= POINTS || !strided::suits(c) && !in_place())
}

/// Whether the gradient of w is.
pub(super) fn suits_weight(c: &Conv) -> bool {
    pays(c, tuned::get().columns(2))
}

/// Points of an image of y.
fn points(c: &Conv) -> usize {
    c.output().iter().product()
}

fn pays(c: &Conv, [few, many]: [&Percents; 2]) -> bool {
    let points = points(c);
    let all = c.batch * points;
    let (percents, at) = if all <= POINTS { (few, all) } else { (many, points) };
    // Of many images without strides, bands are as fast or faster.
    let may = all <= POINTS || c.stride != [1; 3];
    may && c.layout == ChannelOrder::ChannelFirst && (1..=POINTS).contains(&at) && all > 0 && {
        let weights = tuned::COLUMNS_CHANNELS.map(|n| n * n * 9);
        let points = tuned::COLUMNS_SIDES.map(|n| n * n);
        tuned::percent(percents, [&weights, &points], [c.weight_len() / c.group, at]) < 100
    }
}

/// The convolutions of some images each, and their numbers in x and in y.
fn parts(c: &Conv) -> impl Iterator<Item = (Conv, Range<usize>, Range<usize>)> {
    c.in_parts((POINTS / points(c).max(1)).clamp(1, c.batch))
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
        let (image, points) = (c.input.iter().product(), points(c));
        WindowSizes { c, each, made, taps, image, points, sums: each * taps, all: c.batch * points }
    }

    /// The place on an axis that a point and a tap meet at, if it is inside the image.
    fn source(&self, axis: usize, point: usize, tap: usize) -> Option<usize> {
        let at = point * self.c.stride[axis] + tap * self.c.dilation[axis];
        at.checked_sub(self.c.pad[axis]).filter(|&at| at < self.c.input[axis])
    }

    /// Each point and each tap that meet inside the image: where they are in a matrix whose rows are windows, and in the image.
    fn pairs(&self) -> Vec<[usize; 2]> {
        let (c, [_, oh, ow]) = (self.c, self.c.output());
        let [_, kh, kw] = c.kernel;
        let mut pairs = Vec::with_capacity(self.points * self.taps);
        for t in 0..self.taps {
            let taps = [t / (kh * kw), t / kw % kh, t % kw];
            for p in 0..self.points {
                let points = [p / (oh * ow), p / ow % oh, p % ow];
                let source = |axis: usize| self.source(axis, points[axis], taps[axis]);
                if let (Some(z), Some(y), Some(x)) = (source(0), source(1), source(2)) {
                    pairs.push([p * self.sums + t, (z * c.input[1] + y) * c.input[2] + x]);
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

    /// The windows of group `g` as columns, by threads that have channels of their own.
    fn lay<T: Real>(&self, g: usize, x: &[T], matrix: &mut [T]) {
        let (matrix, phases) = (SendPtr(matrix.as_mut_ptr()), Phases::new(self));
        share(self.each, self.sums * self.all, |channel| {
            let (x, to) = (&x[self.start(0, g, channel)..], matrix.add(channel * self.taps * self.all).0);
            dispatch(ChannelWindows { s: self, phases: &phases, x, to });
        });
    }

    /// Where a channel of group `g` begins in x.
    fn start(&self, image: usize, g: usize, channel: usize) -> usize {
        (image * self.c.in_channels + g * self.each + channel) * self.image
    }

    /// Adds what is at the windows, which are rows, to the images.
    fn collect<T: Real>(&self, g: usize, matrix: &[T], x: &mut [T]) {
        let (x, pairs) = (SendPtr(x.as_mut_ptr()), self.pairs());
        share(self.each, self.sums * self.all, |channel| {
            for i in 0..self.c.batch {
                let matrix = &matrix[i * self.points * self.sums + channel * self.taps..];
                // SAFETY: each channel has an image of its own.
                let x = unsafe { x.slice(self.start(i, g, channel), self.image) };
                pairs.iter().for_each(|&[from, to]| x[to] += matrix[from]);
            }
        });
    }
}

/// The phases of an image's rows: columns that are a stride apart, one after another, with zeros for the padding. A tap's numbers at a row
/// of points lie side by side in one of them.
struct Phases {
    stride: usize,
    /// Numbers of a row of the image, and of a phase.
    columns: usize,
    width: usize,
    /// For each phase of a row: the first column that it has, and where it begins and ends.
    parts: Vec<[usize; 3]>,
    /// Points of a row, and for each tap and each row of points where they go, and where they are in the phases; zeros follow the last one.
    wide: usize,
    runs: Vec<[usize; 2]>,
}

impl Phases {
    fn new(s: &WindowSizes) -> Phases {
        let (c, [slices, rows, wide]) = (s.c, s.c.output());
        let (stride, pad, [_, high, columns], [_, kh, kw]) = (c.stride[2], c.pad[2], c.input, c.kernel);
        let width = wide + (kw - 1) * c.dilation[2] / stride;
        let part = |phase: usize| {
            let place = |column: usize| (column + pad).saturating_sub(phase).div_ceil(stride).min(width);
            let begin = place(0);
            [(begin * stride + phase).saturating_sub(pad), begin, place(columns).max(begin)]
        };
        let mut runs = Vec::with_capacity(s.taps * slices * rows);
        for t in 0..s.taps {
            let (kz, ky, at) = (t / (kh * kw), t / kw % kh, t % kw * c.dilation[2]);
            for point in 0..slices * rows {
                let row = s.source(0, point / rows, kz).zip(s.source(1, point % rows, ky));
                let from = row.map_or(c.input[0] * high * stride * width, |(z, y)| {
                    ((z * high + y) * stride + at % stride) * width + at / stride
                });
                runs.push([t * s.all + point * wide, from]);
            }
        }
        Phases { stride, columns, width, parts: (0..stride).map(part).collect(), wide, runs }
    }
}

/// A channel's numbers at all points of all images, for each tap.
struct ChannelWindows<'a, T> {
    s: &'a WindowSizes<'a>,
    phases: &'a Phases,
    /// From the first image's channel on.
    x: &'a [T],
    to: *mut T,
}

impl<T: Real> Choose<T> for ChannelWindows<'_, T> {
    fn with<L: Lanes<T>>(self) {
        let Phases { stride, columns, width, .. } = *self.phases;
        scratch::with((self.s.image / columns * stride + 1) * width + L::N, |room: &mut [T]| {
            // SAFETY: the machine has what `dispatch` chose; the windows have a place for each tap and each point.
            unsafe { L::enter(PhaseWindows { all: self, room }) }
        });
    }
}

struct PhaseWindows<'a, T> {
    all: ChannelWindows<'a, T>,
    room: &'a mut [T],
}

impl<T: Real> WithLanes<T> for PhaseWindows<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let PhaseWindows { all: ChannelWindows { s, phases, x, to }, room } = self;
        let Phases { stride, columns, width, wide, .. } = *phases;
        // The padding's places are the same for all images.
        room.fill(T::ZERO);
        let whole = wide / L::N * L::N;
        for image in 0..s.c.batch {
            let x = &x[image * s.c.in_channels * s.image..][..s.image];
            for (rows, x) in room.chunks_exact_mut(stride * width).zip(x.chunks_exact(columns)) {
                for (row, &[first, begin, end]) in rows.chunks_exact_mut(width).zip(&phases.parts) {
                    let inside = &mut row[begin..end];
                    assert!(inside.is_empty() || first + (inside.len() - 1) * stride < x.len(), "the row's columns");
                    for (i, to) in inside.iter_mut().enumerate() {
                        // SAFETY: as it was checked.
                        *to = unsafe { *x.get_unchecked(first + i * stride) };
                    }
                }
            }
            for &[at, from] in &phases.runs {
                let (from, to) = (room[from..][..wide].as_ptr(), to.wrapping_add(image * s.points + at));
                // SAFETY: the run is in the room, which has a vector more; the places are the caller's.
                unsafe {
                    for j in (0..whole).step_by(L::N) {
                        L::store(to.add(j), L::load(from.add(j)));
                    }
                    if whole < wide {
                        L::store_part(to.add(whole), L::load(from.add(whole)), wide - whole);
                    }
                }
            }
        }
    }
}

/// Bytes of the large buffers that the convolution or one of its gradients works in.
pub(super) fn scratch<T: Real>(c: &Conv) -> usize {
    let part = parts(c).next().map_or_else(|| c.clone(), |part| part.0);
    let s = WindowSizes::new(&part);
    scratch::counted((s.sums + s.made) * s.all * size_of::<T>())
}

/// y = x * w + bias, of slices that have the sizes.
pub(super) fn forward<T: Real>(c: &Conv, x: &[T], w: &[T], bias: Option<&[T]>, y: &mut [T]) {
    parts(c).for_each(|(c, of_x, of_y)| forward_part(&c, &x[of_x], w, bias, &mut y[of_y]));
}

fn forward_part<T: Real>(c: &Conv, x: &[T], w: &[T], bias: Option<&[T]>, y: &mut [T]) {
    let s = WindowSizes::new(c);
    scratch::with((s.sums + s.made) * s.all, |room: &mut [T]| {
        let (columns, made) = room.split_at_mut(s.sums * s.all);
        for g in 0..c.group {
            s.lay(g, x, columns);
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
    parts(c).for_each(|(c, of_x, of_y)| data_part(&c, &gy[of_y], w, &mut gx[of_x], output));
}

fn data_part<T: Real>(c: &Conv, gy: &[T], w: &[T], gx: &mut [T], output: Output) {
    let s = WindowSizes::new(c);
    if output == Output::Write {
        gx.fill(T::ZERO);
    }
    scratch::with((s.sums + s.made) * s.all, |room: &mut [T]| {
        let (rows, made) = room.split_at_mut(s.sums * s.all);
        for g in 0..c.group {
            let gy = Mat::new(s.joined(g, gy, made), s.made, s.all);
            let w = Mat::new(&w[g * s.made * s.sums..], s.made, s.sums);
            matmul(gy.t(), w, MatMut::new(rows, s.all, s.sums), Output::Write);
            s.collect(g, rows, gx);
        }
    });
}

/// The gradient of w from that of y, of slices that have the sizes.
pub(super) fn weight<T: Real>(c: &Conv, gy: &[T], x: &[T], gw: &mut [T], output: Output) {
    for (i, (c, of_x, of_y)) in parts(c).enumerate() {
        weight_part(&c, &gy[of_y], &x[of_x], gw, if i > 0 { Output::Accumulate } else { output });
    }
}

fn weight_part<T: Real>(c: &Conv, gy: &[T], x: &[T], gw: &mut [T], output: Output) {
    let s = WindowSizes::new(c);
    scratch::with((s.sums + s.made) * s.all, |room: &mut [T]| {
        let (columns, made) = room.split_at_mut(s.sums * s.all);
        for g in 0..c.group {
            s.lay(g, x, columns);
            let gy = Mat::new(s.joined(g, gy, made), s.made, s.all);
            let gw = MatMut::new(&mut gw[g * s.made * s.sums..][..s.made * s.sums], s.made, s.sums);
            matmul(gy, Mat::new(columns, s.sums, s.all).t(), gw, output);
        }
    });
}
