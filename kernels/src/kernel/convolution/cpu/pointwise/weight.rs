//! The weight gradient of kernels of one point: for some panels of made channels at a time, blocks of points, of which the
//! gradients are turned once, against all channels of the source.

use super::super::Conv;
use super::super::pack::{Move, PackingMode};
use crate::array::Output;
use crate::array::scratch::{self, Scratch};
use crate::dtype::Real;
use crate::gemm::parts::ColumnOrder;
use crate::gemm::tile::{NextRows, Tiles, TilesAhead};
use crate::pool::tasks::SendPtr;
use crate::pool::{self, Pace};
use crate::simd::lanes::{Choose, Lanes, TransposeBlock, WithLanes, dispatch, transpose_or_add};
use std::cell::Cell;
use std::ops::Range;

/// Multiplications that are worth a task.
const TASK: usize = 1 << 20;
/// Points of a block, and bytes of the source's copy at most where that leaves [`FEWEST`].
const POINTS: usize = 256;
const FEWEST: usize = 64;
const COPY: usize = 256 << 10;
/// Panels that a task works on, so that a block is copied once for all of them.
const PANELS: usize = 4;
/// Tasks that the grid aims at; parts of the points that get sums of their own, and bytes of all sums, at most.
const TASKS: usize = 16;
const PARTS: usize = 8;
const SUMS: usize = 8 << 20;

/// One group's weight gradient.
pub(in super::super) struct PointwiseWeight<'a, T> {
    pub c: &'a Conv,
    /// The first channel of each tensor.
    pub x: SendPtr<T>,
    pub gy: SendPtr<T>,
    pub gw: SendPtr<T>,
    pub output: Output,
}

impl<T: Real> PointwiseWeight<'_, T> {
    /// # Safety
    /// The tensors have the sizes.
    pub unsafe fn run(self) {
        dispatch(self);
    }
}

impl<T: Real> Choose<T> for PointwiseWeight<'_, T> {
    fn with<L: Lanes<T>>(self) {
        let cut = PointwiseCut::new::<T, L>(self.c);
        scratch::with(cut.sums * cut.parts * cut.groups, |sums: &mut [T]| {
            let sums = SendPtr(sums.as_mut_ptr());
            let lane = Scratch::each(cut.channels, |ch| (ch * cut.stride) as isize);
            pool::run(cut.parts * cut.groups, &|t| {
                let (group, part) = (t / cut.parts, t % cut.parts);
                let blocks = cut.blocks * part / cut.parts..cut.blocks * (part + 1) / cut.parts;
                scratch::with(cut.copy + cut.rows, |work: &mut [T]| {
                    let (copy, rows) = work.split_at_mut(cut.copy);
                    let sums = sums.add(t * cut.sums).0;
                    let job = PointBlocks { c: &self, cut: &cut, group, blocks, lane: &lane, copy, rows, sums };
                    // SAFETY: the machine has what `dispatch` chose; each task has its own sums.
                    unsafe { L::enter(job) }
                });
            });
            pool::run(cut.groups, &|group| {
                // SAFETY: as above; the sums are complete, and of different made channels.
                unsafe {
                    L::enter(FinishPointwise {
                        c: &self,
                        cut: &cut,
                        group,
                        sums: sums.add(group * cut.parts * cut.sums),
                    })
                }
            });
        });
    }
}

/// Adds up the bytes of the large buffers that a weight gradient works in.
pub(in super::super) struct PointwiseWeightScratch<'a> {
    pub c: &'a Conv,
    pub bytes: &'a Cell<usize>,
}

impl<T: Real> Choose<T> for PointwiseWeightScratch<'_> {
    fn with<L: Lanes<T>>(self) {
        let cut = PointwiseCut::new::<T, L>(self.c);
        let tasks = pool::num_threads().min(cut.parts * cut.groups);
        let bytes = |n: usize| scratch::counted(n * size_of::<T>());
        self.bytes.set(bytes(cut.sums * cut.parts * cut.groups) + tasks * bytes(cut.copy + cut.rows));
    }
}

/// The channels of images, each of which has its points side by side.
struct PointSource<T> {
    /// The first channel of the first image, and the distance between images.
    first: SendPtr<T>,
    image: usize,
    channels: usize,
    points: usize,
}

