//! On the host: channel by channel where there are few, or with 16 of them side by side.

mod sides;
mod taps;
#[cfg(feature = "emulate")]
mod tests;

use super::Warp;
use crate::array::Output;
use crate::error::Result;
use crate::pool::tasks::{self, SendPtr, Shared};
use crate::simd::SimdReal;
pub(super) use sides::counted_sides;
use taps::{BLOCK, LookUp, NONE, WarpSlopes, WarpTaps};

/// Places of a task.
const PART: usize = 8 * BLOCK;
/// Channels that are added to together.
const CHANNELS: usize = 8;

/// Calls a function with the number of taps as a constant.
macro_rules! with_taps {
    ($w:expr, $f:ident ($($arg:expr),*)) => {
        match $w.taps() {
            1 => $f::<T, 1>($($arg),*),
            4 => $f::<T, 4>($($arg),*),
            _ => $f::<T, 8>($($arg),*),
        }
    };
}
use with_taps;

/// What is not in the image is beyond the end of `x`.
fn read_line<T: SimdReal, const K: usize>(x: &[T], taps: &WarpTaps<T>, y: &mut [T]) {
    for (p, y) in y.iter_mut().enumerate() {
        *y = T::ZERO;
        for t in 0..K {
            if let Some(&v) = x.get(taps.at[t][p]) {
                *y += v * taps.weight[t][p];
            }
        }
    }
}

fn add_line<T: SimdReal, const K: usize>(gx: &mut [T], taps: &WarpTaps<T>, gy: &[T]) {
    for (p, &g) in gy.iter().enumerate() {
        for t in 0..K {
            if let Some(gx) = gx.get_mut(taps.at[t][p]) {
                *gx += g * taps.weight[t][p];
            }
        }
    }
}

/// Calls `f(b, first, end)` for each block of places, and what a task makes with `new` for its blocks.
fn each_block<S>(
    w: &Warp,
    elements: usize,
    new: impl Fn() -> S + Sync,
    f: impl Fn(&mut S, usize, usize, usize) + Sync,
) {
    let places = w.places();
    let parts = places.div_ceil(PART);
    tasks::share(w.batch * parts, elements, |task| {
        let (b, from, mut state) = (task / parts, task % parts * PART, new());
        for first in (from..places.min(from + PART)).step_by(BLOCK) {
            f(&mut state, b, first, (first + BLOCK).min(places));
        }
    });
}

pub(super) fn gather<T: SimdReal>(w: &Warp, x: &[T], grid: &[T], mask: Option<&[T]>, y: &mut [T]) -> Result<()> {
    if sides::pay(w) {
        return sides::gather(w, x, grid, mask, y);
    }
    let (places, size, image, channels) = (w.places(), y.len(), w.image(), w.channels);
    let shared = Shared(y.as_mut_ptr());
    let shared = &shared;
    each_block(w, size * w.taps(), LookUp::new, move |look, b, first, end| {
        look.up(w, grid, mask, [b, first, end], None);
        let (x, taps) = (&x[b * channels * image..][..channels * image], &look.taps);
        // SAFETY: elements of this block's places alone, inside y.
        let part = |at: usize, n: usize| unsafe {
            std::slice::from_raw_parts_mut(shared.0.add(b * channels * places + at), n)
        };
        if !w.channel_last {
            for (c, x) in x.chunks_exact(image).enumerate() {
                with_taps!(w, read_line(x, taps, part(c * places + first, end - first)));
            }
            return;
        }
        for p in first..end {
            let y = part(p * channels, channels);
            y.fill(T::ZERO);
            let read = (0..w.taps()).map(|t| (taps.at[t][p - first], taps.weight[t][p - first]));
            for (at, v) in read.filter(|(at, _)| *at != NONE) {
                y.iter_mut().zip(&x[at * channels..]).for_each(|(y, &x)| *y += x * v);
            }
        }
    });
    Ok(())
}

pub(super) fn spread<T: SimdReal>(w: &Warp, gy: &[T], grid: &[T], mask: Option<&[T]>, gx: &mut [T], output: Output) {
    if sides::pay(w) {
        return sides::spread(w, gy, grid, mask, gx, output);
    }
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
        let mut look = LookUp::new();
        for first in (0..places).step_by(BLOCK) {
            let end = (first + BLOCK).min(places);
            look.up(w, grid, mask, [b, first, end], None);
            let taps = &look.taps;
            if !w.channel_last {
                for c in own.clone() {
                    let gy = &gy[c * places + first..c * places + end];
                    with_taps!(w, add_line(part(c * image, image), taps, gy));
                }
                continue;
            }
            for p in first..end {
                let gy = &gy[p * channels..][own.clone()];
                let added = (0..w.taps()).map(|t| (taps.at[t][p - first], taps.weight[t][p - first]));
                for (at, v) in added.filter(|(at, _)| *at != NONE) {
                    let gx = part(at * channels + own.start, own.len());
                    gx.iter_mut().zip(gy).for_each(|(gx, &g)| *gx += g * v);
                }
            }
        }
    });
}

/// The gradient by what says the places.
pub(super) fn by_places<T: SimdReal>(w: &Warp, [x, gy, grid]: [&[T]; 3], to: &mut [T], output: Output) -> Result<()> {
    let to = PlaceGradients { to: SendPtr(to.as_mut_ptr()), add: output == Output::Accumulate };
    if sides::pay(w) {
        return sides::by_places(w, [x, gy, grid], to);
    }
    let (places, image, channels) = (w.places(), w.image(), w.channels);
    let new = || (LookUp::new(), WarpSlopes::new());
    each_block(w, gy.len() * w.taps(), new, move |(look, slopes), b, first, end| {
        look.up(w, grid, None, [b, first, end], Some(slopes));
        // The distances of neighbours, and of channels.
        let [(of_x, to_x), (of_gy, to_gy)] =
            [image, places].map(|n| if w.channel_last { (channels, 1) } else { (1, n) });
        let (x, gy) = (&x[b * channels * image..], &gy[b * channels * places..]);
        for p in first..end {
            for a in 3 - w.dims..3 {
                let of = |c: usize, t: usize| {
                    let at = look.taps.at[t][p - first];
                    if at == NONE { T::ZERO } else { x[at * of_x + c * to_x] * slopes.0[a][t][p - first] }
                };
                let read = |c: usize| (0..w.taps()).map(|t| of(c, t)).sum::<T>();
                let sum = (0..channels).map(|c| gy[p * of_gy + c * to_gy] * read(c)).sum();
                // SAFETY: each place is one block's.
                unsafe { to.put(w, a, b, p, sum) };
            }
        }
    });
    Ok(())
}

/// Where gradients by places go.
#[derive(Clone, Copy)]
struct PlaceGradients<T> {
    to: SendPtr<T>,
    add: bool,
}

impl<T: SimdReal> PlaceGradients<T> {
    /// # Safety
    /// No other thread puts this number.
    #[inline(always)]
    unsafe fn put(&self, w: &Warp, a: usize, b: usize, p: usize, v: T) {
        // SAFETY: inside the gradient, which is as large as what says the places; the caller's promise.
        let to = unsafe { &mut self.to.slice(w.number(a, b, p, [0; 3]), 1)[0] };
        *to = if self.add { *to + v } else { v };
    }
}
