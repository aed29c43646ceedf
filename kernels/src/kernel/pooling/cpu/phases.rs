//! Maxima of windows that move along rows of one channel: a source row is split, by the stride, into numbers that lie a step apart, so
//! that what the windows have at one position are neighbours. Rows are as long as vectors want; what lies beyond a row
//! changes nothing.

use super::WindowIndex;
use super::planes::{NOWHERE, Planes};
use crate::array::scratch::Scratch;
use crate::dtype::Real;
use crate::pool::Pace;
use crate::pool::tasks::Shared;
use crate::simd::lanes::TransposeBlock;
use crate::simd::turn::turn;
use crate::simd::{self, Body, SimdReal, Vector};

/// Numbers that loops take at once: none are left over that would be gone over one by one.
const PACK: usize = 16;
/// Windows of a row, and positions of a window, at most, so that rows are small beside a thread's other buffers, and that
/// positions' numbers are exact in single precision.
const WINDOWS: usize = 1 << 14;
const POSITIONS: usize = 1 << 20;
/// Strides at most.
const STRIDE: usize = 8;

/// A row with its padding, whole and split.
struct SplitRow<T: Real> {
    whole: Scratch<T>,
    /// The numbers of each phase; not for steps of 1.
    phases: Scratch<T>,
    stride: usize,
    /// Numbers of a phase.
    len: usize,
    pad: usize,
    /// Numbers of a source row that a window can see.
    seen: usize,
}

/// Windows of a row, as many as vectors want.
fn windows(p: &Planes) -> usize {
    p.width().next_multiple_of(PACK)
}

impl<T: Real> SplitRow<T> {
    /// With minus infinity beyond the row.
    fn new(p: &Planes) -> SplitRow<T> {
        let (stride, pad) = (p.axes[2].stride, p.pad[2]);
        let len = (windows(p) + (p.kernel[2] - 1) / stride).next_multiple_of(PACK);
        let phases = Scratch::filled(if stride == 1 { 0 } else { stride * len }, -T::INFINITY);
        let seen = p.axes[2].input.min((stride * len).saturating_sub(pad));
        SplitRow { whole: Scratch::filled(stride * len, -T::INFINITY), phases, stride, len, pad, seen }
    }

    #[inline(always)]
    fn take(&mut self, row: &[T]) {
        if self.seen > 0 {
            self.whole[self.pad..self.pad + self.seen].copy_from_slice(&row[..self.seen]);
        }
        let (stride, len) = (self.stride, self.len);
        if stride > 1 {
            let (src, dst) = (self.whole.as_ptr(), self.phases.as_mut_ptr());
            // SAFETY: both have a phase's numbers for each step.
            unsafe {
                turn(TransposeBlock { src, src_stride: stride, rows: len, cols: stride, dst, dst_stride: len }, false)
            };
        }
    }

    /// What windows have at position `k`, side by side.
    #[inline(always)]
    fn place(&self, k: usize) -> *const T {
        if self.stride == 1 {
            self.whole[k..].as_ptr()
        } else {
            self.phases[k % self.stride * self.len + k / self.stride..].as_ptr()
        }
    }
}

/// The largest numbers of windows so far, and the numbers of what they come from.
struct LargestOf<'a, T: Real> {
    split: &'a SplitRow<T>,
    positions: &'a [u32],
    /// The number of the first span.
    first: u32,
    windows: usize,
    best: Shared<T>,
    /// As numbers of T, if they are asked for; -1 where there is none yet.
    from: Option<Shared<T>>,
}

impl<T: SimdReal> Body<T> for LargestOf<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        for at in (0..self.windows).step_by(V::N) {
            // SAFETY: all have whole packs, of which vectors are parts.
            unsafe {
                let (mut best, mut from) = (V::load(self.best.0.add(at)), V::splat(-1.0));
                if let Some(p) = &self.from {
                    from = V::load(p.0.add(at));
                }
                for (k, &span) in self.positions.iter().enumerate() {
                    if span != NOWHERE {
                        let v = V::load(self.split.place(k).add(at));
                        let takes = V::or(v.gt(best), v.ne(v));
                        best = V::select(takes, v, best);
                        from = V::select(takes, V::splat((self.first + span) as f64), from);
                    }
                }
                best.store(self.best.0.add(at));
                if let Some(p) = &self.from {
                    from.store(p.0.add(at));
                }
            }
        }
    }
}

impl Planes {
    pub fn has_phases(&self) -> bool {
        let w = &self.axes[2];
        self.inner == 1
            && (1..=STRIDE).contains(&w.stride)
            && (1..=WINDOWS).contains(&w.windows.len())
            && (1..=WINDOWS).contains(&self.kernel[2])
            && self.kernel.iter().fold(1usize, |n, &k| n.saturating_mul(k)) <= POSITIONS
    }

    /// The spans of the positions of windows; all spans of one meet a source row at the same place.
    fn positions(&self) -> Scratch<u32> {
        Scratch::each(self.kernel[2], |k| self.span_at(k))
    }

    /// As `max`, and to `places`, if they are asked for, where each comes from.
    #[inline(always)]
    pub fn max_by_phases<T: SimdReal, I: WindowIndex>(&self, x: &[T], y: &mut [T], mut places: Option<&mut [I]>) {
        let (width, whole, input) = (self.width(), windows(self), self.axes[2].input);
        let (mut split, positions) = (SplitRow::new(self), self.positions());
        let (mut best, mut from) = (Scratch::filled(whole, T::ZERO), Scratch::filled(whole, -T::ONE));
        let mut pace = Pace::new();
        for (row, d, h) in self.rows() {
            best.fill(-T::INFINITY);
            from.fill(-T::ONE);
            for (i, (at, _)) in self.sources(d, h).enumerate() {
                pace.step(self.meetings());
                split.take(&x[at..][..input]);
                let job = LargestOf {
                    split: &split,
                    positions: &positions,
                    first: i as u32 * self.spans() as u32,
                    windows: whole,
                    best: Shared(best.as_mut_ptr()),
                    from: places.is_some().then_some(Shared(from.as_mut_ptr())),
                };
                // SAFETY: all have so many windows.
                unsafe { simd::run::<T>(&job) };
            }
            y[row * width..][..width].copy_from_slice(&best[..width]);
            if let Some(places) = &mut places {
                let any = d.from < d.to && h.from < h.to;
                self.note(&mut places[row * width..][..width], &from[..width], any.then_some(&positions[..]));
            }
        }
    }

    /// Writes places; with the spans of positions for windows that see numbers, of which the first counts where all are minus
    /// infinity.
    #[inline(always)]
    fn note<T: Real, I: WindowIndex>(&self, places: &mut [I], from: &[T], positions: Option<&[u32]>) {
        let mut is_found = true;
        for (to, from) in places.iter_mut().zip(from) {
            // -1 is nowhere.
            *to = I::new(from.to_f64() as i32 as u32);
            is_found &= *from >= T::ZERO;
        }
        let Some(positions) = positions.filter(|_| !is_found) else { return };
        let w = &self.axes[2];
        for o in (0..from.len()).filter(|&o| from[o] < T::ZERO && w.windows[o].from < w.windows[o].to) {
            places[o] = I::new(positions[self.pad[2].saturating_sub(w.stride * o)]);
        }
    }
}
