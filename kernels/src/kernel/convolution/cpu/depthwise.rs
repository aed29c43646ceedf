//! Convolutions of each channel by itself: rows times one weight, where a tile of channels would be nearly empty.

use super::geometry::Geometry;
use super::{ChannelOrder, Conv};
use crate::array::Output;
use crate::array::scratch;
use crate::dtype::Real;
use crate::pool::tasks::SendPtr;
use crate::pool::{self, Pace};
use crate::simd::lanes::{Choose, Lanes, WithLanes, dispatch};

/// Channels of a task where they lie side by side.
const BLOCK: usize = 64;
/// Multiplications that are worth a task.
const TASK: usize = 1 << 17;

/// What is computed; the other two of x, w and y are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    Forward,
    Data(Output),
    Weight(Output),
}

/// All groups of a convolution with one input and one output channel a group.
pub(super) struct Depthwise<'a, T> {
    pub c: &'a Conv,
    pub g: &'a Geometry,
    pub pass: Pass,
    pub x: SendPtr<T>,
    pub w: SendPtr<T>,
    pub y: SendPtr<T>,
    pub bias: Option<&'a [T]>,
}

impl<T: Real> Depthwise<'_, T> {
    pub fn suits(c: &Conv) -> bool {
        c.group > 1 && c.in_channels == c.group && c.out_channels == c.group
    }

    /// Channels that are done together.
    fn block(&self) -> usize {
        if self.c.layout == ChannelOrder::ChannelFirst { 1 } else { BLOCK.min(self.c.group) }
    }

    /// Calls `f` with the kernel's position, places in y and x, count and distance in x of each stretch of numbers.
    #[inline(always)]
    fn each_span(&self, block: usize, mut f: impl FnMut(usize, usize, usize, usize, usize)) {
        let g = self.g;
        let [ad, ah, aw] = &g.axes;
        let [_, kh, kw] = g.kernel;
        let rows = ad.points * ah.points;
        for (od, oh) in (0..rows).map(|r| (r / ah.points, r % ah.points)) {
            for (d, h) in ad.seen(od).flat_map(|d| ah.seen(oh).map(move |h| (d, h))) {
                let z = ((od * ad.step) as isize + ad.taps[d].0) as usize;
                let v = ((oh * ah.step) as isize + ah.taps[h].0) as usize;
                let (y, x) = (od * g.y.at[0] + oh * g.y.at[1], z * g.x.at[0] + v * g.x.at[1]);
                for (t, &(tap, k)) in aw.taps.iter().enumerate() {
                    let k = (ad.taps[d].1 * kh + ah.taps[h].1) * kw + k;
                    let range = aw.reached(t);
                    let column = |o: usize| ((o * aw.step) as isize + tap) as usize;
                    if range.is_empty() {
                        continue;
                    }
                    if self.c.layout == ChannelOrder::ChannelFirst {
                        f(k, y + range.start, x + column(range.start), range.len(), aw.step);
                        continue;
                    }
                    range.for_each(|o| f(k, y + o * g.y.at[2], x + column(o) * g.x.at[2], block, 1));
                }
            }
        }
    }

    /// The weights of some channels, the channels side by side.
    fn weights(&self, first: usize, block: usize, out: &mut [T]) {
        let taps = out.len() / block;
        for (i, v) in out.iter_mut().enumerate() {
            // SAFETY: a weight of one of the block's channels.
            *v = unsafe { *self.w.0.add((first + i % block) * taps + i / block) };
        }
    }

    fn fill_bias(&self, y: *mut T, first: usize, block: usize) {
        let [d, h, w] = self.g.axes.each_ref().map(|a| a.points);
        for p in 0..d * h * w {
            for c in 0..block {
                let v = self.bias.map_or(T::ZERO, |b| b[first + c]);
                // SAFETY: a point of one of the block's channels.
                unsafe { *y.add(p * self.g.y.at[2] + c) = v }
            }
        }
    }

    fn fill_zero(&self, x: *mut T, block: usize) {
        let size: usize = self.g.axes.iter().map(|a| a.source).product();
        for p in 0..size * block {
            // SAFETY: a point of one of the block's channels.
            unsafe { *x.add(p / block * self.g.x.at[2] + p % block) = T::ZERO }
        }
    }
}

impl<T: Real> Choose<T> for &Depthwise<'_, T> {
    fn with<L: Lanes<T>>(self) {
        let (groups, each) = (self.c.group, self.block());
        let blocks = groups.div_ceil(each);
        let weight = matches!(self.pass, Pass::Weight(_));
        let count = if weight { blocks } else { blocks * self.c.batch };
        let work = self.g.work() * groups / count.max(1);
        let join = (TASK / work.max(1)).clamp(1, count.max(1));
        pool::run(count.div_ceil(join), &|t| {
            for i in t * join..count.min((t + 1) * join) {
                let (sample, first) = (i / blocks, i % blocks * each);
                let samples = if weight { 0..self.c.batch } else { sample..sample + 1 };
                // SAFETY: L is what the machine has; the block's channels of the samples are inside the tensors.
                unsafe { L::enter(ChannelRange { a: self, first, block: each.min(groups - first), samples }) }
            }
        });
    }
}

