//! Maxima of many planes: some planes are turned, so that vectors go across them, whatever their windows are.

use super::planes::Planes;
use super::{Pooling, PoolingTask, WindowIndex};
use crate::array::scratch::{self, Scratch, counted};
use crate::kernel::short_rows::each_group_of;
use crate::pool;
use crate::pool::tasks::{SendPtr, Shared};
use crate::simd::lanes::{Choose, Lanes, TransposeBlock, WithLanes, dispatch};
use crate::simd::turn::turn;
use crate::simd::{self, Body, SimdReal, Vector};

/// Planes are turned in multiples of so many, which vectors are parts of; more at once while they are small.
const PLANES: usize = 16;
const MOST: usize = 64;
/// Numbers of the planes that are turned together, where that allows for more of them, and of one plane at most.
const TOGETHER: usize = 1 << 16;
const PLANE: usize = 1 << 14;
/// Positions of a window, whose numbers are exact in single precision.
const POSITIONS: usize = 1 << 20;

impl Pooling {
    /// Whether maxima are found across planes.
    pub(super) fn goes_across(&self) -> bool {
        let plane = self.input_len().max(self.output_len()) / self.outer.max(1);
        let positions = self.kernel.iter().fold(1usize, |n, &k| n.saturating_mul(k));
        self.inner == 1 && self.outer >= PLANES && plane <= PLANE && positions <= POSITIONS
    }

    /// How many planes are turned together, of which each has so many numbers.
    fn together(input: usize) -> usize {
        (TOGETHER / input.max(1) / PLANES * PLANES).clamp(PLANES, MOST)
    }

    /// Bytes of all threads' turned planes, of numbers of `size` bytes.
    pub fn turned_planes(&self, size: usize) -> usize {
        if !self.goes_across() {
            return 0;
        }
        let (input, output) = (self.input_len() / self.outer, self.output_len() / self.outer);
        let together = Pooling::together(input);
        let threads = pool::num_threads().min(self.outer.div_ceil(together));
        counted((input + 3 * output) * together * size) * threads
    }

    /// The largest number of each window, and to `places`, if they are asked for, where it is.
    pub(super) fn max_across<T: SimdReal, I: WindowIndex>(&self, x: &[T], y: &mut [T], places: Option<SendPtr<I>>) {
        let (input, output) = (x.len() / self.outer, y.len() / self.outer);
        let planes = Planes::new(self, PoolingTask::Max);
        let numbers = planes.numbers();
        let y = SendPtr(y.as_mut_ptr());
        each_group_of(Pooling::together(input), self.outer, input, |g| {
            let side = g.rows.next_multiple_of(PLANES);
            let found = if places.is_some() { output } else { 0 };
            scratch::with((input + output + found) * side + found * g.rows, |room: &mut [T]| {
                let (from, rest) = room.split_at_mut(input * side);
                let (best, rest) = rest.split_at_mut(output * side);
                let (at, turned) = rest.split_at_mut(found * side);
                let first = g.first * output;
                let src = x[g.first * input..][..g.rows * input].as_ptr();
                let block = |src, dst| TransposeBlock {
                    src,
                    src_stride: side,
                    rows: output,
                    cols: g.rows,
                    dst,
                    dst_stride: output,
                };
                // SAFETY: all have the sizes of these planes; a group has results of its own.
                unsafe {
                    let dst = from.as_mut_ptr();
                    turn(
                        TransposeBlock { src, src_stride: input, rows: g.rows, cols: input, dst, dst_stride: side },
                        false,
                    );
                    simd::run::<T>(&LargestAcross {
                        planes: &planes,
                        numbers: &numbers,
                        side,
                        x: from,
                        best: Shared(best.as_mut_ptr()),
                        at: places.map(|_| Shared(at.as_mut_ptr())),
                    });
                    turn(block(best.as_ptr(), y.slice(first, output * g.rows).as_mut_ptr()), false);
                    if let Some(places) = places {
                        turn(block(at.as_ptr(), turned.as_mut_ptr()), false);
                        dispatch(NotedPlaces { from: turned, to: places.slice(first, turned.len()) });
                    }
                }
            });
        });
    }
}

impl Planes {
    /// For each position of a window along its row the number of its span.
    fn numbers(&self) -> Scratch<u32> {
        Scratch::each(self.kernel[2], |k| self.span_at(k))
    }
}

/// The largest numbers of the windows of planes side by side.
struct LargestAcross<'a, T> {
    planes: &'a Planes,
    numbers: &'a [u32],
    /// Planes, as many as whole vectors take.
    side: usize,
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
        let (p, pad, stride) = (self.planes, self.planes.pad[2], self.planes.axes[2].stride);
        let (spans, mut result) = (p.spans(), plane);
        for (_, d, h) in p.rows() {
            for (o, w) in p.axes[2].windows.iter().enumerate() {
                let (mut best, mut at) = ([V::splat(f64::NEG_INFINITY); M], [V::splat(-1.0); M]);
                let mut is_first = true;
                for (i, (row, _)) in p.sources(d, h).enumerate() {
                    for col in w.from..w.to {
                        let number = V::splat((i * spans + self.numbers[col + pad - o * stride] as usize) as f64);
                        let x = self.x[(row + col) * self.side + plane..][..M * V::N].as_ptr();
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

impl<T: SimdReal, I: WindowIndex> Choose<T> for NotedPlaces<'_, T, I> {
    fn with<L: Lanes<T>>(self) {
        // SAFETY: the machine has these lanes.
        unsafe { L::enter(self) }
    }
}

impl<T: SimdReal, I: WindowIndex> WithLanes<T> for NotedPlaces<'_, T, I> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        for (to, from) in self.to.iter_mut().zip(self.from) {
            // -1 is nowhere. SAFETY: all are whole numbers from -1 to `POSITIONS`.
            *to = I::new(unsafe { from.to_f64().to_int_unchecked::<i32>() } as u32);
        }
    }
}
