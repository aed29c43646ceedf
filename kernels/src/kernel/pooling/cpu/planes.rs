//! Pooling of one plane: an output row is folded from shifted input rows.

use super::{Divisor, Pooling, PoolingAxis, PoolingTask, Window, WindowIndex, wins};
use crate::array::Output;
use crate::array::scratch::{Scratch, reserve};
use crate::dtype::Real;
use crate::pool::Pace;
use crate::simd::SimdReal;
use std::ops::Range;

/// What is the same for every plane. Loops are plain loops: a closure that is not inlined into `Lanes::enter` would be
/// compiled without the vectors.
pub(super) struct Planes {
    pub axes: [PoolingAxis; 3],
    pub inner: usize,
    pub kernel: [usize; 3],
    pub task: PoolingTask,
    /// See [`Pooling::pairs_of`].
    pub pairs: bool,
    /// Whether no two windows meet.
    pub apart: bool,
    /// How a row's windows meet an input row.
    spans: Vec<RowSpan>,
}

/// A stretch of one output row and the input row's numbers that meet it.
struct RowSpan {
    y: usize,
    x: usize,
    count: usize,
    step: usize,
    /// Whether the outputs meet their input row's first number.
    first: bool,
}

/// An output row: its number and its windows in depth and height.
type OutputRow = (usize, Window, Window);

/// Runs `$body` for each `$i < $n` with `$v` = every `$step`-th of `$x`.
macro_rules! each_of {
    ($x:expr, $step:expr, $n:expr, |$i:ident, $v:ident| $body:expr) => {{
        let (x, n) = ($x, $n);
        match $step {
            1 => {
                for ($i, &$v) in x[..n].iter().enumerate() {
                    $body
                }
            }
            2 => {
                for ($i, &[$v, _]) in x[..2 * n - 2].as_chunks::<2>().0.iter().enumerate() {
                    $body
                }
                let ($i, $v) = (n - 1, x[2 * n - 2]);
                $body
            }
            step => {
                for ($i, &$v) in x.iter().step_by(step).take(n).enumerate() {
                    $body
                }
            }
        }
    }};
}

impl Planes {
    pub fn new(p: &Pooling, task: PoolingTask) -> Self {
        let axes = [0, 1, 2].map(|i| PoolingAxis::new(p, i));
        let apart = p.kernel.iter().zip(&p.stride).all(|(kernel, stride)| kernel <= stride);
        let (inner, kernel, pairs) = (p.inner, p.kernel, p.pairs_of(task));
        let mut planes = Planes { axes, inner, kernel, task, pairs, apart, spans: Vec::new() };
        p.runs().for_each(|(k, outputs, first)| planes.add_spans(p, k, outputs, first));
        planes
    }

    /// Spans of the outputs `range` at position `k` of their windows.
    fn add_spans(&mut self, p: &Pooling, k: usize, range: Range<usize>, first: bool) {
        let (c, s, pad) = (p.inner, p.stride[2], p.pad[2]);
        let x = |o: usize| (o * s + k - pad) * c;
        if p.is_one_span() {
            let (y, x, count) = (range.start * c, x(range.start), range.len() * c);
            return self.spans.push(RowSpan { y, x, count, step: s, first });
        }
        let n = self.spans.len() + range.len();
        reserve(&mut self.spans, n);
        self.spans.extend(range.map(|o| RowSpan { y: o * c, x: x(o), count: c, step: 1, first }));
    }

    /// Numbers of an output row.
    pub(super) fn width(&self) -> usize {
        self.axes[2].windows.len() * self.inner
    }

    /// Numbers of an output row, times the positions along it in a window.
    #[inline(always)]
    pub(super) fn meetings(&self) -> usize {
        self.width() * self.kernel[2]
    }

