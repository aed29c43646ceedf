//! Statistics of channels, and what normalization does with them, forward and backward.
//!
//! An array is taken as (outer, channels, inner). Work is cut into units, some channels by some outer rows, by the sizes
//! alone, and what units find is merged in a fixed order: results do not depend on the number of threads. A unit that
//! has its channels whole goes on to write them while they are in the cache.

mod columns;
mod groups;
mod layer;
mod rows;
mod shared;
mod turned;

#[cfg(feature = "emulate")]
mod tests;

use crate::array::Output;
use crate::array::scratch::{Scratch, list};
use crate::dtype::Real;
use crate::finish::ChannelScaling;
use crate::pool;
use crate::pool::tasks::SendPtr;
use crate::simd::lanes::{Lanes, WithLanes, enter};
pub use groups::ChannelGroups;
pub use layer::{LayerBackward, LayerGradients, LayerRows};
use std::ops::Range;

/// Inner axes shorter than this are columns: loops run along the channels. Without outer rows to add up that pays for
/// shorter ones only.
const SHORT: usize = 64;
const SHORT_ALONE: usize = 16;
/// Neighbouring elements that a unit has in each of its rows, so that memory is read in long pieces.
const PIECE: usize = 256;
/// Arrays below this size are one unit.
const SMALL: usize = 1 << 13;
/// Units that a large array has at least, and elements that are worth a unit.
const UNITS: usize = 16;
const UNIT: usize = 1 << 15;
/// Elements that are summed up in their own type; the sums of such blocks are merged in f64.
const BLOCK: usize = 4096;

/// Sizes of an array (outer, channels, inner) that has statistics for each channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    pub outer: usize,
    pub channels: usize,
    pub inner: usize,
}

/// Mean and biased variance of each channel.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    pub mean: Vec<f64>,
    pub variance: Vec<f64>,
}

/// Scale and shift of each channel; absent ones are 1 and 0.
#[derive(Clone, Copy, Debug)]
pub struct Scale<'a, T> {
    pub gamma: Option<&'a [T]>,
    pub beta: Option<&'a [T]>,
    pub eps: f64,
}

/// What the gradient of x is made of.
#[derive(Clone, Copy, Debug)]
pub struct InputGradient<'a, T> {
    /// `None`: it is in the place of the gradient of x, to be written over.
    pub gy: Option<&'a [T]>,
    /// Needed for anything but the sums of gy and fixed statistics.
    pub x: Option<&'a [T]>,
    pub mean: &'a [f64],
    /// `1 / sqrt(variance + eps)`
    pub inverse: &'a [f64],
    pub gamma: Option<&'a [T]>,
    /// Gradients of mean and variance themselves.
    pub gmean: Option<&'a [T]>,
    pub gvariance: Option<&'a [T]>,
    /// Whether the statistics are those of x, so that gradients flow through them.
    pub own: bool,
}

/// For each channel: the sum of `gy`, and of `gy * (x - mean)`.
pub struct Sums {
    pub gy: Vec<f64>,
    pub product: Vec<f64>,
}

/// Two numbers for each channel: what units find.
type ChannelPair = [f64; 2];

/// Some channels and some outer rows.
#[derive(Clone)]
struct ChannelTile {
    channels: Range<usize>,
    outer: Range<usize>,
}

/// How an array is cut: groups of channels, each in parts of outer rows.
struct ChannelTiling {
    c: Channels,
    group: usize,
    groups: usize,
    rows: usize,
    parts: usize,
}

impl ChannelTiling {
    fn new(c: Channels) -> ChannelTiling {
        let group = match c.size() < SMALL {
            true => c.channels.max(1),
            false => (PIECE / c.inner).clamp(1, c.channels),
        };
        let groups = c.channels.div_ceil(group);
        let wanted = if groups >= UNITS { 1 } else { UNITS.div_ceil(groups.max(1)) };
        let rows = c.outer.div_ceil(wanted.min(group * c.count() / UNIT).max(1)).max(1);
        ChannelTiling { c, group, groups, rows, parts: c.outer.div_ceil(rows).max(1) }
    }

    fn unit(&self, i: usize) -> ChannelTile {
        let (g, p) = (i % self.groups * self.group, i / self.groups * self.rows);
        ChannelTile { channels: g..self.c.channels.min(g + self.group), outer: p..self.c.outer.min(p + self.rows) }
    }

