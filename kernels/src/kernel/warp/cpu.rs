//! On the host.

use super::{Pair, Warp};
use crate::array::Output;
use crate::pool::tasks::{self, Shared};
use crate::simd::{self, Body, SimdReal, Vector};

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
        let n = (end - first) * self.each;
        let to = (Shared(self.at[..n].as_mut_ptr()), Shared(self.weight[..n].as_mut_ptr()));
        let job = LookUp { w, grid, mask, b, first, end, each: self.each, to };
        // SAFETY: both arrays have room for the taps of all places.
        unsafe { simd::run::<T>(&job) };
    }

    /// What place number `p` of the block reads: elements and weights.
    fn of(&self, p: usize) -> (&[usize], &[T]) {
        (&self.at[p * self.each..][..self.each], &self.weight[p * self.each..][..self.each])
    }
}

/// Looking up, by what instructions for rounding the CPU has.
struct LookUp<'a, T> {
    w: &'a Warp,
    grid: &'a [T],
    mask: Option<&'a [T]>,
    b: usize,
    first: usize,
    end: usize,
    each: usize,
    to: (Shared<usize>, Shared<T>),
}

impl<T: SimdReal> Body<T> for LookUp<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        let (n, w) = ((self.end - self.first) * self.each, self.w);
        // SAFETY: the caller's promise.
        let (at, weight) =
            unsafe { (std::slice::from_raw_parts_mut(self.to.0.0, n), std::slice::from_raw_parts_mut(self.to.1.0, n)) };
        let (taps, first) = (at.chunks_exact_mut(self.each).zip(weight.chunks_exact_mut(self.each)), self.first);
        let mut index = [first / (w.to[1] * w.to[2]), first / w.to[2] % w.to[1], first % w.to[2]];
        for (p, (at, weight)) in (first..self.end).zip(taps) {
            self.place(p, index, at, weight);
            index[2] += 1;
            for a in [2, 1] {
                if index[a] == w.to[a] {
                    (index[a], index[a - 1]) = (0, index[a - 1] + 1);
                }
            }
        }
    }
}

impl<T: SimdReal> LookUp<'_, T> {
    #[inline(always)]
    fn pair(&self, a: usize, p: usize, index: [usize; 3]) -> Pair {
        let w = self.w;
        w.pair(a, w.origin(a, index), self.grid[w.number(a, self.b, p, index)].to_f64())
    }

    #[inline(always)]
    fn place(&self, p: usize, index: [usize; 3], at: &mut [usize], weight: &mut [T]) {
        let (w, all) = (self.w, Pair { at: [Some(0), None], weight: [1.0, 0.0] });
        let z = if w.dims == 3 { self.pair(0, p, index) } else { all };
        let (y, x) = (self.pair(1, p, index), self.pair(2, p, index));
        let times = self.mask.map_or(1.0, |m| m[w.factor(self.b, p, index)].to_f64());
        for (tap, (at, weight)) in at.iter_mut().zip(weight).enumerate() {
            // The last axis changes fastest.
            let (i, j, k) = (tap >> 2 & 1, tap >> 1 & 1, tap & 1);
            let inside = z.at[i].zip(y.at[j]).zip(x.at[k]);
            *at = inside.map_or(NONE, |((z, y), x)| (z * w.from[1] + y) * w.from[2] + x);
            *weight = T::from_f64(z.weight[i] * y.weight[j] * x.weight[k] * times);
        }
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

/// For each place the sum over channels of the gradient times what is read along each axis.
pub(super) fn by_places<T: SimdReal>(w: &Warp, x: &[T], grid: &[T], gy: &[T], places: &mut [T], output: Output) {
    match w.dims {
        2 => by_axes::<T, 2, 4>(w, x, grid, gy, places, output),
        _ => by_axes::<T, 3, 8>(w, x, grid, gy, places, output),
    }
}

/// `D` axes, the last one first, and `K` taps.
fn by_axes<T: SimdReal, const D: usize, const K: usize>(
    w: &Warp,
    x: &[T],
    grid: &[T],
    gy: &[T],
    places: &mut [T],
    output: Output,
) {
    let (n, image, channels) = (w.places(), w.image(), w.channels);
    let blocks = n.div_ceil(BLOCK);
    let shared = Shared(places.as_mut_ptr());
    let shared = &shared;
    let along: [Warp; D] = std::array::from_fn(|component| {
        let mut along = w.clone();
        along.order[2 - component] = 1;
        along
    });
    tasks::share(w.batch * blocks, gy.len() * w.taps() * D, move |task| {
        let (b, first) = (task / blocks, task % blocks * BLOCK);
        let end = (first + BLOCK).min(n);
        let taps = along.each_ref().map(|along| {
            let mut taps = WarpTaps::new(w);
            taps.look_up(along, grid, None, b, first, end);
            taps
        });
        let (x, gy) = (&x[b * channels * image..][..channels * image], &gy[b * channels * n..][..channels * n]);
        let mut sums = [[T::ZERO; D]; BLOCK];
        for c in 0..channels {
            if w.channel_last {
                let g = |p: usize| gy[p * channels + c];
                let read = |at: usize| if at == NONE { None } else { x.get(at * channels + c) };
                add_products::<T, D, K>(&taps, read, (first..end).map(g), &mut sums);
            } else {
                let (x, gy) = (&x[c * image..][..image], &gy[c * n + first..c * n + end]);
                add_products::<T, D, K>(&taps, |at| x.get(at), gy.iter().copied(), &mut sums);
            }
        }
        for (p, sums) in (first..end).zip(&sums) {
            for (component, &sum) in sums.iter().enumerate() {
                // SAFETY: inside the array, a number of a place of this block alone.
                let to = unsafe { &mut *shared.0.add(w.number(2 - component, b, p, [0; 3])) };
                *to = if output == Output::Write { sum } else { *to + sum };
            }
        }
    });
}

#[inline(always)]
fn add_products<'a, T: SimdReal, const D: usize, const K: usize>(
    taps: &[WarpTaps<T>; D],
    read: impl Fn(usize) -> Option<&'a T>,
    gy: impl Iterator<Item = T>,
    sums: &mut [[T; D]; BLOCK],
) {
    let weights = taps.each_ref().map(|t| t.weight.as_chunks::<K>().0);
    let at = taps[0].at.as_chunks::<K>().0;
    for (p, ((g, at), sums)) in gy.zip(at).zip(sums).enumerate() {
        let mut along = [T::ZERO; D];
        for (tap, &at) in at.iter().enumerate() {
            if let Some(&v) = read(at) {
                (0..D).for_each(|a| along[a] += v * weights[a][p][tap]);
            }
        }
        (0..D).for_each(|a| sums[a] += g * along[a]);
    }
}
