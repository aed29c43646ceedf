//! Places of a block, looked up together for all channels: what each reads, with which weights. Along the axes by loops that the
//! compiler makes vectors of, where the padding lets it.

// Several arrays go by one index.
#![allow(clippy::needless_range_loop)]

use crate::kernel::warp::{Padding, Warp};
use crate::simd::{self, Body, SimdReal, Vector};

/// Places that are looked up together.
pub(super) const BLOCK: usize = 128;
/// The mark of what is not in the image; its weight is 0.
pub(super) const NONE: usize = usize::MAX;

/// A number for each place of a block.
type Each<T> = [T; BLOCK];

/// What a block of places reads: for each tap the elements and their weights.
pub(super) struct WarpTaps<T> {
    pub at: [Each<usize>; 8],
    pub weight: [Each<T>; 8],
}

/// The weights' derivatives by the place on each axis.
pub(super) struct WarpSlopes<T>(pub [[Each<T>; 8]; 3]);

impl<T: SimdReal> WarpSlopes<T> {
    pub fn new() -> WarpSlopes<T> {
        WarpSlopes([[[T::ZERO; BLOCK]; 8]; 3])
    }
}

/// Along one axis: what is said of the places, and where that counts from; the elements before and behind, -1 for none, and their
/// weights and these weights' derivatives.
#[derive(Clone, Copy)]
struct AxisBlock {
    said: Each<f64>,
    origin: Each<f64>,
    at: [Each<i64>; 2],
    weight: [Each<f64>; 2],
    slope: [Each<f64>; 2],
}

/// Looks up places.
pub(super) struct LookUp<T> {
    axes: [AxisBlock; 3],
    times: Each<f64>,
    pub taps: WarpTaps<T>,
}

impl<T: SimdReal> LookUp<T> {
    pub fn new() -> LookUp<T> {
        let none = [0.0; BLOCK];
        let axis = AxisBlock { said: none, origin: none, at: [[0; BLOCK]; 2], weight: [none; 2], slope: [none; 2] };
        let taps = WarpTaps { at: [[NONE; BLOCK]; 8], weight: [[T::ZERO; BLOCK]; 8] };
        LookUp { axes: [axis; 3], times: [1.0; BLOCK], taps }
    }

    /// Looks up the places from `first` to `end` of image `b`: their taps, and slopes where these are asked for.
    pub fn up(
        &mut self,
        w: &Warp,
        grid: &[T],
        mask: Option<&[T]>,
        [b, first, end]: [usize; 3],
        slopes: Option<&mut WarpSlopes<T>>,
    ) {
        self.read(w, grid, mask, [b, first, end]);
        let n = end - first;
        for a in 3 - w.dims..3 {
            if w.nearest || w.padding == Padding::Reflect {
                self.axes[a].find_one_by_one(w, a, n);
            }
        }
        let slopes = slopes.map_or(std::ptr::null_mut(), |s| s as *mut _);
        // SAFETY: both are this thread's own.
        unsafe { simd::run::<T>(&Found { w, n, look: self, slopes }) };
    }

    /// What is said of the places.
    fn read(&mut self, w: &Warp, grid: &[T], mask: Option<&[T]>, [b, first, end]: [usize; 3]) {
        let mut index = [first / (w.to[1] * w.to[2]), first / w.to[2] % w.to[1], first % w.to[2]];
        for (k, p) in (first..end).enumerate() {
            for a in 3 - w.dims..3 {
                let axis = &mut self.axes[a];
                (axis.said[k], axis.origin[k]) = (grid[w.number(a, b, p, index)].to_f64(), w.origin(a, index));
            }
            if let Some(mask) = mask {
                self.times[k] = mask[w.factor(b, p, index)].to_f64();
            }
            index[2] += 1;
            for a in [2, 1] {
                if index[a] == w.to[a] {
                    (index[a], index[a - 1]) = (0, index[a - 1] + 1);
                }
            }
        }
    }
}

impl AxisBlock {
    fn find_one_by_one(&mut self, w: &Warp, a: usize, n: usize) {
        for k in 0..n {
            let [pair, slope] = [0, 1].map(|more| w.pair(a, w.order[a] + more, self.origin[k], self.said[k]));
            for i in 0..2 {
                self.at[i][k] = pair.at[i].map_or(-1, |at| at as i64);
                (self.weight[i][k], self.slope[i][k]) = (pair.weight[i], slope.weight[i]);
            }
        }
    }

