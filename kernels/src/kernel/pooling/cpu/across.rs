//! Maxima of planes of one channel: bands of some planes are turned, so that vectors go across the planes, whatever their windows are.

use super::planes::Planes;
use super::{Pooling, PoolingTask, Window, WindowIndex};
use crate::array::scratch::{self, counted};
use crate::kernel::short_rows::each_group_of;
use crate::pool;
use crate::pool::Pace;
use crate::pool::tasks::{SendPtr, Shared};
use crate::simd::lanes::{Lanes, TransposeBlock, WithLanes, enter};
use crate::simd::turn::turn;
use crate::simd::{self, Body, SimdReal, Vector};
use std::ops::Range;

/// Planes are turned in multiples of so many, which vectors are parts of; more at once while they are small.
const PLANES: usize = 16;
const MOST: usize = 64;
/// Numbers that are turned together: of a plane as many rows as windows need, and more where that allows for them.
const TOGETHER: usize = 1 << 16;
/// Numbers of the source rows of a row of windows, at most, and of a plane, whose places are exact in single precision.
const SOURCES: usize = 1 << 16;
const PLANE: usize = 1 << 24;

/// How planes are cut.
struct PlaneBands {
    /// Planes that are turned together, and as many as whole vectors take.
    together: usize,
    side: usize,
    /// Output rows of a band, and numbers that it has in a plane before and after.
    rows: usize,
    input: usize,
    output: usize,
}

impl Pooling {
    /// Numbers of the source rows of a row of windows.
    fn sources(&self) -> usize {
        self.kernel[0]
            .min(self.input[0])
            .saturating_mul(self.kernel[1].min(self.input[1]))
            .saturating_mul(self.input[2])
    }

    /// Whether maxima are found across planes.
    pub(super) fn goes_across(&self) -> bool {
        self.inner == 1 && self.outer > 0 && self.sources() <= SOURCES && self.input_len() / self.outer <= PLANE
    }

    fn bands(&self) -> PlaneBands {
        let (plane, out) = (self.input.iter().product::<usize>().max(1), self.output());
        let together = (TOGETHER / plane / PLANES * PLANES).clamp(PLANES, MOST).min(self.outer);
        let side = together.next_multiple_of(PLANES);
        let row = self.kernel[0].min(self.input[0]) * self.input[2];
        let more = (TOGETHER / side / row.max(1)).saturating_sub(self.kernel[1]) / self.stride[1];
        let rows = (more + 1).min(out[1].max(1));
        let height = ((rows - 1) * self.stride[1]).saturating_add(self.kernel[1]).min(self.input[1]);
        PlaneBands { together, side, rows, input: row * height, output: rows * out[2] }
    }

    /// Bytes of all threads' turned bands, of numbers of `size` bytes.
    pub fn turned_bands(&self, size: usize) -> usize {
        if !self.goes_across() {
            return 0;
        }
        let b = self.bands();
        counted((b.input + 3 * b.output) * b.side * size) * pool::num_threads().min(self.outer.div_ceil(b.together))
    }

    /// The largest number of each window, and to `places`, if they are asked for, where in its plane it is.
    pub(super) fn max_across<T: SimdReal, I: WindowIndex>(&self, x: &[T], y: &mut [T], places: Option<SendPtr<I>>) {
        let (planes, b) = (Planes::new(self, PoolingTask::Max), self.bands());
        let (input, output, width) = (x.len() / self.outer, y.len() / self.outer, self.output()[2]);
        let (side, y) = (b.side, SendPtr(y.as_mut_ptr()));
        let found = if places.is_some() { b.output } else { 0 };
        let size = (b.input + b.output + 2 * found) * side;
        each_group_of(b.together, self.outer, input, |g| {
            scratch::with(size, |room: &mut [T]| {
                let (from, rest) = room.split_at_mut(b.input * side);
                let (best, rest) = rest.split_at_mut(b.output * side);
                let (at, turned) = rest.split_at_mut(found * side);
                let mut pace = Pace::new();
                for (d, depth) in planes.axes[0].windows.iter().enumerate() {
                    let windows = &planes.axes[1].windows;
                    for first in (0..windows.len()).step_by(b.rows) {
                        let rows = first..windows.len().min(first + b.rows);
                        let seen = windows[first].from..windows[rows.end - 1].to.max(windows[first].from);
                        let band = seen.len() * self.input[2];
                        for (i, slice) in (depth.from..depth.to).enumerate() {
                            let src =
                                x[g.first * input + (slice * self.input[1] + seen.start) * self.input[2]..].as_ptr();
                            let dst = from[i * band * side..].as_mut_ptr();
                            let block = TransposeBlock {
                                src,
                                src_stride: input,
                                rows: g.rows,
                                cols: band,
                                dst,
                                dst_stride: side,
                            };
                            // SAFETY: the band's numbers of these planes; there is room for all depths.
                            unsafe { turn(block, false) };
                        }
                        pace.step(rows.len() * planes.meetings() * side);
                        let n = rows.len() * width;
                        let results = g.first * output + (d * windows.len() + first) * width;
                        let job = LargestAcross {
                            planes: &planes,
                            side,
                            depth: *depth,
                            rows,
                            seen,
                            x: from,
                            best: Shared(best.as_mut_ptr()),
                            at: places.map(|_| Shared(at.as_mut_ptr())),
                        };
                        let back = |src: &[T], dst: *mut T, dst_stride| TransposeBlock {
                            src: src.as_ptr(),
                            src_stride: side,
                            rows: n,
                            cols: g.rows,
                            dst,
                            dst_stride,
                        };
                        // SAFETY: all have the sizes of this band; a group has results of its own.
                        unsafe {
                            simd::run::<T>(&job);
                            turn(back(best, y.add(results).0, output), false);
                            let Some(places) = places.filter(|_| size_of::<I>() > 1) else { continue };
                            turn(back(at, turned.as_mut_ptr(), n), false);
                            for (plane, from) in turned.chunks_exact(n).take(g.rows).enumerate() {
                                enter(NotedPlaces { from, to: places.slice(results + plane * output, n) });
                            }
                        }
                    }
                }
            })
        });
    }
}

