//! Convolutions of each channel of images by itself, with one kernel or more: over planes that are padded and laid out so that what a
//! tap reads for all places of the kernel is one stretch of numbers.
//!
//! A band of rows of the source is copied with zeros around it, rows and columns of one remainder modulo the stride together. In
//! that copy the number that a tap reads for place (i, j) is at its own distance from `i * pitch + j`, so one loop over a whole plane, edges and
//! all, makes the results of all places; those at the end of a row, where there is none, are left out.

mod layout;
mod loops;
mod narrow;

use super::depthwise::Pass;
use super::{ChannelOrder, Conv};
use crate::array::{Output, scratch};
use crate::dtype::Real;
use crate::pool::tasks::SendPtr;
use crate::pool::{self, Pace};
use crate::simd::lanes::{Choose, Lanes, dispatch};
use layout::{PlaneLayout, Results};
use loops::{BandCopy, BandStore, GradientRows, PlaneCorrelation, Products};
use narrow::NarrowRows;

/// Elements of the copy of a band of one row, at most.
const LARGEST: usize = 1 << 15;
/// Multiplications that are worth a task.
const TASK: usize = 1 << 17;

/// All channels of a convolution with one input channel a group.
pub(super) struct DepthwisePlanes<'a, T> {
    pub c: &'a Conv,
    pub pass: Pass,
    pub x: SendPtr<T>,
    pub w: SendPtr<T>,
    pub y: SendPtr<T>,
    pub bias: Option<&'a [T]>,
}

/// Whether these loops take it: images of more than one channel, with padding and strides that are not most of the work.
pub(super) fn suits(c: &Conv) -> bool {
    let each = c.layout == ChannelOrder::ChannelFirst && c.group > 1 && c.in_channels == c.group && c.out_channels > 0;
    let flat = c.input[0] == 1 && c.kernel[0] == 1 && c.pad[0] == 0;
    let extent = |a: usize| c.dilation[a].saturating_mul(c.kernel[a].max(1) - 1);
    let near = (1..3).all(|a| {
        let size = c.input[a] + 8;
        extent(a) <= size && c.pad[a] <= size && c.stride[a] <= 4 && c.kernel[a] > 0
    });
    each && flat && near && !c.output().contains(&0) && !c.input.contains(&0) && {
        let most = LARGEST;
        PlaneLayout::forward(c).least() <= most && PlaneLayout::data(c).least() <= most
    }
}

impl<T: Real> DepthwisePlanes<'_, T> {
    /// # Safety
    /// The pointers are to tensors that have the convolution's sizes, for which [`suits`] holds.
    pub unsafe fn run(&self) {
        dispatch(self);
    }

    /// Maps of an input channel.
    fn maps(&self) -> usize {
        self.c.out_channels / self.c.group
    }

    fn taps(&self) -> usize {
        self.c.kernel[1] * self.c.kernel[2]
    }

    /// Where a plane of channel `channel` of sample `n` is in x, and one of map `map` in y.
    fn x_at(&self, n: usize, channel: usize) -> usize {
        (n * self.c.in_channels + channel) * self.c.input[1] * self.c.input[2]
    }

    fn y_at(&self, n: usize, map: usize) -> usize {
        let [_, height, width] = self.c.output();
        (n * self.c.out_channels + map) * height * width
    }
}

impl<T: Real> Choose<T> for &DepthwisePlanes<'_, T> {
    fn with<L: Lanes<T>>(self) {
        let c = self.c;
        let weight = matches!(self.pass, Pass::Weight(_));
        let layout = if matches!(self.pass, Pass::Data(_)) { PlaneLayout::data(c) } else { PlaneLayout::forward(c) };
        let count = if weight { c.group } else { c.group * c.batch };
        let points = layout.results.iter().map(|r| r.points[0] * r.points[1] * r.taps.len()).sum::<usize>();
        let work = points * self.maps() * if weight { c.batch } else { 1 };
        let join = (TASK / work.max(1)).clamp(1, count.max(1));
        let products = self.maps() * self.taps() * L::N;
        // With masks that are branches, copied planes are four times as fast.
        let is_narrow = L::MASKS && narrow::suits::<T>(c, self.pass, L::N);
        let narrow = is_narrow.then(|| NarrowRows::new::<T, L>(c, self.pass));
        let room = narrow.as_ref().map_or_else(|| layout.room(self.pass, products), |rows| rows.room(products));
        pool::run(count.div_ceil(join), &|t| {
            let (mut taps, mut pace) = (TapWeights::default(), Pace::new());
            scratch::with(room, |room: &mut [T]| {
                for i in t * join..count.min((t + 1) * join) {
                    let (n, channel) = (i / c.group, i % c.group);
                    let samples = if weight { 0..c.batch } else { n..n + 1 };
                    let planes = ChannelPlanes { a: self, layout: &layout, channel, samples };
                    // SAFETY: L is what the machine has; no other task writes these channels of the samples.
                    unsafe {
                        match &narrow {
                            Some(rows) if L::MASKS => planes.run_narrow::<L>(rows, room, &mut pace),
                            _ => planes.run::<L>(room, &mut taps, &mut pace),
                        }
                    }
                }
            })
        });
    }
}

