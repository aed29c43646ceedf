//! Maxima where windows move along rows by two: a source row is split into its even and its odd numbers, so that what the windows
//! have at one position are neighbours. Rows are as long as vectors want; what lies beyond a row is minus infinity.

use super::planes::{NOWHERE, Planes, find};
use super::{WindowIndex, larger};
use crate::array::scratch::Scratch;
use crate::dtype::Real;
use crate::pool::Pace;

/// Rows are multiples of it, so that no numbers are left over that are compared one by one.
const PACK: usize = 32;
/// Windows of a row at most, so that rows are small beside a thread's other buffers.
const WINDOWS: usize = 1 << 14;

/// The even and the odd numbers of a source row with its padding.
struct SplitRow<T: Real> {
    halves: [Scratch<T>; 2],
    pad: usize,
    /// Numbers of a source row that a window can see.
    seen: usize,
}

impl<T: Real> SplitRow<T> {
    #[inline(always)]
    fn new(width: usize, kernel: usize, pad: usize, input: usize) -> SplitRow<T> {
        let half = || Scratch::filled(width + kernel / 2 + 1, -T::INFINITY);
        SplitRow { halves: [half(), half()], pad, seen: input.min((2 * width + kernel).saturating_sub(pad)) }
    }

    #[inline(always)]
    fn take(&mut self, row: &[T]) {
        let [even, odd] = &mut self.halves;
        let (first, second) = if self.pad.is_multiple_of(2) { (even, odd) } else { (odd, even) };
        let (at, next) = (self.pad / 2, self.pad.div_ceil(2));
        let pairs = row[..self.seen].as_chunks::<2>();
        let (first, second) = (&mut first[at..], &mut second[next..]);
        for ((a, b), &[v, w]) in first.iter_mut().zip(second.iter_mut()).zip(pairs.0) {
            (*a, *b) = (v, w);
        }
        if let &[last] = pairs.1 {
            first[pairs.0.len()] = last;
        }
    }

    /// What the windows have at position `k`.
    #[inline(always)]
    fn at(&self, k: usize) -> &[T] {
        &self.halves[k % 2][k / 2..]
    }
}

#[inline(always)]
fn keep_larger<T: Real>(v: &[T], best: &mut [T]) {
    for (best, &v) in best.iter_mut().zip(v) {
        *best = larger(*best, v);
    }
}

impl Planes {
    pub fn has_halves(&self) -> bool {
        let w = &self.axes[2];
        self.inner == 1 && w.stride == 2 && (1..=WINDOWS).contains(&w.windows.len()) && self.kernel[2] <= WINDOWS
    }

    /// As `max`, and to `places`, if they are asked for, where each comes from.
    #[inline(always)]
    pub fn max_by_halves<T: Real, I: WindowIndex>(&self, x: &[T], y: &mut [T], mut places: Option<&mut [I]>) {
        let (width, kernel, pad, input) = (self.width(), self.kernel[2], self.pad[2], self.axes[2].input);
        let whole = width.next_multiple_of(PACK);
        let mut halves = SplitRow::new(whole, kernel, pad, input);
        let (mut best, mut from) = (Scratch::filled(whole, T::ZERO), Scratch::filled(whole, NOWHERE));
        // All spans of a position meet a source row at the same place.
        let mut numbers = Scratch::filled(kernel, NOWHERE);
        for (k, number) in numbers.iter_mut().enumerate() {
            *number = self.span_at(k);
        }
        let mut pace = Pace::new();
        for (row, d, h) in self.rows() {
            best.fill(-T::INFINITY);
            from.fill(NOWHERE);
            for (i, (at, _)) in self.sources(d, h).enumerate() {
                pace.step(self.meetings());
                halves.take(&x[at..][..input]);
                for (k, &span) in numbers.iter().enumerate() {
                    if span == NOWHERE {
                        continue;
                    }
                    let v = halves.at(k);
                    match places {
                        Some(_) => find(v, 1, false, i as u32 * self.spans() as u32 + span, &mut best, &mut from),
                        None => keep_larger(v, &mut best),
                    }
                }
            }
            y[row * width..][..width].copy_from_slice(&best[..width]);
            if let Some(places) = &mut places {
                let any = d.from < d.to && h.from < h.to;
                for (o, (to, &from)) in places[row * width..][..width].iter_mut().zip(from.iter()).enumerate() {
                    *to = match from {
                        // Minus infinity in all of the window: its first number counts.
                        NOWHERE if any && self.axes[2].windows[o].from < self.axes[2].windows[o].to => {
                            I::new(numbers[pad.saturating_sub(2 * o)])
                        }
                        NOWHERE => I::NOWHERE,
                        from => I::new(from),
                    };
                }
            }
        }
    }
}