    #[inline(always)]
    pub(super) fn rows(&self) -> impl Iterator<Item = OutputRow> {
        let [d, h, _] = &self.axes;
        let n = h.windows.len();
        (0..d.windows.len() * n).map(move |i| (i, d.windows[i / n], h.windows[i % n]))
    }

    /// Where the input rows of the windows begin, and whether it is the first.
    #[inline(always)]
    pub(super) fn sources(&self, d: Window, h: Window) -> impl Iterator<Item = (usize, bool)> {
        let (row, height) = (self.axes[2].input * self.inner, self.axes[1].input);
        let n = h.to - h.from;
        (0..(d.to - d.from) * n).map(move |i| (((d.from + i / n) * height + h.from + i % n) * row, i == 0))
    }

    #[inline(always)]
    pub fn max<T: SimdReal>(&self, x: &[T], y: &mut [T]) {
        let width = self.width();
        let mut pace = Pace::new();
        for (row, d, h) in self.rows() {
            let y = &mut y[row * width..][..width];
            y.fill(-T::INFINITY);
            for (at, first) in self.sources(d, h) {
                pace.step(self.meetings());
                for s in &self.spans {
                    let (y, take) = (&mut y[s.y..][..s.count], first && s.first);
                    each_of!(&x[at + s.x..], s.step, s.count, |i, v| y[i] =
                        if take | wins(v, y[i]) { v } else { y[i] });
                }
            }
        }
    }

    #[inline(always)]
    pub fn max_backward<T: SimdReal>(&self, gy: &[T], x: &[T], gx: &mut [T], output: Output) {
        if self.pairs {
            return self.max_pairs_backward(gy, x, gx, output);
        }
        if output == Output::Write {
            gx.fill(T::ZERO);
        }
        let (mut best, mut found) = (Scratch::filled(self.width(), T::ZERO), RowMaxima::new(self));
        let mut pace = Pace::new();
        for row in self.rows() {
            found.find(self, x, row, &mut best, &mut pace);
            for (i, &g) in gy[row.0 * self.width()..][..self.width()].iter().enumerate() {
                if let Some(place) = found.place(i) {
                    gx[place] += g;
                }
            }
        }
    }

    /// As `max`, and the places of the maxima in x; as bytes those in pairs of rows.
    #[inline(always)]
    pub fn max_keeping<T: SimdReal, I: WindowIndex>(&self, x: &[T], y: &mut [T], places: &mut [I]) {
        if size_of::<I>() == 1 {
            return self.max_pairs_keeping(x, y, places);
        }
        let mut found = RowMaxima::new(self);
        let mut pace = Pace::new();
        for row in self.rows() {
            let at = row.0 * self.width();
            let y = &mut y[at..][..self.width()];
            y.fill(-T::INFINITY);
            found.find(self, x, row, y, &mut pace);
            for (i, to) in places[at..][..self.width()].iter_mut().enumerate() {
                *to = found.place(i).map_or(I::NOWHERE, |place| I::new(place as u32));
            }
        }
    }

    /// Divides each number of a row.
    #[inline(always)]
    fn divide<T: Real>(&self, divisor: Divisor, d: Window, h: Window, row: &mut [T]) {
        let size = |w: &Window| if divisor == Divisor::Padded { w.padded } else { w.to - w.from };
        if divisor == Divisor::One {
            return;
        }
        let count = |w: &Window| T::from_f64((size(&d) * size(&h) * size(w)) as f64);
        let windows = &self.axes[2].windows;
        // Those that are alike, as most are, share a count.
        let mut first = 0;
        while first < windows.len() {
            let alike = windows[first..].iter().take_while(|w| size(w) == size(&windows[first])).count();
            let by = count(&windows[first]);
            row[first * self.inner..(first + alike) * self.inner].iter_mut().for_each(|v| *v = *v / by);
            first += alike;
        }
    }