    /// Runs `find` on every unit, merges what it finds for each channel, and then runs `write` with that.
    fn run(&self, find: &Find, merge: &Merge, write: &Write) -> Vec<ChannelPair> {
        let mut totals = list(self.c.channels, [0.0; 2]);
        let all = SendPtr(totals.as_mut_ptr());
        // SAFETY: units of different groups have different channels.
        let of = |u: &ChannelTile| unsafe { all.slice(u.channels.start, u.channels.len()) };
        if self.parts == 1 {
            pool::run(self.groups, &|i| {
                let unit = self.unit(i);
                find(&unit, of(&unit));
                write(&unit, of(&unit));
            });
            return totals;
        }
        self.find_parts(find, merge, &mut totals);
        pool::run(self.groups * self.parts, &|i| {
            let unit = self.unit(i);
            write(&unit, &totals[unit.channels.clone()]);
        });
        totals
    }

    fn find_parts(&self, find: &Find, merge: &Merge, totals: &mut [ChannelPair]) {
        let n = self.c.channels;
        let mut found = Scratch::filled(self.parts * n, [0.0; 2]);
        let all = SendPtr(found.as_mut_ptr());
        pool::run(self.groups * self.parts, &|i| {
            let unit = self.unit(i);
            // SAFETY: each unit has its own place.
            let own = unsafe { all.slice(i / self.groups * n + unit.channels.start, unit.channels.len()) };
            find(&unit, own);
        });
        totals.copy_from_slice(&found[..n]);
        for p in 1..self.parts {
            let (before, own) = (p * self.rows, self.rows.min(self.c.outer - p * self.rows));
            let (a, b) = ((before * self.c.inner) as f64, (own * self.c.inner) as f64);
            totals.iter_mut().zip(&found[p * n..]).for_each(|(t, f)| merge(t, a, f, b));
        }
    }
}

type Find<'a> = dyn Fn(&ChannelTile, &mut [ChannelPair]) + Sync + 'a;
type Merge<'a> = dyn Fn(&mut ChannelPair, f64, &ChannelPair, f64) + 'a;
type Write<'a> = dyn Fn(&ChannelTile, &[ChannelPair]) + Sync + 'a;

/// Merges mean and squared deviation of `b` more elements into those of `a`.
#[inline(always)]
fn merge_moments(total: &mut ChannelPair, a: f64, more: &ChannelPair, b: f64) {
    let (delta, part) = (more[0] - total[0], b / (a + b));
    total[0] += delta * part;
    total[1] += more[1] + delta * delta * a * part;
}

/// Mean and squared deviation of numbers whose squares may be too large for their own type.
#[cold]
#[inline(never)]
fn wide_moments<T: Real>(x: impl Iterator<Item = T> + Clone) -> ChannelPair {
    let wide = x.map(|v| v.to_f64());
    let mean = wide.clone().sum::<f64>() / wide.clone().count() as f64;
    [mean, wide.map(|v| (v - mean) * (v - mean)).sum()]
}

fn add(total: &mut ChannelPair, _a: f64, more: &ChannelPair, _b: f64) {
    (total[0], total[1]) = (total[0] + more[0], total[1] + more[1]);
}

impl Channels {
    pub fn size(&self) -> usize {
        self.outer * self.channels * self.inner
    }

    /// Elements of a channel.
    pub fn count(&self) -> usize {
        self.outer * self.inner
    }

    /// `y = (x - mean) / sqrt(variance + eps) * gamma + beta` with x's own moments, which are the result.
    pub fn normalize<T: Real>(&self, x: &[T], y: &mut [T], scale: Scale<T>) -> Moments {
        assert!(x.len() == self.size() && y.len() == x.len(), "the slices do not have the sizes");
        if x.is_empty() {
            return Moments { mean: list(self.channels, f64::NAN), variance: list(self.channels, f64::NAN) };
        }
        if self.are_short() {
            return self.normalize_turned(x, y, scale, |_, _| {});
        }
        let (to, n) = (SendPtr(y.as_mut_ptr()), self.count() as f64);
        let found = self.find_moments(x, &|unit, found| {
            let moments = found.iter().map(|f| (f[0], 1.0 / (f[1] / n + scale.eps).sqrt()));
            self.apply(x, to, unit, &Coefficients::forward(unit, moments, scale));
        });
        Moments { mean: found.iter().map(|f| f[0]).collect(), variance: found.iter().map(|f| f[1] / n).collect() }
    }

    /// Mean and squared deviation of each channel; `write` runs on every unit with those of its channels.
    fn find_moments<T: Real>(&self, x: &[T], write: &Write) -> Vec<ChannelPair> {
        let find = |unit: &ChannelTile, out: &mut [ChannelPair]| {
            // SAFETY: units lie within the slices, whose sizes were checked.
            unsafe { enter(NormalizationTask { c: self, unit, work: ChannelWork::Moments { x, out } }) }
        };
        ChannelTiling::new(*self).run(&find, &merge_moments, write)
    }

