//! Kernels of one point with stride 1, channels first: products of the weights, as they are, with panels of points, which lie
//! side by side in memory already. Neither weights nor results are turned.

mod weight;

use super::{ChannelOrder, Conv};
use crate::array::Output;
use crate::array::scratch::{self, Scratch};
use crate::dtype::Real;
use crate::gemm::tile::{NextRows, Tiles, TilesAhead};
use crate::gemm::{Mat, MatMut, batch_matmul, matmul};
use crate::pool;
use crate::pool::tasks::SendPtr;
use crate::simd::lanes::{Choose, Lanes, WithLanes, dispatch};
use crate::tuned;
use std::cell::Cell;
use std::ops::Range;
use weight::TurnSums;
pub(super) use weight::{PointwiseWeight, PointwiseWeightScratch};

/// Multiplications that are worth a task; how many times that a task has at most, where there are many of them: all panels
/// of a task but its first one were brought into the cache by the one before.
const TASK: usize = 1 << 20;
const LARGE: usize = 8;
const TASKS: usize = 64;
/// Panels of points that are read at a time, and bytes of them at most: pieces of channels that lie far apart come from memory faster
/// where they are longer.
const GROUP: usize = 4;
const GROUP_BYTES: usize = 256 << 10;

/// Whether a convolution is one of these.
pub(super) fn suits(c: &Conv) -> bool {
    c.kernel == [1; 3] && c.stride == [1; 3] && c.pad == [0; 3] && c.layout == ChannelOrder::ChannelFirst
}

/// Whether the result (0), the gradient of x (1) or that of w (2) is better made by a matrix product for each image.
fn by_products(c: &Conv, pass: usize) -> bool {
    if c.group != 1 || c.batch == 0 {
        return false;
    }
    let weights = tuned::WINOGRAD_CHANNELS.map(|n| n * n);
    let points = tuned::WINOGRAD_SIDES.map(|n| n * n);
    let at = [c.weight_len(), c.input.iter().product()];
    tuned::percent(&tuned::get().pointwise[pass], [&weights, &points], at) < 95
}

/// y = x * w + bias by matrix products, of slices that have the sizes; or nothing (false) where panels of points are to do it.
pub(super) fn forward_by_products<T: Real>(c: &Conv, x: &[T], w: &[T], bias: Option<&[T]>, y: &mut [T]) -> bool {
    let [channels, made] = [c.in_channels, c.out_channels];
    let does = by_products(c, 0);
    if does {
        let points = c.input.iter().product();
        let output = match bias {
            Some(b) => {
                let rows = y.chunks_exact_mut(points).zip(b.iter().cycle());
                rows.for_each(|(row, &b)| row.fill(b));
                Output::Accumulate
            }
            None => Output::Write,
        };
        let (w, x) = (Mat::new(w, made, channels), Mat::new(x, channels, points).each());
        batch_matmul(c.batch, w, x, MatMut::new(y, made, points), output);
    }
    does
}

/// The same for the gradient of x.
pub(super) fn data_by_products<T: Real>(c: &Conv, gy: &[T], w: &[T], gx: &mut [T], output: Output) -> bool {
    let [channels, made] = [c.in_channels, c.out_channels];
    let does = by_products(c, 1);
    if does {
        let points = c.input.iter().product();
        let (w, gy) = (Mat::new(w, made, channels).t(), Mat::new(gy, made, points).each());
        batch_matmul(c.batch, w, gy, MatMut::new(gx, channels, points), output);
    }
    does
}

/// The same for the gradient of w, which is summed image after image.
pub(super) fn weight_by_products<T: Real>(c: &Conv, gy: &[T], x: &[T], gw: &mut [T], output: Output) -> bool {
    let [channels, made] = [c.in_channels, c.out_channels];
    let does = by_products(c, 2);
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

/// One group's sums of channels at each point.
pub(super) struct Pointwise<'a, T> {
    pub batch: usize,
    pub points: usize,
    /// Channels that are summed, and made.
    pub channels: usize,
    pub made: usize,
    /// The first channel of the source and of the result, and the distances between images.
    pub source: SendPtr<T>,
    pub result: SendPtr<T>,
    pub images: [usize; 2],
    pub w: SendPtr<T>,
    /// Distances of the made channels and of the summed ones.
    pub strides: [usize; 2],
    pub bias: Option<&'a [T]>,
    pub output: Output,
}