    #[inline(always)]
    pub fn sum<T: Real>(&self, x: &[T], y: &mut [T], divisor: Divisor) {
        if self.pairs {
            return self.sum_pairs(x, y, divisor);
        }
        let width = self.width();
        // Of the source rows that an output row sees, so that windows go along one row alone.
        let mut sums = Scratch::filled(self.axes[2].input * self.inner, T::ZERO);
        let mut pace = Pace::new();
        for (row, d, h) in self.rows() {
            let y = &mut y[row * width..][..width];
            y.fill(T::ZERO);
            pace.step(self.meetings());
            for (at, first) in self.sources(d, h) {
                let x = &x[at..][..sums.len()];
                pace.step(x.len());
                match first {
                    true => sums.copy_from_slice(x),
                    false => sums.iter_mut().zip(x).for_each(|(sum, &v)| *sum += v),
                }
            }
            let is_seen = d.from < d.to && h.from < h.to;
            for s in self.spans.iter().filter(|_| is_seen) {
                let y = &mut y[s.y..][..s.count];
                each_of!(&sums[s.x..], s.step, s.count, |i, v| y[i] += v);
            }
            self.divide(divisor, d, h, y);
        }
    }

    #[inline(always)]
    pub fn sum_backward<T: Real>(&self, gy: &[T], gx: &mut [T], divisor: Divisor, output: Output) {
        if output == Output::Write {
            gx.fill(T::ZERO);
        }
        let width = self.width();
        let mut g = Scratch::filled(width, T::ZERO);
        let mut pace = Pace::new();
        for (row, d, h) in self.rows() {
            g.copy_from_slice(&gy[row * width..][..width]);
            self.divide(divisor, d, h, &mut g);
            for (at, _) in self.sources(d, h) {
                pace.step(self.meetings());
                for s in &self.spans {
                    spread(&mut gx[at + s.x..], &g[s.y..][..s.count], s.step);
                }
            }
        }
    }
}

/// Adds the gradients of some planes to their places; windows may be `apart`.
pub(super) fn max_backward_to<T: Real, I: WindowIndex>(
    (planes, apart): (usize, bool),
    gy: &[T],
    places: &[I],
    gx: &mut [T],
    output: Output,
) {
    if output == Output::Write {
        gx.fill(T::ZERO);
    }
    Pace::new().step(gy.len());
    let (from, to) = (gy.len() / planes, gx.len() / planes);
    if apart && output == Output::Write {
        return put_to_planes(gx, places, gy, [from, to]);
    }
    // Of small planes four take turns, of others four parts.
    let together = if from < 16 * PARTS { planes / PARTS * PARTS } else { 0 };
    let (gx, rest) = gx.split_at_mut(together * to);
    add_to_planes(gx, places, gy, [together, from, to]);
    for (i, gx) in rest.chunks_exact_mut(to).enumerate() {
        let at = (together + i) * from;
        add_to(gx, &places[at..at + from], &gy[at..at + from]);
    }
}

/// Where no two gradients go to one place.
#[inline(never)]
fn put_to_planes<T: Real, I: WindowIndex>(gx: &mut [T], places: &[I], gy: &[T], [from, to]: [usize; 2]) {
    for ((gx, places), gy) in gx.chunks_exact_mut(to).zip(places.chunks(from.max(1))).zip(gy.chunks(from.max(1))) {
        for (place, &g) in places.iter().zip(gy) {
            // Nowhere is beyond all.
            if let Some(gx) = gx.get_mut(place.get() as usize) {
                *gx = g;
            }
        }
    }
}

/// Neighbours often share a place, and wait for each other there: parts far from each other take turns.
const PARTS: usize = 4;

/// Of as many planes as there are parts, and more.
#[inline(never)]
fn add_to_planes<T: Real, I: WindowIndex>(gx: &mut [T], places: &[I], gy: &[T], [planes, from, to]: [usize; 3]) {
    let part = planes / PARTS;
    for plane in 0..part {
        let first = |k: usize| k * part + plane;
        let places: [&[I]; PARTS] = std::array::from_fn(|k| &places[first(k) * from..][..from]);
        let gy: [&[T]; PARTS] = std::array::from_fn(|k| &gy[first(k) * from..][..from]);
        for i in 0..from {
            for k in 0..PARTS {
                // Nowhere is beyond all.
                let place = places[k][i].get() as usize;
                if place < to {
                    gx[first(k) * to + place] += gy[k][i];
                }
            }
        }
    }
}