/// The largest numbers of a band's windows of planes side by side.
struct LargestAcross<'a, T> {
    planes: &'a Planes,
    /// Planes, as many as whole vectors take.
    side: usize,
    /// The windows: their slices, and their rows; and the rows of the planes that are here.
    depth: Window,
    rows: Range<usize>,
    seen: Range<usize>,
    x: &'a [T],
    best: Shared<T>,
    /// Where they are, as numbers of T; -1 where windows see only padding.
    at: Option<Shared<T>>,
}

impl<T: SimdReal> Body<T> for LargestAcross<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        let mut plane = 0;
        while plane < self.side {
            // SAFETY: the sides are whole vectors.
            unsafe {
                if plane + 4 * V::N <= self.side {
                    self.planes_from::<V, 4>(plane);
                    plane += 4 * V::N;
                } else {
                    self.planes_from::<V, 1>(plane);
                    plane += V::N;
                }
            }
        }
    }
}

impl<T: SimdReal> LargestAcross<'_, T> {
    /// All windows of the planes that M vectors have from `plane` on.
    #[inline(always)]
    unsafe fn planes_from<V: Vector<E = T>, const M: usize>(&self, plane: usize) {
        let p = self.planes;
        let (height, width, depth) = (p.axes[1].input, p.axes[2].input, self.depth.to - self.depth.from);
        let mut result = plane;
        for h in &p.axes[1].windows[self.rows.clone()] {
            for w in &p.axes[2].windows {
                let (mut best, mut at) = ([V::splat(f64::NEG_INFINITY); M], [V::splat(-1.0); M]);
                let mut is_first = true;
                for slice in 0..depth {
                    for row in h.from..h.to {
                        let start = (slice * self.seen.len() + row - self.seen.start) * width;
                        let place = ((self.depth.from + slice) * height + row) * width;
                        for col in w.from..w.to {
                            let number = V::splat((place + col) as f64);
                            let x = self.x[(start + col) * self.side + plane..][..M * V::N].as_ptr();
                            for m in 0..M {
                                // SAFETY: inside the planes.
                                let v = unsafe { V::load(x.add(m * V::N)) };
                                if is_first {
                                    (best[m], at[m]) = (v, number);
                                } else {
                                    let wins = V::or(v.gt(best[m]), v.ne(v));
                                    best[m] = V::select(wins, v, best[m]);
                                    at[m] = V::select(wins, number, at[m]);
                                }
                            }
                            is_first = false;
                        }
                    }
                }
                for m in 0..M {
                    // SAFETY: there is a place for each window of each plane.
                    unsafe {
                        best[m].store(self.best.0.add(result + m * V::N));
                        if let Some(to) = &self.at {
                            at[m].store(to.0.add(result + m * V::N));
                        }
                    }
                }
                result += self.side;
            }
        }
    }
}

/// Places that were found as numbers of T.
pub(super) struct NotedPlaces<'a, T, I> {
    pub from: &'a [T],
    pub to: &'a mut [I],
}

impl<T: SimdReal, I: WindowIndex> WithLanes<T> for NotedPlaces<'_, T, I> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        for (to, from) in self.to.iter_mut().zip(self.from) {
            // -1 is nowhere. SAFETY: all are whole numbers from -1 to `PLANE`.
            *to = I::new(unsafe { from.to_f64().to_int_unchecked::<i32>() } as u32);
        }
    }
}
