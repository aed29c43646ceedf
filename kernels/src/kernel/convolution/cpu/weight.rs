//! The weight gradient: for each tap and channel, the sum over points of source times output gradient.

use super::geometry::{Bands, Geometry, PanelOrder, RowBand};
use super::pack::{Move, PackingMode, placed};
use crate::array::Output;
use crate::array::scratch::{self, Scratch};
use crate::dtype::Real;
use crate::gemm::tile::Tiles;
use crate::pool::tasks::SendPtr;
use crate::pool::{self, Pace};
use crate::simd::lanes::{Choose, Lanes, dispatch};
use std::cell::Cell;

/// Bytes of one panel of sums.
const PANEL: usize = 300 << 10;
/// Bytes of a copied band.
const BAND: usize = 160 << 10;
/// Points of a band: its gradients should stay near.
const POINTS: usize = 512;
/// Tasks that the grid aims at, and parts of the batch that get sums of their own, at most.
const TASKS: usize = 16;
const PARTS: usize = 8;
/// Multiplications that are worth a task.
const TASK: usize = 1 << 20;

/// The weight gradient of one group.
pub(super) struct GroupWeightGradient<'a, T> {
    pub g: &'a Geometry,
    pub x: SendPtr<T>,
    pub gy: SendPtr<T>,
    pub gw: SendPtr<T>,
    pub output: Output,
}

impl<T: Real> GroupWeightGradient<'_, T> {
    /// # Safety
    /// The pointers are to a group's first channel of tensors that have the geometry's sizes.
    pub unsafe fn run(self) {
        dispatch(self);
    }
}

impl<T: Real> Choose<T> for GroupWeightGradient<'_, T> {
    fn with<L: Lanes<T>>(self) {
        Panels::<T, L>::new(&self).run();
    }
}

/// The weights cut into panels: some channels of the source by two vectors of lanes.
struct Panels<'a, T, L> {
    a: &'a GroupWeightGradient<'a, T>,
    channels: usize,
    bands: Bands,
    points: Scratch<isize>,
    across: usize,
    count: usize,
    /// Numbers in one panel.
    size: usize,
    parts: usize,
    lanes: std::marker::PhantomData<L>,
}

// SAFETY: pointers are behind SendPtr; L is a name only.
unsafe impl<T: Sync, L> Sync for Panels<'_, T, L> {}

/// One panel's place.
struct Panel {
    channel: usize,
    channels: usize,
    lane: usize,
    lanes: usize,
    width: usize,
}

/// The channels of a panel.
fn block<T: Real, L: Lanes<T>>(g: &Geometry) -> usize {
    let per = g.taps().max(1) * 2 * L::N * size_of::<T>();
    let down = g.channels.div_ceil((PANEL / per).max(1)).max(1);
    g.channels.div_ceil(down)
}

fn bands<T: Real>(g: &Geometry, channels: usize) -> Bands {
    Bands::new(g, channels, BAND / size_of::<T>(), POINTS)
}

/// Adds up the bytes of the large buffers that a weight gradient works in.
pub(super) struct WeightGradientScratch<'a> {
    pub g: &'a Geometry,
    pub bytes: &'a Cell<usize>,
}

impl<T: Real> Choose<T> for WeightGradientScratch<'_> {
    fn with<L: Lanes<T>>(self) {
        let bands = bands::<T>(self.g, block::<T, L>(self.g));
        let points = bands.rows * bands.columns;
        let task = (scratch::line::<T>(bands.len) + points * if self.g.lanes > L::N { 2 * L::N } else { L::N })
            * size_of::<T>();
        let tasks = pool::num_threads().min(bands.items(self.g));
        self.bytes.set(scratch::counted(points * size_of::<isize>()) + tasks * scratch::counted(task));
    }
}

impl<'a, T: Real, L: Lanes<T>> Panels<'a, T, L> {
    fn new(a: &'a GroupWeightGradient<'a, T>) -> Self {
        let g = a.g;
        let channels = block::<T, L>(g);
        let across = g.lanes.div_ceil(2 * L::N);
        let count = g.channels.div_ceil(channels) * across;
        let bands = bands::<T>(g, channels);
        let parts = TASKS.div_ceil(count).min(g.work() / TASK).min(bands.items(g)).clamp(1, PARTS);
        let size = scratch::line::<T>(channels * g.taps() * 2 * L::N);
        let points = bands.point_table(g);
        Panels { a, channels, bands, points, across, count, size, parts, lanes: std::marker::PhantomData }
    }

