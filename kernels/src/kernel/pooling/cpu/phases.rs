//! Maxima of windows that move along rows of one channel: a source row is split, by the stride, into numbers that lie a step apart, so
//! that what the windows have at one position are neighbours. Rows are as long as vectors want; what lies beyond a row
//! changes nothing.

use super::planes::{NOWHERE, Planes};
use super::{Window, WindowIndex};
use crate::array::scratch::Scratch;
use crate::dtype::Real;
use crate::pool::Pace;
use crate::pool::tasks::Shared;
use crate::simd::lanes::TransposeBlock;
use crate::simd::turn::turn;
use crate::simd::{self, Body, SimdReal, Vector};

/// Numbers that loops take at once: none are left over that would be gone over one by one.
const PACK: usize = 16;
/// Windows of a row, and positions of a window along it and in all, at most, so that rows are small beside a thread's other
/// buffers, and that positions' numbers are exact in single precision; source rows of a window, which are kept.
const WINDOWS: usize = 1 << 14;
const POSITIONS: usize = 1 << 20;
const SOURCES: usize = 64;
/// Strides at most.
const STRIDE: usize = 8;

/// The source rows of a window, split. The next windows find them again.
struct SplitRows<T: Real> {
    /// A row with its padding; not for steps of 1.
    whole: Scratch<T>,
    /// For each row the numbers of each phase.
    phases: Scratch<T>,
    /// Where each row begins in the plane.
    at: Scratch<usize>,
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

impl<T: Real> SplitRows<T> {
    /// With minus infinity beyond the rows.
    fn new(p: &Planes) -> SplitRows<T> {
        let (stride, pad, rows) = (p.axes[2].stride, p.pad[2], p.kernel[0] * p.kernel[1]);
        let len = (windows(p) + (p.kernel[2] - 1) / stride).next_multiple_of(PACK);
        SplitRows {
            whole: Scratch::filled(if stride == 1 { 0 } else { stride * len }, -T::INFINITY),
            phases: Scratch::filled(rows * stride * len, -T::INFINITY),
            at: Scratch::filled(rows, usize::MAX),
            stride,
            len,
            pad,
            seen: p.axes[2].input.min((stride * len).saturating_sub(pad)),
        }
    }

    /// The next plane has other rows.
    fn forget(&mut self) {
        self.at.fill(usize::MAX);
    }

    /// Brings the row that begins at `at` to place `row`.
    #[inline(always)]
    fn take(&mut self, row: usize, x: &[T], at: usize) {
        if self.at[row] == at {
            return;
        }
        self.at[row] = at;
        let size = self.stride * self.len;
        let phases = &mut self.phases[row * size..][..size];
        let whole = if self.stride == 1 { &mut *phases } else { &mut self.whole[..] };
        if self.seen > 0 {
            whole[self.pad..self.pad + self.seen].copy_from_slice(&x[at..][..self.seen]);
        }
        let (stride, len) = (self.stride, self.len);
        if stride > 1 {
            let (src, dst) = (self.whole.as_ptr(), phases.as_mut_ptr());
            // SAFETY: both have a phase's numbers for each step.
            unsafe {
                turn(TransposeBlock { src, src_stride: stride, rows: len, cols: stride, dst, dst_stride: len }, false)
            };
        }
    }

    /// Where in a row the numbers are that windows have at position `k`, side by side.
    fn place(&self, k: usize) -> usize {
        k % self.stride * self.len + k / self.stride
    }
}

/// The largest numbers of windows, and the numbers of what they come from.
struct LargestOf<'a, T: Real> {
    /// The first phases of the source rows, in their order.
    sources: &'a [*const T],
    /// Where the numbers of each position are in a row, and its span.
    positions: &'a [(usize, u32)],
    spans: u32,
    windows: usize,
    best: Shared<T>,
    /// As numbers of T, if they are asked for; -1 where there is none.
    from: Option<Shared<T>>,
}