    /// `y = (x - mean) * inverse * gamma + beta` with given statistics.
    pub fn scale<T: Real>(&self, x: &[T], y: &mut [T], mean: &[f64], inverse: &[f64], scale: Scale<T>) {
        assert!(x.len() == self.size() && y.len() == x.len(), "the slices do not have the sizes");
        let (to, g) = (SendPtr(y.as_mut_ptr()), ChannelTiling::new(*self));
        if x.is_empty() {
            return;
        }
        pool::run(g.groups * g.parts, &|i| {
            let unit = g.unit(i);
            let moments = unit.channels.clone().map(|c| (mean[c], inverse[c]));
            self.apply(x, to, &unit, &Coefficients::forward(&unit, moments, scale));
        });
    }

    /// The same as what is done to each channel.
    pub fn scaling<T: Real>(&self, mean: &[f64], inverse: &[f64], scale: Scale<T>) -> ChannelScaling {
        let each = (0..self.channels).map(|c| (mean[c], inverse[c]));
        let factors = Coefficients::<T>::factors(0..self.channels, each, scale);
        ChannelScaling(factors.map(|(minus, times, _, plus)| [minus, times, plus]).collect())
    }

    fn apply<T: Real>(&self, x: &[T], y: SendPtr<T>, unit: &ChannelTile, by: &Coefficients<T>) {
        let work = ChannelWork::Map { a: Some(x), x: None, y, output: Output::Write, by };
        // SAFETY: units lie within the slices, whose sizes were checked.
        unsafe { enter(NormalizationTask { c: self, unit, work }) };
    }

    /// Gives the sums that the gradients of gamma and beta are made of, and writes or adds that of x. A unit reads gy of no
    /// other unit while x's gradient is written.
    pub fn backward<T: Real>(&self, b: InputGradient<T>, gx: Option<(&mut [T], Output)>) -> Sums {
        let right = |s: &[T]| s.len() == self.size();
        assert!(b.gy.is_none_or(right) && b.x.is_none_or(right), "the slices do not have the sizes");
        assert!(gx.as_ref().is_none_or(|g| right(g.0)), "the slices do not have the sizes");
        if self.size() == 0 {
            return Sums { gy: list(self.channels, 0.0), product: list(self.channels, 0.0) };
        }
        if self.are_short() {
            return self.backward_turned(b, gx, |_, _, _| {});
        }
        let to = gx.map(|(g, output)| (SendPtr(g.as_mut_ptr()), output));
        let gy = match (b.gy, to) {
            (Some(gy), _) => SendPtr::of(gy),
            (None, Some((place, Output::Write))) => place,
            (None, _) => panic!("there is no gradient of y"),
        };
        let find = |unit: &ChannelTile, out: &mut [ChannelPair]| {
            let mean: Vec<T> = b.mean[unit.channels.clone()].iter().map(|&m| T::from_f64(m)).collect();
            // SAFETY: units lie within the slices, whose sizes were checked.
            unsafe {
                enter(NormalizationTask { c: self, unit, work: ChannelWork::Sums { gy, x: b.x, mean: &mean, out } })
            };
            // What the rounding of the mean has left out.
            let rest = |c: usize, m: &T| b.mean[c] - m.to_f64();
            unit.channels.clone().zip(&mean).zip(out).for_each(|((c, m), s)| s[1] -= rest(c, m) * s[0]);
        };
        let write = |unit: &ChannelTile, sums: &[ChannelPair]| {
            let Some((y, output)) = to else { return };
            let by = Coefficients::backward(unit, &b, sums, self.count() as f64);
            let x = b.x.filter(|_| b.own);
            // SAFETY: units lie within the slices, whose sizes were checked.
            unsafe {
                enter(NormalizationTask { c: self, unit, work: ChannelWork::Map { a: b.gy, x, y, output, by: &by } })
            };
        };
        let found = ChannelTiling::new(*self).run(&find, &add, &write);
        Sums { gy: found.iter().map(|f| f[0]).collect(), product: found.iter().map(|f| f[1]).collect() }
    }
}

/// For each channel of a unit: `y = (a - minus) * times + plus`, or with x: `y = a * times + (x - minus) * by_x + plus`.
struct Coefficients<T> {
    minus: Vec<T>,
    times: Vec<T>,
    by_x: Vec<T>,
    plus: Vec<T>,
}

impl<T: Real> Coefficients<T> {
    fn new(each: impl Iterator<Item = (f64, f64, f64, f64)>) -> Self {
        let room = || Vec::with_capacity(each.size_hint().0);
        let mut c = Coefficients { minus: room(), times: room(), by_x: room(), plus: room() };
        for (minus, times, by_x, plus) in each {
            c.minus.push(T::from_f64(minus));
            c.times.push(T::from_f64(times));
            c.by_x.push(T::from_f64(by_x));
            c.plus.push(T::from_f64(plus));
        }
        c
    }

