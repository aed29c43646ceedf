//! On the host.

use super::{Pair, Warp};
use crate::array::Output;
use crate::pool::tasks::{self, Shared};
use crate::simd::SimdReal;

/// Places that are looked up together, for all channels.
const BLOCK: usize = 256;
/// Channels that are added to together.
const CHANNELS: usize = 8;
/// The mark of what is not in the image.
const NONE: usize = usize::MAX;

/// What a block of places reads, one place after the other.
struct WarpTaps<T> {
    at: [usize; 8 * BLOCK],
    weight: [T; 8 * BLOCK],
    each: usize,
}

impl<T: SimdReal> WarpTaps<T> {
    fn new(w: &Warp) -> WarpTaps<T> {
        WarpTaps { at: [NONE; 8 * BLOCK], weight: [T::ZERO; 8 * BLOCK], each: w.taps() }
    }

    /// Looks up the places from `first` to `end` of image `b`.
    fn look_up(&mut self, w: &Warp, grid: &[T], b: usize, first: usize, end: usize) {
        for p in first..end {
            let index = [p / (w.to[1] * w.to[2]), p / w.to[2] % w.to[1], p % w.to[2]];
            let pair = |a: usize| {
                let component = 2 - a;
                if component >= w.dims {
                    return Pair { at: [Some(0), None], weight: [1.0, 0.0] };
                }
                let at = match w.flow {
                    true => (b * w.dims + component) * w.places() + p,
                    false => (b * w.places() + p) * w.dims + component,
                };
                w.pair(a, index[a], grid[at].to_f64())
            };
            let pairs = [pair(0), pair(1), pair(2)];
            for tap in 0..self.each {
                // The last axis changes fastest.
                let of = |a: usize| (pairs[a].at[tap >> (2 - a) & 1], pairs[a].weight[tap >> (2 - a) & 1]);
                let [(z, wz), (y, wy), (x, wx)] = [of(0), of(1), of(2)];
                let at = z.zip(y).zip(x).map_or(NONE, |((z, y), x)| (z * w.from[1] + y) * w.from[2] + x);
                let k = (p - first) * self.each + tap;
                (self.at[k], self.weight[k]) = (at, T::from_f64(wz * wy * wx));
            }
        }
    }

    /// What place number `p` of the block reads.
    fn of(&self, p: usize) -> impl Iterator<Item = (usize, T)> {
        let k = p * self.each..(p + 1) * self.each;
        self.at[k.clone()].iter().copied().zip(self.weight[k].iter().copied()).filter(|(at, _)| *at != NONE)
    }
}

impl Warp {
    /// Distances of channels and of elements in an array of `size` elements a channel, and where image `b` begins.
    fn layout(&self, b: usize, size: usize) -> (usize, usize, usize) {
        let (channel, element) = if self.channel_last { (1, self.channels) } else { (size, 1) };
        (b * self.channels * size, channel, element)
    }
}

pub(super) fn gather<T: SimdReal>(w: &Warp, x: &[T], grid: &[T], y: &mut [T]) {
    let (places, size) = (w.places(), y.len());
    let blocks = places.div_ceil(BLOCK);
    let shared = Shared(y.as_mut_ptr());
    let shared = &shared;
    tasks::share(w.batch * blocks, size * w.taps(), move |task| {
        let (b, first) = (task / blocks, task % blocks * BLOCK);
        let end = (first + BLOCK).min(places);
        let mut taps = WarpTaps::new(w);
        taps.look_up(w, grid, b, first, end);
        let (start, channel, element) = w.layout(b, w.image());
        let (begin, to_channel, to_element) = w.layout(b, places);
        let value = |c: usize, p: usize| {
            taps.of(p).fold(T::ZERO, |sum, (at, v)| sum + x[start + c * channel + at * element] * v)
        };
        // SAFETY: places of this block alone, inside y.
        let keep = |c: usize, p: usize| unsafe {
            shared.0.add(begin + c * to_channel + (first + p) * to_element).write(value(c, p));
        };
        match w.channel_last {
            true => (0..end - first).for_each(|p| (0..w.channels).for_each(|c| keep(c, p))),
            false => (0..w.channels).for_each(|c| (0..end - first).for_each(|p| keep(c, p))),
        }
    });
}

pub(super) fn spread<T: SimdReal>(w: &Warp, gy: &[T], grid: &[T], gx: &mut [T], output: Output) {
    let (places, image, size) = (w.places(), w.image(), gx.len());
    if output == Output::Write {
        gx.fill(T::ZERO);
    }
    let groups = w.channels.div_ceil(CHANNELS);
    let shared = Shared(gx.as_mut_ptr());
    let shared = &shared;
    tasks::share(w.batch * groups, gy.len().max(size) * w.taps(), move |task| {
        let (b, group) = (task / groups, task % groups * CHANNELS);
        let channels = group..(group + CHANNELS).min(w.channels);
        let (start, channel, element) = w.layout(b, image);
        let (begin, from_channel, from_element) = w.layout(b, places);
        let mut taps = WarpTaps::new(w);
        for first in (0..places).step_by(BLOCK) {
            let end = (first + BLOCK).min(places);
            taps.look_up(w, grid, b, first, end);
            let add = |c: usize, p: usize| {
                let g = gy[begin + c * from_channel + (first + p) * from_element];
                for (at, v) in taps.of(p) {
                    // SAFETY: a channel of this task's, inside gx.
                    unsafe { *shared.0.add(start + c * channel + at * element) += g * v };
                }
            };
            match w.channel_last {
                true => (0..end - first).for_each(|p| channels.clone().for_each(|c| add(c, p))),
                false => channels.clone().for_each(|c| (0..end - first).for_each(|p| add(c, p))),
            }
        }
    });
}
