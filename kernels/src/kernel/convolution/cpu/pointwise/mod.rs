//! Kernels of one point with stride 1, channels first: products of the weights, as they are, with panels of points, which lie
//! side by side in memory already. Neither weights nor results are turned.

mod weight;

use super::{ChannelOrder, Conv};
use crate::array::Output;
use crate::array::scratch::{self, Scratch};
use crate::dtype::Real;
use crate::gemm::tile::Tiles;
use crate::pool;
use crate::pool::tasks::SendPtr;
use crate::simd::lanes::{Choose, Lanes, WithLanes, dispatch};
use std::cell::Cell;
use std::ops::Range;
pub(super) use weight::{PointwiseWeight, PointwiseWeightScratch};

/// Multiplications that are worth a task.
const TASK: usize = 1 << 20;

/// Whether a convolution is one of these.
pub(super) fn suits(c: &Conv) -> bool {
    c.kernel == [1; 3] && c.stride == [1; 3] && c.pad == [0; 3] && c.layout == ChannelOrder::ChannelFirst
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

    /// Numbers that a task works in: a panel of the source, and of results that do not lie side by side.
    fn work<L: Lanes<T>>(&self) -> [usize; 2] {
        [self.channels, self.made].map(|n| scratch::line::<T>(n.max(1) * 2 * L::N))
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
        let per = (TASK / (self.channels * self.made * width).max(1)).max(1);
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

/// Points side by side in one image: its number, the first point, how many, and where they are in a panel.
#[derive(Clone, Copy)]
struct PointRun {
    image: usize,
    first: usize,
    count: usize,
    at: usize,
}

impl<T: Real> WithLanes<T> for PointPanels<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(mut self) {
        for p in self.panels.clone() {
            // SAFETY: the caller's promise.
            unsafe { self.one::<L>(p) }
        }
    }
}

impl<T: Real> PointPanels<'_, T> {
    /// The run of panel `p` that begins `at` points after its first; of no points at the end of the panel, or of all.
    #[inline(always)]
    fn run<L: Lanes<T>>(&self, p: usize, at: usize) -> PointRun {
        let point = p * 2 * L::N + at;
        let (image, first) = (point / self.c.points, point % self.c.points);
        let count = if image < self.c.batch { (self.c.points - first).min(2 * L::N - at) } else { 0 };
        PointRun { image, first, count, at }
    }

    #[inline(always)]
    unsafe fn one<L: Lanes<T>>(&mut self, p: usize) {
        let (c, width) = (self.c, 2 * L::N);
        let first = self.run::<L>(p, 0);
        let whole = first.count == width;
        // SAFETY: runs are in the tensors, and in a panel.
        unsafe {
            if whole {
                self.load::<L>(first)
            } else {
                self.gather::<L>(p)
            }
            let (out, out_stride) = if whole {
                (c.result.add(first.image * c.images[1] + first.first).0, c.points)
            } else {
                (self.sums.as_mut_ptr(), width)
            };
            if !whole && c.output == Output::Accumulate {
                self.move_results::<L>(p, |result, sums, n| sums.copy_from_nonoverlapping(result, n));
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
            let (x, w) = (c.w.0.cast_const(), self.panel.as_ptr());
            let (off, lane) = (self.off, self.lane);
            Tiles { x, off, lane, w, w_stride: width, vectors: 2, init, init_stride, out, out_stride }.call::<L>();
            if !whole {
                self.move_results::<L>(p, |result, sums, n| result.copy_from_nonoverlapping(sums, n));
            }
        }
    }

    /// A panel of points that lie side by side.
    #[inline(always)]
    unsafe fn load<L: Lanes<T>>(&mut self, run: PointRun) {
        let from = self.c.source.add(run.image * self.c.images[0] + run.first);
        for k in 0..self.c.channels {
            let (from, to) = (from.add(k * self.c.points).0, self.panel[k * 2 * L::N..].as_mut_ptr());
            for v in 0..2 {
                // SAFETY: the caller's promise.
                unsafe { L::store(to.add(v * L::N), L::load(from.add(v * L::N))) }
            }
        }
    }

    /// A panel of points of several images; zeros where there are no more.
    #[inline(always)]
    unsafe fn gather<L: Lanes<T>>(&mut self, p: usize) {
        let mut run = self.run::<L>(p, 0);
        while run.count > 0 {
            let from = self.c.source.add(run.image * self.c.images[0] + run.first);
            for k in 0..self.c.channels {
                let (from, to) = (from.add(k * self.c.points).0, self.panel[k * 2 * L::N + run.at..].as_mut_ptr());
                // SAFETY: the caller's promise.
                unsafe { to.copy_from_nonoverlapping(from, run.count) }
            }
            run = self.run::<L>(p, run.at + run.count);
        }
        if run.at < 2 * L::N {
            for k in 0..self.c.channels {
                self.panel[k * 2 * L::N + run.at..(k + 1) * 2 * L::N].fill(T::ZERO);
            }
        }
    }

    /// `f(results, sums, how many)` for each run of panel `p` and each made channel.
    #[inline(always)]
    unsafe fn move_results<L: Lanes<T>>(&mut self, p: usize, f: impl Fn(*mut T, *mut T, usize)) {
        let mut run = self.run::<L>(p, 0);
        while run.count > 0 {
            let to = self.c.result.add(run.image * self.c.images[1] + run.first);
            for j in 0..self.c.made {
                f(to.add(j * self.c.points).0, self.sums[j * 2 * L::N + run.at..].as_mut_ptr(), run.count);
            }
            run = self.run::<L>(p, run.at + run.count);
        }
    }
}