    /// From mean and inverse deviation. What rounding takes from the mean is added in the end.
    fn forward(unit: &ChannelTile, moments: impl Iterator<Item = (f64, f64)>, s: Scale<T>) -> Self {
        Self::new(Self::factors(unit.channels.clone(), moments, s))
    }

    fn factors(
        channels: Range<usize>,
        moments: impl Iterator<Item = (f64, f64)>,
        s: Scale<T>,
    ) -> impl Iterator<Item = (f64, f64, f64, f64)> {
        channels.zip(moments).map(move |(c, (mean, inverse))| {
            let (gamma, beta) = (s.gamma.map_or(1.0, |g| g[c].to_f64()), s.beta.map_or(0.0, |b| b[c].to_f64()));
            let (times, rest) = (gamma * inverse, mean - T::from_f64(mean).to_f64());
            (mean, times, 0.0, beta - rest * times)
        })
    }

    /// From the sums of gy and of gy * (x - mean) over n elements.
    fn backward(unit: &ChannelTile, b: &InputGradient<T>, sums: &[ChannelPair], n: f64) -> Self {
        Self::new(unit.channels.clone().zip(sums).map(|(c, &sums)| match b.own {
            true => b.by_slopes(c, b.slopes(c, sums, n)),
            false => (0.0, b.times(c), 0.0, 0.0),
        }))
    }
}

impl<T: Real> InputGradient<'_, T> {
    /// What gy is multiplied by.
    fn times(&self, c: usize) -> f64 {
        self.gamma.map_or(1.0, |g| g[c].to_f64()) * self.inverse[c]
    }

    /// What the statistics over n elements add to the gradient: a multiple of `x - mean`, and a number.
    fn slopes(&self, c: usize, [sum, product]: ChannelPair, n: f64) -> [f64; 2] {
        let at = |list: Option<&[T]>| list.map_or(0.0, |l| l[c].to_f64());
        let (inverse, times) = (self.inverse[c], self.times(c));
        let by_x = 2.0 * at(self.gvariance) / n - times * inverse * inverse * product / n;
        [by_x, (at(self.gmean) - times * sum) / n]
    }

    /// The coefficients of a channel. What rounding takes from the mean is added in the end.
    fn by_slopes(&self, c: usize, [by_x, plus]: [f64; 2]) -> (f64, f64, f64, f64) {
        let mean = self.mean[c];
        let rest = mean - T::from_f64(mean).to_f64();
        (mean, self.times(c), by_x, plus - by_x * rest)
    }
}

/// `1 / sqrt(variance + eps)` of each.
pub fn inverse_deviations(variance: &[f64], eps: f64) -> Vec<f64> {
    let mut to = list(variance.len(), 0.0);
    // SAFETY: the slices are as long as the job says.
    unsafe { enter(InverseDeviations { variance, eps, to: &mut to }) };
    to
}

struct InverseDeviations<'a> {
    variance: &'a [f64],
    eps: f64,
    to: &'a mut [f64],
}

impl WithLanes<f64> for InverseDeviations<'_> {
    #[inline(always)]
    unsafe fn call<L: Lanes<f64>>(self) {
        for (to, v) in self.to.iter_mut().zip(self.variance) {
            *to = 1.0 / (v + self.eps).sqrt();
        }
    }
}

/// What is done to a unit.
enum ChannelWork<'a, T> {
    /// Mean and squared deviation.
    Moments { x: &'a [T], out: &'a mut [ChannelPair] },
    /// Sums of gy and of gy * (x - mean). No other thread writes the unit's part of gy meanwhile.
    Sums { gy: SendPtr<T>, x: Option<&'a [T]>, mean: &'a [T], out: &'a mut [ChannelPair] },
    /// See `Coefficients`. Without `a`, y has it and is written over.
    Map { a: Option<&'a [T]>, x: Option<&'a [T]>, y: SendPtr<T>, output: Output, by: &'a Coefficients<T> },
}

struct NormalizationTask<'a, T> {
    c: &'a Channels,
    unit: &'a ChannelTile,
    work: ChannelWork<'a, T>,
}

impl<T: Real> WithLanes<T> for NormalizationTask<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.c.inner < if self.c.outer > 1 { SHORT } else { SHORT_ALONE } {
                true => columns::run::<T>(self.c, self.unit, self.work),
                false => rows::run::<T, L>(self.c, self.unit, self.work),
            }
        }
    }
}