impl<T: Real> PointSource<T> {
    /// `n` channels from `first` on, or those that there are.
    fn part(&self, first: usize, n: usize) -> PointSource<T> {
        let channels = n.min(self.channels - first);
        PointSource { first: self.first.add(first * self.points), channels, ..*self }
    }

    /// All channels of `many` points from `first` on, or of fewer where they are in several images.
    fn ahead(&self, first: usize, many: usize) -> NextRows {
        let (image, from) = (first / self.points, first % self.points);
        let at = self.first.0.wrapping_add(image * self.image + from);
        NextRows::new(at.cast_const(), self.points, self.channels, many.min(self.points - from))
    }

    /// Copies `many` points from `first` on to rows, one for each channel, `stride` apart.
    ///
    /// # Safety
    /// The tensor has them.
    unsafe fn copy(&self, first: usize, many: usize, to: &mut [T], stride: usize) {
        let mut at = 0;
        while at < many {
            let run = ColumnOrder::plain(self.points).run(first + at, many - at);
            let from = self.first.add(run.part * self.image + run.first);
            for ch in 0..self.channels {
                let to = to[ch * stride + at..][..run.count].as_mut_ptr();
                // SAFETY: the caller's promise.
                unsafe { to.copy_from_nonoverlapping(from.add(ch * self.points).0, run.count) }
            }
            at += run.count;
        }
    }
}

/// How the work is cut up, by sizes alone; lengths in numbers.
struct PointwiseCut {
    /// Channels of the source, and made ones.
    channels: usize,
    made: usize,
    /// Points of an image, of all images, and of a block.
    image: usize,
    all: usize,
    points: usize,
    blocks: usize,
    /// Between channels of the copy: not a power of two, so that they do not share cache sets.
    stride: usize,
    panels: usize,
    groups: usize,
    parts: usize,
    copy: usize,
    rows: usize,
    /// Of one group and part: `sums[panel][channel][lane]`.
    sums: usize,
}

impl PointwiseCut {
    fn new<T: Real, L: Lanes<T>>(c: &Conv) -> PointwiseCut {
        let (channels, made, image) =
            (c.in_channels / c.group, c.out_channels / c.group, c.input.iter().product::<usize>());
        let all = c.batch * image;
        let points = (COPY / (channels * size_of::<T>()).max(1)).clamp(FEWEST, POINTS) / L::N * L::N;
        let stride = points + L::N;
        let across = made.div_ceil(2 * L::N).max(1);
        let groups = across.div_ceil(PANELS);
        let panels = across.div_ceil(groups);
        let sums = scratch::line::<T>(panels * channels * 2 * L::N);
        let blocks = all.div_ceil(points);
        let work = all.saturating_mul(channels).saturating_mul(made) / TASK;
        let room = SUMS / (sums * groups * size_of::<T>()).max(1);
        let parts = TASKS.div_ceil(groups).min(work).min(blocks).min(room).clamp(1, PARTS);
        let (copy, rows) = (scratch::line::<T>(channels * stride), scratch::line::<T>(points * 2 * L::N));
        PointwiseCut { channels, made, image, all, points, blocks, stride, panels, groups, parts, copy, rows, sums }
    }
}

/// Some blocks of points for one group of panels.
struct PointBlocks<'a, T> {
    c: &'a PointwiseWeight<'a, T>,
    cut: &'a PointwiseCut,
    group: usize,
    blocks: Range<usize>,
    /// Where each channel is in the copy.
    lane: &'a [isize],
    copy: &'a mut [T],
    rows: &'a mut [T],
    sums: *mut T,
}