impl<T: SimdReal> Body<T> for LargestOf<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        for at in (0..self.windows).step_by(V::N) {
            let (mut best, mut from, mut first) = (V::splat(f64::NEG_INFINITY), V::splat(-1.0), 0);
            for &source in self.sources {
                for &(place, span) in self.positions {
                    // SAFETY: all have whole packs, of which vectors are parts.
                    let v = unsafe { V::load(source.add(place + at)) };
                    let takes = V::or(v.gt(best), v.ne(v));
                    best = V::select(takes, v, best);
                    if self.from.is_some() {
                        from = V::select(takes, V::splat((first + span) as f64), from);
                    }
                }
                first += self.spans;
            }
            // SAFETY: as above.
            unsafe {
                best.store(self.best.0.add(at));
                if let Some(p) = &self.from {
                    from.store(p.0.add(at));
                }
            }
        }
    }
}

/// What planes are gone over with.
pub(super) struct Phases<T: Real> {
    rows: SplitRows<T>,
    /// The spans of the positions of windows; all spans of one meet a source row at the same place.
    spans: Scratch<u32>,
    positions: Vec<(usize, u32)>,
    sources: Vec<*const T>,
    best: Scratch<T>,
    from: Scratch<T>,
}

impl<T: Real> Phases<T> {
    fn new(p: &Planes) -> Phases<T> {
        let (rows, spans, n) = (SplitRows::new(p), Scratch::each(p.kernel[2], |k| p.span_at(k)), windows(p));
        let seen = spans.iter().enumerate().filter(|s| *s.1 != NOWHERE);
        Phases {
            positions: seen.map(|(k, &span)| (rows.place(k), span)).collect(),
            sources: Vec::with_capacity(p.kernel[0] * p.kernel[1]),
            best: Scratch::filled(n, T::ZERO),
            from: Scratch::filled(n, T::ZERO),
            rows,
            spans,
        }
    }

    /// Brings the source rows of the windows.
    #[inline(always)]
    fn bring(&mut self, p: &Planes, x: &[T], d: Window, h: Window) {
        let (row, height, size) = (p.axes[2].input, p.axes[1].input, self.rows.stride * self.rows.len);
        self.sources.clear();
        for i in d.from..d.to {
            for j in h.from..h.to {
                let place = i % p.kernel[0] * p.kernel[1] + j % p.kernel[1];
                self.rows.take(place, x, (i * height + j) * row);
                self.sources.push(self.rows.phases[place * size..].as_ptr());
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
            && self.kernel[0].saturating_mul(self.kernel[1]) <= SOURCES
            && self.kernel.iter().fold(1usize, |n, &k| n.saturating_mul(k)) <= POSITIONS
    }

    /// What `max_by_phases` needs, if planes are gone over so.
    pub fn phases<T: Real>(&self) -> Option<Phases<T>> {
        (self.has_phases() && !self.pairs()).then(|| Phases::new(self))
    }

    /// As `max`, and to `places`, if they are asked for, where each comes from.
    #[inline(always)]
    pub fn max_by_phases<T: SimdReal, I: WindowIndex>(
        &self,
        phases: &mut Phases<T>,
        x: &[T],
        y: &mut [T],
        mut places: Option<&mut [I]>,
    ) {
        let width = self.width();
        phases.rows.forget();
        let mut pace = Pace::new();
        for (row, d, h) in self.rows() {
            phases.bring(self, x, d, h);
            pace.step(self.meetings() * phases.sources.len());
            let job = LargestOf {
                sources: &phases.sources,
                positions: &phases.positions,
                spans: self.spans() as u32,
                windows: windows(self),
                best: Shared(phases.best.as_mut_ptr()),
                from: places.is_some().then_some(Shared(phases.from.as_mut_ptr())),
            };
            // SAFETY: all have so many windows.
            unsafe { simd::run::<T>(&job) };
            y[row * width..][..width].copy_from_slice(&phases.best[..width]);
            if let Some(places) = &mut places {
                let any = !phases.sources.is_empty();
                let spans = any.then_some(&phases.spans[..]);
                self.note(&mut places[row * width..][..width], &phases.from[..width], spans);
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