impl<T: Real> Pointwise<'_, T> {
    /// Of the convolution itself, without bias; the pointers are to the tensors' first elements, `group` is the number.
    pub fn forward(c: &Conv, group: usize, x: SendPtr<T>, w: SendPtr<T>, y: SendPtr<T>) -> Self {
        let (channels, made, points) = (c.in_channels / c.group, c.out_channels / c.group, c.input.iter().product());
        Pointwise {
            batch: c.batch,
            points,
            channels,
            made,
            source: x.add(group * channels * points),
            result: y.add(group * made * points),
            images: [c.in_channels * points, c.out_channels * points],
            w: w.add(group * made * channels),
            strides: [channels, 1],
            bias: None,
            output: Output::Write,
        }
    }

    /// Of the gradient of x.
    pub fn data(c: &Conv, group: usize, gy: SendPtr<T>, w: SendPtr<T>, gx: SendPtr<T>, output: Output) -> Self {
        let f = Pointwise::forward(c, group, gx, w, gy);
        let (channels, made, [x, y]) = (f.made, f.channels, f.images);
        Pointwise {
            channels,
            made,
            source: f.result,
            result: f.source,
            images: [y, x],
            strides: [1, made],
            output,
            ..f
        }
    }

    /// # Safety
    /// The tensors have the sizes.
    pub unsafe fn run(self) {
        if self.batch * self.points * self.made > 0 {
            dispatch(self);
        }
    }

    fn source(&self) -> PointSource<T> {
        PointSource { first: self.source, image: self.images[0], channels: self.channels, points: self.points }
    }

    fn results(&self) -> PointSource<T> {
        PointSource { first: self.result, image: self.images[1], channels: self.made, points: self.points }
    }

    /// Panels that are read at a time.
    fn group<L: Lanes<T>>(&self) -> usize {
        (GROUP_BYTES / (self.channels.max(1) * 2 * L::N * size_of::<T>())).clamp(1, GROUP)
    }

    /// Numbers that a task works in: panels of the source, and one of results that do not lie side by side.
    fn work<L: Lanes<T>>(&self) -> [usize; 2] {
        [self.channels.max(1) * self.group::<L>(), self.made].map(|n| scratch::line::<T>(n * 2 * L::N))
    }
}

/// Writes the bytes of the large buffers that a convolution of one point, or its gradient of x, works in.
pub(super) struct PointwiseScratch<'a> {
    pub c: &'a Conv,
    pub bytes: &'a Cell<usize>,
}

impl<T: Real> Choose<T> for PointwiseScratch<'_> {
    fn with<L: Lanes<T>>(self) {
        let none = SendPtr(std::ptr::null_mut::<T>());
        let work = Pointwise::forward(self.c, 0, none, none, none).work::<L>().iter().sum::<usize>();
        self.bytes.set(pool::num_threads() * scratch::counted((work + 2 * L::N) * size_of::<T>()));
    }
}

impl<T: Real> Choose<T> for Pointwise<'_, T> {
    fn with<L: Lanes<T>>(self) {
        let (width, [made, summed]) = (2 * L::N, self.strides);
        let panels = (self.batch * self.points).div_ceil(width);
        let least = (TASK / (self.channels * self.made * width).max(1)).max(1);
        let per = (panels / TASKS).clamp(least, least * LARGE);
        let off = Scratch::each(self.channels, |k| (k * summed) as isize);
        let lane = Scratch::each(self.made, |j| (j * made) as isize);
        let [source, result] = self.work::<L>();
        pool::run(panels.div_ceil(per), &|t| {
            scratch::with(source + result + width, |work: &mut [T]| {
                let (panel, rest) = work.split_at_mut(source);
                let (sums, zeros) = rest.split_at_mut(result);
                zeros.fill(T::ZERO);
                let panels = t * per..panels.min((t + 1) * per);
                let job = PointPanels { c: &self, panels, off: &off, lane: &lane, panel, sums, zeros };
                // SAFETY: the machine has what `dispatch` chose; tasks write different points.
                unsafe { L::enter(job) }
            });
        });
    }
}

struct PointPanels<'a, T> {
    c: &'a Pointwise<'a, T>,
    panels: Range<usize>,
    off: &'a [isize],
    lane: &'a [isize],
    panel: &'a mut [T],
    sums: &'a mut [T],
    zeros: &'a [T],
}

/// Points side by side in one image: its number, the first point, how many, and where they are among those that are asked for.
#[derive(Clone, Copy)]
struct PointRun {
    image: usize,
    first: usize,
    count: usize,
    at: usize,
}

/// The runs of `many` points from `first` on of images of `points` points.
fn runs(points: usize, first: usize, many: usize) -> impl Iterator<Item = PointRun> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (image, from) = ((first + at) / points, (first + at) % points);
        let run = PointRun { image, first: from, count: (points - from).min(many - at), at };
        at += run.count;
        (run.count > 0).then_some(run)
    })
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
        for run in runs(self.points, first, many) {
            let from = self.first.add(run.image * self.image + run.first);
            for ch in 0..self.channels {
                let to = to[ch * stride + run.at..][..run.count].as_mut_ptr();
                // SAFETY: the caller's promise.
                unsafe { to.copy_from_nonoverlapping(from.add(ch * self.points).0, run.count) }
            }
        }
    }
}

impl<T: Real> WithLanes<T> for PointPanels<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(mut self) {
        let group = self.c.group::<L>();
        for first in self.panels.clone().step_by(group) {
            let panels = first..self.panels.end.min(first + group);
            // SAFETY: the caller's promise.
            unsafe {
                self.load::<L>(panels.clone());
                let mut source = self.ahead::<L>(panels.end);
                for p in panels.clone() {
                    self.one::<L>(p, p - first, &mut source);
                }
            }
        }
    }
}

