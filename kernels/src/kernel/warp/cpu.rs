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
    fn look_up(&mut self, w: &Warp, grid: &[T], mask: Option<&[T]>, b: usize, first: usize, end: usize) {
        for p in first..end {
            let index = [p / (w.to[1] * w.to[2]), p / w.to[2] % w.to[1], p % w.to[2]];
            let pair = |a: usize| {
                if 2 - a >= w.dims {
                    return Pair { at: [Some(0), None], weight: [1.0, 0.0] };
                }
                w.pair(a, w.origin(a, index), grid[w.number(a, b, p, index)].to_f64())
            };
            let pairs = [pair(0), pair(1), pair(2)];
            let times = mask.map_or(1.0, |m| m[w.factor(b, p, index)].to_f64());
            for tap in 0..self.each {
                // The last axis changes fastest.
                let of = |a: usize| (pairs[a].at[tap >> (2 - a) & 1], pairs[a].weight[tap >> (2 - a) & 1]);
                let [(z, wz), (y, wy), (x, wx)] = [of(0), of(1), of(2)];
                let at = z.zip(y).zip(x).map_or(NONE, |((z, y), x)| (z * w.from[1] + y) * w.from[2] + x);
                let k = (p - first) * self.each + tap;
                (self.at[k], self.weight[k]) = (at, T::from_f64(wz * wy * wx * times));
            }
        }
    }

    /// What place number `p` of the block reads: elements and weights.
    fn of(&self, p: usize) -> (&[usize], &[T]) {
        (&self.at[p * self.each..][..self.each], &self.weight[p * self.each..][..self.each])
    }
}

/// The sum of what a place reads of a channel: what is not in the image is beyond the end of `x`.
#[inline(always)]
fn read<T: SimdReal>(x: &[T], (at, weight): (&[usize], &[T])) -> T {
    at.iter().zip(weight).fold(T::ZERO, |sum, (&at, &w)| x.get(at).map_or(sum, |&v| sum + v * w))
}

/// Calls `f` with the number of taps as a constant.
macro_rules! with_taps {
    ($taps:expr, $f:ident ($($arg:expr),*)) => {
        match $taps.each {
            1 => $f::<T, 1>($($arg),*),
            4 => $f::<T, 4>($($arg),*),
            _ => $f::<T, 8>($($arg),*),
        }
    };
}

fn read_line<T: SimdReal, const K: usize>(x: &[T], taps: &WarpTaps<T>, y: &mut [T]) {
    let (at, weight) = (taps.at.chunks_exact(K), taps.weight.chunks_exact(K));
    y.iter_mut().zip(at.zip(weight)).for_each(|(y, taps)| *y = read(x, taps));
}

fn add_line<T: SimdReal, const K: usize>(gx: &mut [T], taps: &WarpTaps<T>, gy: &[T]) {
    let (at, weight) = (taps.at.chunks_exact(K), taps.weight.chunks_exact(K));
    for (&g, (at, weight)) in gy.iter().zip(at.zip(weight)) {
        for (&at, &w) in at.iter().zip(weight) {
            if let Some(gx) = gx.get_mut(at) {
                *gx += g * w;
            }
        }
    }
}

pub(super) fn gather<T: SimdReal>(w: &Warp, x: &[T], grid: &[T], mask: Option<&[T]>, y: &mut [T]) {
    let (places, size, image, channels) = (w.places(), y.len(), w.image(), w.channels);
    let blocks = places.div_ceil(BLOCK);
    let shared = Shared(y.as_mut_ptr());
    let shared = &shared;
    tasks::share(w.batch * blocks, size * w.taps(), move |task| {
        let (b, first) = (task / blocks, task % blocks * BLOCK);
        let end = (first + BLOCK).min(places);
        let mut taps = WarpTaps::new(w);
        taps.look_up(w, grid, mask, b, first, end);
        let x = &x[b * channels * image..][..channels * image];
        // SAFETY: elements of this block's places alone, inside y.
        let part = |at: usize, n: usize| unsafe {
            std::slice::from_raw_parts_mut(shared.0.add(b * channels * places + at), n)
        };
        if !w.channel_last {
            for (c, x) in x.chunks_exact(image).enumerate() {
                with_taps!(taps, read_line(x, &taps, part(c * places + first, end - first)));
            }
            return;
        }
        for p in first..end {
            let y = part(p * channels, channels);
            y.fill(T::ZERO);
            let (at, weight) = taps.of(p - first);
            for (&at, &v) in at.iter().zip(weight).filter(|(at, _)| **at != NONE) {
                y.iter_mut().zip(&x[at * channels..]).for_each(|(y, &x)| *y += x * v);
            }
        }
    });
}

pub(super) fn spread<T: SimdReal>(w: &Warp, gy: &[T], grid: &[T], mask: Option<&[T]>, gx: &mut [T], output: Output) {
    let (places, image, size, channels) = (w.places(), w.image(), gx.len(), w.channels);
    if output == Output::Write {
        gx.fill(T::ZERO);
    }
    let groups = channels.div_ceil(CHANNELS);
    let shared = Shared(gx.as_mut_ptr());
    let shared = &shared;
    tasks::share(w.batch * groups, gy.len().max(size) * w.taps(), move |task| {
        let (b, group) = (task / groups, task % groups * CHANNELS);
        let own = group..(group + CHANNELS).min(channels);
        let gy = &gy[b * channels * places..][..channels * places];
        // SAFETY: elements of this task's channels, inside gx.
        let part =
            |at: usize, n: usize| unsafe { std::slice::from_raw_parts_mut(shared.0.add(b * channels * image + at), n) };
        let mut taps = WarpTaps::new(w);
        for first in (0..places).step_by(BLOCK) {
            let end = (first + BLOCK).min(places);
            taps.look_up(w, grid, mask, b, first, end);
            if !w.channel_last {
                for c in own.clone() {
                    let gy = &gy[c * places + first..c * places + end];
                    with_taps!(taps, add_line(part(c * image, image), &taps, gy));
                }
                continue;
            }
            for p in first..end {
                let gy = &gy[p * channels..][own.clone()];
                let (at, weight) = taps.of(p - first);
                for (&at, &v) in at.iter().zip(weight).filter(|(at, _)| **at != NONE) {
                    let gx = part(at * channels + own.start, own.len());
                    gx.iter_mut().zip(gy).for_each(|(gx, &g)| *gx += g * v);
                }
            }
        }
    });
}