impl<T: Real> Depthwise<'_, T> {
    /// # Safety
    /// The pointers are to tensors that have the convolution's sizes.
    pub unsafe fn run(&self) {
        dispatch(self);
    }
}

/// Some channels of some samples.
struct ChannelRange<'a, 'b, T> {
    a: &'a Depthwise<'b, T>,
    first: usize,
    block: usize,
    samples: std::ops::Range<usize>,
}

impl<T: Real> WithLanes<T> for ChannelRange<'_, '_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let taps = self.a.g.kernel.iter().product::<usize>();
        scratch::with(taps * self.block, |w: &mut [T]| {
            match self.a.pass {
                Pass::Weight(_) => w.fill(T::ZERO),
                _ => self.a.weights(self.first, self.block, w),
            }
            for n in self.samples.clone() {
                // SAFETY: the caller's promise.
                unsafe { self.sample(n, w) }
            }
            if let Pass::Weight(output) = self.a.pass {
                // SAFETY: no other task has these channels.
                unsafe { self.finish(w, output) }
            }
        });
    }
}

impl<T: Real> ChannelRange<'_, '_, T> {
    #[inline(always)]
    unsafe fn sample(&self, n: usize, w: &mut [T]) {
        let (a, block) = (self.a, self.block);
        let x = a.x.0.wrapping_add(n * a.g.x.sample + self.first * a.g.x.channel);
        let y = a.y.0.wrapping_add(n * a.g.y.sample + self.first * a.g.y.channel);
        match a.pass {
            Pass::Forward => a.fill_bias(y, self.first, block),
            Pass::Data(Output::Write) => a.fill_zero(x, block),
            _ => {}
        }
        let mut pace = Pace::new();
        a.each_span(block, |k, y_at, x_at, count, step| {
            pace.step(count);
            let w = &mut w[k * block..][..block];
            let (y, x, reach) = (SendPtr(y), SendPtr(x), (count - 1) * step + 1);
            // SAFETY: the span is inside the tensors, whose channels of this sample no other task has.
            unsafe {
                match a.pass {
                    Pass::Forward => forward(step, w, x.read(x_at, reach), y.slice(y_at, count)),
                    Pass::Data(_) => backward(step, w, x.slice(x_at, reach), y.read(y_at, count)),
                    Pass::Weight(_) => correlate(step, w, x.read(x_at, reach), y.read(y_at, count)),
                }
            }
        });
    }

    #[inline(always)]
    unsafe fn finish(&self, w: &[T], output: Output) {
        let taps = w.len() / self.block;
        for (i, &v) in w.iter().enumerate() {
            // SAFETY: a weight of one of the block's channels.
            unsafe {
                let to = self.a.w.0.add((self.first + i % self.block) * taps + i / self.block);
                *to = if output == Output::Accumulate { *to + v } else { v };
            }
        }
    }
}

// A span has either one number for each of the block's weights, or many numbers for one weight.

/// y += w x
#[inline(always)]
fn forward<T: Real>(step: usize, w: &[T], x: &[T], y: &mut [T]) {
    if w.len() == y.len() {
        return y.iter_mut().zip(w.iter().zip(x)).for_each(|(y, (&w, &x))| *y += w * x);
    }
    match step {
        1 => y.iter_mut().zip(x).for_each(|(y, &x)| *y += w[0] * x),
        _ => y.iter_mut().enumerate().for_each(|(i, y)| *y += w[0] * x[i * step]),
    }
}

/// x += w y
#[inline(always)]
fn backward<T: Real>(step: usize, w: &[T], x: &mut [T], y: &[T]) {
    if w.len() == y.len() {
        return x.iter_mut().zip(w.iter().zip(y)).for_each(|(x, (&w, &y))| *x += w * y);
    }
    match step {
        1 => x.iter_mut().zip(y).for_each(|(x, &y)| *x += w[0] * y),
        _ => y.iter().enumerate().for_each(|(i, &y)| x[i * step] += w[0] * y),
    }
}

/// w += x y
#[inline(always)]
fn correlate<T: Real>(step: usize, w: &mut [T], x: &[T], y: &[T]) {
    if w.len() == y.len() {
        return w.iter_mut().zip(x.iter().zip(y)).for_each(|(w, (&x, &y))| *w += x * y);
    }
    w[0] += dot(step, x, y);
}

/// The sum of products, in sixteen running sums where the numbers are neighbours.
#[inline(always)]
fn dot<T: Real>(step: usize, x: &[T], y: &[T]) -> T {
    if step > 1 {
        return y.iter().enumerate().fold(T::ZERO, |s, (i, &y)| s + x[i * step] * y);
    }
    let mut sums = [T::ZERO; 16];
    let ((xs, x), (ys, y)) = (x.as_chunks::<16>(), y.as_chunks::<16>());
    for (x, y) in xs.iter().zip(ys) {
        (0..16).for_each(|i| sums[i] += x[i] * y[i]);
    }
    x.iter().zip(y).for_each(|(&x, &y)| sums[0] += x * y);
    sums.iter().fold(T::ZERO, |s, &v| s + v)
}