/// Of one plane. A function of its own, so that all that it uses is in registers.
#[inline(never)]
fn add_to<T: Real, I: WindowIndex>(gx: &mut [T], places: &[I], gy: &[T]) {
    let part = gy.len() / PARTS;
    let mut add = |i: usize| {
        // Nowhere is beyond all.
        if let Some(gx) = gx.get_mut(places[i].get() as usize) {
            *gx += gy[i];
        }
    };
    for i in 0..part {
        (0..PARTS).for_each(|k| add(k * part + i));
    }
    (PARTS * part..gy.len()).for_each(add);
}

/// The maxima of a row of windows.
struct RowMaxima {
    /// Which meeting of a source row and a span each comes from, and for all meetings the place in x of their output 0.
    from: Scratch<u32>,
    starts: Vec<usize>,
    step: usize,
}

/// The window sees only padding.
const NOWHERE: u32 = u32::MAX;

impl RowMaxima {
    fn new(p: &Planes) -> RowMaxima {
        let mut starts = Vec::new();
        reserve(&mut starts, p.kernel[0] * p.kernel[1] * p.spans.len());
        let step = p.spans.first().map_or(1, |s| s.step);
        RowMaxima { from: Scratch::filled(p.width(), NOWHERE), starts, step }
    }

    /// The largest numbers to `best`, but for windows that see only padding.
    #[inline(always)]
    fn find<T: SimdReal>(&mut self, p: &Planes, x: &[T], (_, d, h): OutputRow, best: &mut [T], pace: &mut Pace) {
        self.from.fill(NOWHERE);
        self.starts.clear();
        for (at, first) in p.sources(d, h) {
            pace.step(p.meetings());
            for s in &p.spans {
                let (best, from) = (&mut best[s.y..][..s.count], &mut self.from[s.y..][..s.count]);
                find(&x[at + s.x..], s.step, first && s.first, self.starts.len() as u32, best, from);
                self.starts.push((at + s.x).wrapping_sub(s.y * s.step));
            }
        }
    }

    /// Where in x the maximum of window `i` is.
    #[inline(always)]
    fn place(&self, i: usize) -> Option<usize> {
        self.starts.get(self.from[i] as usize).map(|start| start.wrapping_add(i * self.step))
    }
}

/// Notes where every `step`-th of `x` is larger than the best numbers so far, or all of it with `take`.
#[inline(always)]
pub(super) fn find<T: Real>(x: &[T], step: usize, take: bool, number: u32, best: &mut [T], from: &mut [u32]) {
    let n = best.len();
    let from = &mut from[..n];
    if take {
        from.fill(number);
        each_of!(x, step, n, |i, v| best[i] = v);
        return;
    }
    each_of!(x, step, n, |i, v| {
        let take = wins(v, best[i]);
        best[i] = if take { v } else { best[i] };
        from[i] = if take { number } else { from[i] };
    });
}

/// Adds `g` to every `step`-th of `x`.
#[inline(always)]
fn spread<T: Real>(x: &mut [T], g: &[T], step: usize) {
    let n = g.len();
    match step {
        1 => x.iter_mut().zip(g).for_each(|(x, &g)| *x += g),
        2 => {
            x[..2 * n - 2].as_chunks_mut::<2>().0.iter_mut().zip(g).for_each(|(x, &g)| x[0] += g);
            x[2 * n - 2] += g[n - 1];
        }
        step => x.iter_mut().step_by(step).zip(g).for_each(|(x, &g)| *x += g),
    }
}