/// Distances of taps, and their weights.
#[derive(Default)]
struct TapWeights<T> {
    at: Vec<usize>,
    w: Vec<T>,
}

/// A channel of some samples, with its maps.
struct ChannelPlanes<'a, 'b, T> {
    a: &'a DepthwisePlanes<'b, T>,
    layout: &'a PlaneLayout,
    channel: usize,
    samples: std::ops::Range<usize>,
}

impl<T: Real> ChannelPlanes<'_, '_, T> {
    /// Only the loops themselves are compiled for the instruction set: what is in a closure is not.
    ///
    /// # Safety
    /// No other task writes these channels of the samples.
    unsafe fn run<L: Lanes<T>>(self, room: &mut [T], taps: &mut TapWeights<T>, pace: &mut Pace) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.a.pass {
                Pass::Forward => self.forward::<L>(room, taps, pace),
                Pass::Data(output) => self.data::<L>(output, room, taps, pace),
                Pass::Weight(output) => self.weight::<L>(output, room, taps, pace),
            }
        }
    }
}

impl<T: Real> ChannelPlanes<'_, '_, T> {
    /// Distances and weights of the taps of some results.
    #[inline(always)]
    fn weights(&self, r: &Results, map: usize, plane: usize, table: &mut TapWeights<T>) {
        table.at.clear();
        table.w.clear();
        table.at.extend(r.taps.iter().map(|t| self.layout.distance(t, plane)));
        // SAFETY: a weight of the map.
        table.w.extend(r.taps.iter().map(|t| unsafe { *self.a.w.0.add(map * self.a.taps() + t.number) }));
    }

    unsafe fn forward<L: Lanes<T>>(&self, room: &mut [T], table: &mut TapWeights<T>, pace: &mut Pace) {
        let (a, l) = (self.a, self.layout);
        let (rows, r) = (l.rows(), &l.results[0]);
        let plane = l.plane(rows);
        let (copy, sums) = room.split_at_mut(plane * l.phases());
        for n in self.samples.clone() {
            // SAFETY: the channel's plane.
            let source = unsafe { a.x.read(a.x_at(n, self.channel), l.source[0] * l.source[1]) };
            for first in (0..r.points[0]).step_by(rows) {
                let rows = rows.min(r.points[0] - first);
                // SAFETY: L is what the machine has.
                unsafe { L::enter(BandCopy { layout: l, source, first, rows, to: &mut *copy, plane }) }
                for map in self.channel * a.maps()..(self.channel + 1) * a.maps() {
                    pace.step(rows * l.pitch());
                    self.weights(r, map, plane, table);
                    let (start, TapWeights { at, w }) = (a.bias.map_or(T::ZERO, |b| b[map]), &*table);
                    // SAFETY: the copy has what the taps reach; the task has the map's plane alone.
                    unsafe {
                        let (from, n) = (&*copy, rows * l.pitch());
                        L::enter(PlaneCorrelation::<T, false> { from, at, w, start, sums: &mut *sums, n });
                    }
                    // SAFETY: likewise.
                    unsafe {
                        let (to, output) = (a.y.slice(a.y_at(n, map), l.target[0] * l.target[1]), Output::Write);
                        L::enter(BandStore { layout: l, results: r, first, rows, sums: &*sums, to, output });
                    }
                }
            }
        }
    }

    unsafe fn data<L: Lanes<T>>(&self, output: Output, room: &mut [T], table: &mut TapWeights<T>, pace: &mut Pace) {
        let (a, l) = (self.a, self.layout);
        let (rows, [points, _]) = (l.rows(), l.points());
        let (plane, size) = (l.plane(rows), l.sums(rows));
        let (copy, sums) = room.split_at_mut(plane);
        for n in self.samples.clone() {
            for first in (0..points).step_by(rows) {
                let rows = rows.min(points - first);
                for m in 0..a.maps() {
                    let map = self.channel * a.maps() + m;
                    // SAFETY: the map's plane; L is what the machine has.
                    unsafe {
                        let source = a.y.read(a.y_at(n, map), l.source[0] * l.source[1]);
                        L::enter(BandCopy { layout: l, source, first, rows, to: &mut *copy, plane });
                    }
                    for (r, sums) in l.results.iter().zip(sums.chunks_exact_mut(size)) {
                        pace.step(rows * l.pitch());
                        self.weights(r, map, plane, table);
                        let (from, n, start, TapWeights { at, w }) = (&*copy, rows * l.pitch(), T::ZERO, &*table);
                        // SAFETY: the copy has what the taps reach.
                        unsafe {
                            match m {
                                0 => L::enter(PlaneCorrelation::<T, false> { from, at, w, start, sums, n }),
                                _ => L::enter(PlaneCorrelation::<T, true> { from, at, w, start, sums, n }),
                            }
                        }
                    }
                }
                for (results, sums) in l.results.iter().zip(sums.chunks_exact(size)) {
                    // SAFETY: the task has the channel's plane alone.
                    unsafe {
                        let to = a.x.slice(a.x_at(n, self.channel), l.target[0] * l.target[1]);
                        L::enter(BandStore { layout: l, results, first, rows, sums, to, output });
                    }
                }
            }
        }
    }