    fn panel(&self, p: usize) -> Panel {
        let g = self.a.g;
        let (channel, lane) = (p / self.across * self.channels, p % self.across * 2 * L::N);
        let width = if g.lanes - lane > L::N { 2 * L::N } else { L::N };
        Panel {
            channel,
            channels: self.channels.min(g.channels - channel),
            lane,
            lanes: (g.lanes - lane).min(width),
            width,
        }
    }

    fn run(&self) {
        let group = TASKS.div_ceil(self.parts).min(self.count);
        for from in (0..self.count).step_by(group) {
            let n = group.min(self.count - from);
            scratch::with(self.size * self.parts * n, |sums: &mut [T]| self.group(from, n, SendPtr(sums.as_mut_ptr())));
        }
    }

    /// Panels `from..from + n`: sums of each part, then their total in the parts' order.
    fn group(&self, from: usize, n: usize, sums: SendPtr<T>) {
        let items = self.bands.items(self.a.g);
        pool::run(n * self.parts, &|t| {
            let (p, part) = (t / self.parts, t % self.parts);
            // SAFETY: each task has its own sums.
            let sums = unsafe { sums.slice(t * self.size, self.size) };
            sums.fill(T::ZERO);
            self.task(&self.panel(from + p), items * part / self.parts..items * (part + 1) / self.parts, sums);
        });
        let finish = |p: usize| {
            // SAFETY: the panels' sums are apart, and complete.
            let all = unsafe { sums.slice(p * self.parts * self.size, self.parts * self.size) };
            self.finish(&self.panel(from + p), all);
        };
        if n * self.size < 1 << 14 { (0..n).for_each(finish) } else { pool::run(n, &finish) }
    }

    fn task(&self, p: &Panel, items: std::ops::Range<usize>, sums: &mut [T]) {
        let g = self.a.g;
        let (copy, rows) = (scratch::line::<T>(self.bands.len), self.points.len() * p.width);
        let taps = self.bands.tap_table(g, p.channels, PanelOrder::Row);
        scratch::with(copy + rows, |buffer: &mut [T]| {
            let (copy, rows) = buffer.split_at_mut(copy);
            let mut pace = Pace::new();
            for i in items {
                pace.step(self.points.len() * taps.len());
                let item = self.bands.item(g, i);
                let source = self.a.x.0.wrapping_add(p.channel * g.x.channel).cast_const();
                // SAFETY: the item and the channels are inside the source.
                let x = unsafe { placed(g, &self.bands, item, source, p.channels, copy) };
                self.gather(p, item, rows);
                self.add(p, item, x, &taps, rows, sums);
            }
        });
    }

    /// The item's gradients as rows of lanes.
    fn gather(&self, p: &Panel, item: RowBand, rows: &mut [T]) {
        let g = self.a.g;
        let runs = [(0, item.rows * item.columns, item.target(g, 0, 0))];
        let tensor = SendPtr(self.a.gy.0.wrapping_add(p.lane * g.y.channel));
        let (channel, point, how) = (g.y.channel, g.y.at[2], PackingMode::Gather);
        let from =
            Move { rows: rows.as_mut_ptr(), width: p.width, lanes: p.lanes, tensor, channel, point, runs: &runs, how };
        // SAFETY: the points of a forward geometry lie one after another in gy.
        unsafe { L::enter(from) }
    }

    fn add(&self, p: &Panel, item: RowBand, x: *const T, taps: &[isize], rows: &[T], sums: &mut [T]) {
        let tiles = Tiles {
            x,
            off: &self.points[..item.rows * item.columns],
            lane: taps,
            w: rows.as_ptr(),
            w_stride: p.width,
            vectors: p.width / L::N,
            init: sums.as_ptr(),
            init_stride: p.width,
            out: sums.as_mut_ptr(),
            out_stride: p.width,
        };
        // SAFETY: the tables stay inside the band; `rows` has a row for each point, `sums` for each tap.
        unsafe { L::enter(tiles) }
    }

    fn finish(&self, p: &Panel, sums: &mut [T]) {
        let g = self.a.g;
        let (total, rest) = sums.split_at_mut(self.size);
        for part in rest.chunks_exact(self.size) {
            total.iter_mut().zip(part).for_each(|(t, &v)| *t += v);
        }
        let base = self.a.gw.0.wrapping_add(p.channel * g.w.channel + p.lane * g.w.lane);
        for (row, at) in total.chunks_exact(p.width).zip(g.weight_table(p.channels, PanelOrder::Row)) {
            for (l, &v) in row[..p.lanes].iter().enumerate() {
                // SAFETY: channels, taps and lanes of the panel are inside the weights, and no other panel has them.
                unsafe {
                    let to = base.add(at + l * g.w.lane);
                    *to = if self.a.output == Output::Accumulate { *to + v } else { v };
                }
            }
        }
    }
}