impl<T: Real> WithLanes<T> for PointBlocks<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(mut self) {
        let (cut, wide) = (self.cut, 2 * L::N);
        let each = cut.channels * wide;
        // SAFETY: the task's sums.
        unsafe { std::slice::from_raw_parts_mut(self.sums, cut.panels * each).fill(T::ZERO) };
        let off: [isize; POINTS] = std::array::from_fn(|i| i as isize);
        let c = self.c.c;
        let (image, channels, points) = (c.in_channels * cut.image, cut.channels, cut.image);
        let source = PointSource { first: self.c.x, image, channels, points };
        let made = PointSource { first: self.c.gy, image: c.out_channels * points, channels: cut.made, points };
        let begin = self.group * cut.panels * wide;
        let panels = cut.panels.min((cut.made - begin).div_ceil(wide));
        let mut pace = Pace::new();
        for b in self.blocks.clone() {
            let points = cut.points.min(cut.all - b * cut.points);
            pace.step(points * each);
            // SAFETY: the block's points are in the tensors.
            unsafe { source.copy(b * cut.points, points, self.copy, cut.stride) }
            let later = (b + 1).min(self.blocks.end - 1);
            let mut x_later = source.ahead(later * cut.points, cut.points);
            for p in 0..panels {
                let first = begin + p * wide;
                let sums = self.sums.wrapping_add(p * each);
                let (b_next, p_next) = if p + 1 < panels { (b, p + 1) } else { (later, 0) };
                let next = made.part(begin + p_next * wide, wide).ahead(b_next * cut.points, cut.points);
                let mut ahead = [next, x_later];
                // SAFETY: as above; the panel's sums have a row for each channel.
                unsafe {
                    self.turn::<L>(b * cut.points, points, first);
                    let (x, w, lane, off) = (self.copy.as_ptr(), self.rows.as_ptr(), self.lane, &off[..points]);
                    let (init, init_stride, out, out_stride) = (sums.cast_const(), wide, sums, wide);
                    let tiles =
                        Tiles { x, off, lane, w, w_stride: wide, vectors: 2, init, init_stride, out, out_stride };
                    L::enter(TilesAhead(tiles, &mut ahead));
                }
                x_later = ahead[1];
            }
        }
    }
}

impl<T: Real> PointBlocks<'_, T> {
    /// The gradients of a panel's channels as a row for each point.
    #[inline(always)]
    unsafe fn turn<L: Lanes<T>>(&mut self, first: usize, points: usize, lane: usize) {
        let (image, width) = (self.cut.image, 2 * L::N);
        let lanes = width.min(self.cut.made - lane);
        let mut from = 0;
        while from < points {
            let run = ColumnOrder::plain(image).run(first + from, points - from);
            let at = (run.part * self.c.c.out_channels + lane) * image + run.first;
            let (tensor, runs, how) = (self.c.gy.add(at), &[(from, run.count, 0)], PackingMode::Gather);
            let rows = self.rows.as_mut_ptr();
            // SAFETY: the caller's promise.
            unsafe { Move { rows, width, lanes, tensor, channel: image, point: 1, runs, how }.call::<L>() }
            from += run.count;
        }
    }
}

/// Sums `[channel][made]`, put into the gradient.
pub(super) struct TurnSums<'a, T> {
    pub sums: &'a [T],
    pub gw: &'a mut [T],
    pub made: usize,
    pub output: Output,
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

/// Adds up the parts of a group's sums in their order, and puts them into the gradient.
struct FinishPointwise<'a, T> {
    c: &'a PointwiseWeight<'a, T>,
    cut: &'a PointwiseCut,
    group: usize,
    sums: SendPtr<T>,
}

impl<T: Real> WithLanes<T> for FinishPointwise<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let (cut, wide) = (self.cut, 2 * L::N);
        // SAFETY: the caller's promise: the sums are this group's.
        let (total, rest) = unsafe { self.sums.slice(0, cut.parts * cut.sums) }.split_at_mut(cut.sums);
        for part in rest.chunks_exact(cut.sums) {
            total.iter_mut().zip(part).for_each(|(t, &v)| *t += v);
        }
        for p in 0..cut.panels {
            let first = (self.group * cut.panels + p) * wide;
            if first >= cut.made {
                break;
            }
            let block = TransposeBlock {
                src: total[p * cut.channels * wide..].as_ptr(),
                src_stride: wide,
                rows: cut.channels,
                cols: wide.min(cut.made - first),
                dst: self.c.gw.add(first * cut.channels).0,
                dst_stride: cut.channels,
            };
            // SAFETY: the panel's made channels are inside the weights, and no other task has them.
            unsafe { transpose_or_add::<T, L>(block, self.c.output == Output::Accumulate) }
        }
    }
}