    /// As [`Warp::pair`], of all places, which are no mirrored ones.
    #[inline(always)]
    fn find(&mut self, w: &Warp, a: usize, n: usize) {
        let (size, zero) = (w.from[a] as f64, w.padding == Padding::Zero);
        let (mut place, mut by) = ([0.0; BLOCK], [w.slope(a); BLOCK]);
        match (w.flow, w.corners) {
            (true, _) => (0..n).for_each(|k| place[k] = self.origin[k] + self.said[k]),
            (_, true) => (0..n).for_each(|k| place[k] = (self.said[k] + 1.0) / 2.0 * (size - 1.0)),
            _ => (0..n).for_each(|k| place[k] = ((self.said[k] + 1.0) * size - 1.0) / 2.0),
        }
        let last = size - 1.0;
        for k in 0..n {
            let (below, beyond) = (!zero & (place[k] < 0.0), !zero & (place[k] > last));
            by[k] = if below | beyond { 0.0 } else { by[k] };
            place[k] = if below { 0.0 } else { place[k] };
            place[k] = if beyond { last } else { place[k] };
        }
        for k in 0..n {
            let first = place[k].floor();
            let t = place[k] - first;
            for (i, p) in [first, first + 1.0].into_iter().enumerate() {
                // SAFETY: between 0 and a size; the larger of NaN and 0 is 0.
                let at = unsafe { p.max(0.0).min(last).to_int_unchecked::<i64>() };
                self.at[i][k] = if zero & ((p < 0.0) | (p > last)) { -1 } else { at };
            }
            (self.weight[0][k], self.weight[1][k]) = (1.0 - t, t);
            (self.slope[0][k], self.slope[1][k]) = (-by[k] + 0.0 * t, by[k] + 0.0 * t);
        }
        for _ in 0..w.order[a] {
            (self.weight, self.slope) = (self.slope, [[0.0; BLOCK]; 2]);
        }
    }
}

/// What is found along the axes, and put together.
struct Found<'a, T> {
    w: &'a Warp,
    n: usize,
    look: *mut LookUp<T>,
    slopes: *mut WarpSlopes<T>,
}

impl<T: SimdReal> Body<T> for Found<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        // SAFETY: the caller's promise.
        let (look, slopes) = unsafe { (&mut *self.look, self.slopes.as_mut()) };
        let LookUp { axes, times, taps } = look;
        let Found { w, n, .. } = *self;
        if !w.nearest && w.padding != Padding::Reflect {
            (3 - w.dims..3).for_each(|a| axes[a].find(w, a, n));
        }
        let side = |tap: usize, a: usize| tap >> (2 - a) & 1; // the last axis changes fastest
        for tap in 0..w.taps() {
            let (mut at, mut weight) = ([0i64; BLOCK], [1.0; BLOCK]);
            for a in 3 - w.dims..3 {
                let (of, size) = (&axes[a].at[side(tap, a)], w.from[a] as i64);
                for k in 0..n {
                    at[k] = if (at[k] < 0) | (of[k] < 0) { -1 } else { at[k] * size + of[k] };
                    weight[k] *= axes[a].weight[side(tap, a)][k];
                }
            }
            for k in 0..n {
                taps.at[tap][k] = at[k] as usize; // -1 is NONE
                taps.weight[tap][k] = if at[k] < 0 { T::ZERO } else { T::from_f64(weight[k] * times[k]) };
            }
        }
        let Some(slopes) = slopes else { return };
        for (tap, by) in (0..w.taps()).flat_map(|tap| (3 - w.dims..3).map(move |by| (tap, by))) {
            let mut slope = [1.0; BLOCK];
            for a in 3 - w.dims..3 {
                let of = if a == by { &axes[a].slope } else { &axes[a].weight };
                (0..n).for_each(|k| slope[k] *= of[side(tap, a)][k]);
            }
            for k in 0..n {
                let is_there = taps.at[tap][k] != NONE;
                slopes.0[by][tap][k] = if is_there { T::from_f64(slope[k] * times[k]) } else { T::ZERO };
            }
        }
    }
}