impl<T: Real> PointPanels<'_, T> {
    #[inline(always)]
    unsafe fn one<L: Lanes<T>>(&mut self, p: usize, slot: usize, source: &mut NextRows) {
        let (c, width) = (self.c, 2 * L::N);
        let (at, many) = (p * width, width.min(c.batch * c.points - p * width));
        let (image, first) = (at / c.points, at % c.points);
        let whole = first + width <= c.points;
        // SAFETY: runs are in the tensors, and in a panel.
        unsafe {
            let (out, out_stride) = if whole {
                (c.result.add(image * c.images[1] + first).0, c.points)
            } else {
                (self.sums.as_mut_ptr(), width)
            };
            if !whole && c.output == Output::Accumulate {
                self.move_results::<L>(at, many, |result, sums, n| sums.copy_from_nonoverlapping(result, n));
            }
            if let Some(bias) = c.bias {
                for (j, &b) in bias.iter().enumerate() {
                    for v in 0..2 {
                        L::store(out.add(j * out_stride + v * L::N), L::splat(b));
                    }
                }
            }
            let begun = c.bias.is_some() || c.output == Output::Accumulate;
            let (init, init_stride) = if begun { (out.cast_const(), out_stride) } else { (self.zeros.as_ptr(), 0) };
            let (x, w) = (c.w.0.cast_const(), self.panel[slot * c.channels * width..].as_ptr());
            let (off, lane) = (self.off, self.lane);
            let tiles = Tiles { x, off, lane, w, w_stride: width, vectors: 2, init, init_stride, out, out_stride };
            let mut ahead = [*source, self.next::<L>(p)];
            L::enter(TilesAhead(tiles, &mut ahead));
            *source = ahead[0];
            if !whole {
                self.move_results::<L>(at, many, |result, sums, n| result.copy_from_nonoverlapping(sums, n));
            }
        }
    }

    /// The points of the panels from `p` on that are read next, or of the task's last one again.
    #[inline(always)]
    fn ahead<L: Lanes<T>>(&self, p: usize) -> NextRows {
        let first = p.min(self.panels.end - 1);
        let many = (self.panels.end - first).min(self.c.group::<L>());
        self.c.source().ahead(first * 2 * L::N, many * 2 * L::N)
    }

    /// The results of the panel after `p`, or of `p` itself where it is the task's last one.
    #[inline(always)]
    fn next<L: Lanes<T>>(&self, p: usize) -> NextRows {
        self.c.results().ahead((p + 1).min(self.panels.end - 1) * 2 * L::N, 2 * L::N).written()
    }

    /// Reads panels: at once where all their points lie side by side.
    #[inline(always)]
    unsafe fn load<L: Lanes<T>>(&mut self, panels: Range<usize>) {
        let (c, width) = (self.c, 2 * L::N);
        let (at, size) = (panels.start * width, c.channels * width);
        let (image, first) = (at / c.points, at % c.points);
        if first + panels.len() * width > c.points {
            for (slot, p) in panels.enumerate() {
                // SAFETY: the caller's promise.
                unsafe { self.gather::<L>(slot * size, p * width, width.min(c.batch * c.points - p * width)) }
            }
            return;
        }
        let from = c.source.add(image * c.images[0] + first);
        for k in 0..c.channels {
            let from = from.add(k * c.points);
            for slot in 0..panels.len() {
                let (from, to) = (from.add(slot * width).0, self.panel[slot * size + k * width..].as_mut_ptr());
                for v in 0..2 {
                    // SAFETY: the caller's promise.
                    unsafe { L::store(to.add(v * L::N), L::load(from.add(v * L::N))) }
                }
            }
        }
    }

    /// A panel of `many` points of several images from `at` on, to `to`; zeros where there are no more.
    #[inline(always)]
    unsafe fn gather<L: Lanes<T>>(&mut self, to: usize, at: usize, many: usize) {
        let (c, width) = (self.c, 2 * L::N);
        let panel = &mut self.panel[to..][..c.channels * width];
        // SAFETY: the caller's promise.
        unsafe { c.source().copy(at, many, panel, width) }
        if many < width {
            for row in panel.chunks_exact_mut(width) {
                row[many..].fill(T::ZERO);
            }
        }
    }

    /// `f(results, sums, how many)` for each run of `many` points from `at` on, and each made channel.
    #[inline(always)]
    unsafe fn move_results<L: Lanes<T>>(&mut self, at: usize, many: usize, f: impl Fn(*mut T, *mut T, usize)) {
        for run in runs(self.c.points, at, many) {
            let to = self.c.result.add(run.image * self.c.images[1] + run.first);
            for j in 0..self.c.made {
                f(to.add(j * self.c.points).0, self.sums[j * 2 * L::N + run.at..].as_mut_ptr(), run.count);
            }
        }
    }
}