    unsafe fn weight<L: Lanes<T>>(&self, output: Output, room: &mut [T], table: &mut TapWeights<T>, pace: &mut Pace) {
        let (a, l) = (self.a, self.layout);
        let (rows, r, taps) = (l.rows(), &l.results[0], self.a.taps());
        let plane = l.plane(rows);
        table.at.clear();
        table.at.extend(r.taps.iter().map(|t| l.distance(t, plane)));
        let (copy, room) = room.split_at_mut(plane * l.phases());
        let (gradient, sums) = room.split_at_mut(l.sums(rows));
        let sums = &mut sums[..a.maps() * taps * L::N];
        sums.fill(T::ZERO);
        for n in self.samples.clone() {
            // SAFETY: the channel's plane.
            let source = unsafe { a.x.read(a.x_at(n, self.channel), l.source[0] * l.source[1]) };
            for first in (0..r.points[0]).step_by(rows) {
                let rows = rows.min(r.points[0] - first);
                // SAFETY: L is what the machine has.
                unsafe { L::enter(BandCopy { layout: l, source, first, rows, to: &mut *copy, plane }) }
                for m in 0..a.maps() {
                    let size = rows * l.pitch();
                    pace.step(size);
                    // SAFETY: the map's plane; the copy has what the taps reach.
                    unsafe {
                        let gy = a.y.read(a.y_at(n, self.channel * a.maps() + m), l.target[0] * l.target[1]);
                        let from = &gy[first * l.target[1]..][..rows * l.target[1]];
                        L::enter(GradientRows { layout: l, from, to: &mut *gradient });
                        let sums = &mut sums[m * taps * L::N..];
                        L::enter(Products { from: copy, at: &table.at, y: gradient, n: size, sums });
                    }
                }
            }
        }
        // SAFETY: no other task has these weights.
        unsafe { self.finish_weights::<L>(sums, output) }
    }

    /// Adds up the vectors of sums of each tap.
    ///
    /// # Safety
    /// No other task has the weights of the channel's maps.
    unsafe fn finish_weights<L: Lanes<T>>(&self, sums: &[T], output: Output) {
        let (a, taps) = (self.a, self.a.taps());
        for (k, sums) in sums.chunks_exact(L::N).enumerate() {
            let mut sum = sums.iter().fold(T::ZERO, |s, &v| s + v);
            if !sum.to_f64().is_finite() {
                sum = self.plainly(self.channel * a.maps() + k / taps, k % taps);
            }
            // SAFETY: a weight of one of the channel's maps.
            unsafe {
                let to = a.w.0.add(self.channel * a.maps() * taps + k);
                *to = if output == Output::Accumulate { *to + sum } else { sum };
            }
        }
    }

    /// The gradient of a weight, summed over the places alone: an infinite number in the copy meets zeros between them.
    #[cold]
    fn plainly(&self, map: usize, tap: usize) -> T {
        let (a, c) = (self.a, self.a.c);
        let [_, height, width] = c.output();
        let (k, mut sum) = ([tap / c.kernel[2], tap % c.kernel[2]], T::ZERO);
        let place = |axis: usize, i: usize| {
            (i * c.stride[axis] + k[axis - 1] * c.dilation[axis])
                .checked_sub(c.pad[axis])
                .filter(|&p| p < c.input[axis])
        };
        for n in self.samples.clone() {
            for (i, j) in (0..height).flat_map(|i| (0..width).map(move |j| (i, j))) {
                if let (Some(row), Some(column)) = (place(1, i), place(2, j)) {
                    // SAFETY: elements of the channel and of the map.
                    sum += unsafe {
                        *a.x.0.add(a.x_at(n, self.channel) + row * c.input[2] + column)
                            * *a.y.0.add(a.y_at(n, map) + i * width + j)
                    };
                }
            }
        }
        sum
    }
}
