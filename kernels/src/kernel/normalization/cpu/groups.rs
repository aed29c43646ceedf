//! Normalization of groups of channels in each sample: rows are normalized by themselves, and within a row each channel has a
//! scale and a shift.

use super::rows::add_moments;
use super::{
    ChannelPair, ChannelTile, ChannelWork, Channels, Coefficients, InputGradient, Moments, NormalizationTask, SMALL,
    Scale, Sums, UNIT, UNITS, merge_moments,
};
use crate::array::Output;
use crate::array::scratch::{Scratch, list};
use crate::dtype::Real;
use crate::expr::op::Binary;
use crate::kernel::short_rows::RowGroup;
use crate::pool;
use crate::pool::tasks::SendPtr;
use crate::simd::lanes::{Lanes, WithLanes, enter};
use crate::simd::{self, SimdReal};
use std::ops::Range;

/// Elements of the rows that one task has.
const ROWS: usize = 1 << 13;

/// Sizes of an array (before, groups, after, width, inner) whose rows are (width, inner): the channels of a group, and what a
/// channel has in one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelGroups {
    /// Samples that are numbered by axes before that of the groups.
    pub before: usize,
    pub groups: usize,
    /// Samples that are numbered by axes after it.
    pub after: usize,
    /// Channels of a group.
    pub width: usize,
    pub inner: usize,
    /// Each sample has scales and shifts of its own.
    pub by_sample: bool,
}

/// Some rows, or some channels of one row.
#[derive(Clone)]
struct GroupTile {
    rows: Range<usize>,
    channels: Range<usize>,
}

/// How an array is cut: rows, or each row into parts of its channels, by the sizes alone.
struct GroupTiling {
    rows: usize,
    each: usize,
    parts: usize,
    width: usize,
}

impl GroupTiling {
    fn new(g: &ChannelGroups) -> GroupTiling {
        let (rows, length) = (g.rows(), g.length());
        let each = if g.size() < SMALL { rows } else { (ROWS / length).clamp(1, rows) };
        let wanted = if rows >= UNITS { 1 } else { UNITS.div_ceil(rows).min(length / UNIT).clamp(1, g.width) };
        GroupTiling { rows, each: if wanted > 1 { 1 } else { each }, parts: wanted, width: g.width }
    }

    fn tiles(&self) -> usize {
        self.rows.div_ceil(self.each) * self.parts
    }

    fn tile(&self, i: usize) -> GroupTile {
        let (row, p) = (i / self.parts * self.each, i % self.parts);
        let channels = self.width * p / self.parts..self.width * (p + 1) / self.parts;
        GroupTile { rows: row..self.rows.min(row + self.each), channels }
    }
}

impl ChannelGroups {
    pub fn rows(&self) -> usize {
        self.before * self.groups * self.after
    }

    /// Elements of a row.
    pub fn length(&self) -> usize {
        self.width * self.inner
    }

    fn size(&self) -> usize {
        self.rows() * self.length()
    }

    /// Scales, and shifts.
    pub fn scales(&self) -> usize {
        if self.by_sample { self.rows() * self.width } else { self.groups * self.width }
    }

    /// The channels of all samples, each by itself.
    pub fn channels(&self) -> Channels {
        Channels { outer: 1, channels: self.rows() * self.width, inner: self.inner }
    }

    /// Whether there are many short rows, each of one channel.
    fn are_turned(&self) -> bool {
        self.width == 1 && self.channels().are_short()
    }

    /// The scales of rows of one channel.
    fn by_row<T: Real>(&self, scales: &[T]) -> Scratch<T> {
        Scratch::each(self.rows(), |row| scales[self.scale_of(row)])
    }

    /// Which scale the first channel of a row has.
    fn scale_of(&self, row: usize) -> usize {
        let group = if self.by_sample { row } else { row / self.after % self.groups };
        group * self.width
    }

    /// The neighbouring channels that a tile has, and for each its row in the tile and its scale.
    fn unit(&self, t: &GroupTile) -> ChannelTile {
        let first = t.rows.start * self.width + t.channels.start;
        let end = (t.rows.end - 1) * self.width + t.channels.end;
        ChannelTile { channels: first..end, outer: 0..1 }
    }

    fn places(&self, t: &GroupTile) -> impl Iterator<Item = (usize, usize)> {
        let (g, t) = (*self, t.clone());
        t.rows.clone().flat_map(move |row| t.channels.clone().map(move |c| (row, g.scale_of(row) + c)))
    }

    /// `y = (x - mean) / sqrt(variance + eps) * gamma + beta` with the rows' own moments, which are the result.
    pub fn normalize<T: SimdReal>(&self, x: &[T], y: &mut [T], scale: Scale<T>) -> Moments {
        assert!(x.len() == self.size() && y.len() == x.len(), "the slices do not have the sizes");
        if x.is_empty() {
            return Moments { mean: list(self.rows(), f64::NAN), variance: list(self.rows(), f64::NAN) };
        }
        if self.are_turned() {
            let [gamma, beta] = [scale.gamma, scale.beta].map(|s| s.map(|s| self.by_row(s)));
            let scale = Scale { gamma: gamma.as_deref(), beta: beta.as_deref(), ..scale };
            return self.channels().normalize(x, y, scale);
        }
        let rows = Channels { outer: 1, channels: self.rows(), inner: self.length() };
        if rows.are_short() {
            let none = Scale { gamma: None, beta: None, ..scale };
            return rows.normalize_turned(x, y, none, |g, y| self.scale_turned(g, y, scale));
        }
        let (tiling, n, to) = (GroupTiling::new(self), self.length() as f64, SendPtr(y.as_mut_ptr()));
        let mut found = Scratch::filled(self.rows() * tiling.parts, [0.0; 2]);
        let all = SendPtr(found.as_mut_ptr());
        let find = |i: usize| {
            let tile = tiling.tile(i);
            // SAFETY: each tile has its own place: that of its rows, or of its part of one row.
            let own = unsafe { all.slice(tile.rows.start * tiling.parts + i % tiling.parts, tile.rows.len()) };
            // SAFETY: the slices are as long as the job says.
            unsafe { enter(RowMoments { g: self, tile: &tile, x, out: own }) };
            (tile, own)
        };
        let write = |tile: &GroupTile, moments: &[ChannelPair]| {
            let by = Coefficients::new(self.places(tile).map(|(row, c)| {
                let [mean, squares] = moments[row - tile.rows.start];
                let times = scale.gamma.map_or(1.0, |g| g[c].to_f64()) / (squares / n + scale.eps).sqrt();
                let rest = mean - T::from_f64(mean).to_f64();
                (mean, times, 0.0, scale.beta.map_or(0.0, |b| b[c].to_f64()) - rest * times)
            }));
            self.map(tile, Some(x), None, to, Output::Write, &by);
        };
        if tiling.parts == 1 {
            pool::run(tiling.tiles(), &|i| {
                let (tile, own) = find(i);
                write(&tile, own);
            });
        } else {
            pool::run(tiling.tiles(), &|i| {
                find(i);
            });
            self.join(&tiling, &mut found);
            let found = &found[..];
            pool::run(tiling.tiles(), &|i| {
                let tile = tiling.tile(i);
                write(&tile, &found[tile.rows.start * tiling.parts..][..1]);
            });
        }
        let rows = || found.iter().step_by(tiling.parts);
        Moments { mean: rows().map(|f| f[0]).collect(), variance: rows().map(|f| f[1] / n).collect() }
    }

    /// Scales and shifts turned rows.
    fn scale_turned<T: SimdReal>(&self, g: &RowGroup, y: &mut [T], scale: Scale<T>) {
        if scale.gamma.is_none() && scale.beta.is_none() {
            return;
        }
        let first = Scratch::each(g.rows, |r| self.scale_of(g.first + r));
        let mut by = Scratch::filled(g.rows, T::ZERO);
        for (c, y) in y.chunks_exact_mut(self.inner * g.rows).enumerate() {
            for (op, all) in [(Binary::Mul, scale.gamma), (Binary::Add, scale.beta)] {
                let Some(all) = all else { continue };
                by.iter_mut().zip(&first[..]).for_each(|(by, first)| *by = all[first + c]);
                for y in y.chunks_exact_mut(g.rows) {
                    let to = y.as_mut_ptr();
                    // SAFETY: both have a number for each row.
                    unsafe { simd::binary(op, to, to, by.as_ptr(), g.rows) };
                }
            }
        }
    }

    /// Merges what the parts of each row have found into the place of the first.
    fn join(&self, tiling: &GroupTiling, found: &mut [ChannelPair]) {
        for row in found.chunks_exact_mut(tiling.parts) {
            for p in 1..tiling.parts {
                let channels = tiling.tile(p).channels;
                let (before, own) = (channels.start * self.inner, channels.len() * self.inner);
                let part = row[p];
                merge_moments(&mut row[0], before as f64, &part, own as f64);
            }
        }
    }

    fn map<T: Real>(
        &self,
        tile: &GroupTile,
        a: Option<&[T]>,
        x: Option<&[T]>,
        y: SendPtr<T>,
        output: Output,
        by: &Coefficients<T>,
    ) {
        let (c, unit) = (self.channels(), self.unit(tile));
        // SAFETY: units lie within the slices, whose sizes were checked.
        unsafe { enter(NormalizationTask { c: &c, unit: &unit, work: ChannelWork::Map { a, x, y, output, by } }) };
    }

    /// Gives the sums that the gradients of gamma and beta are made of, and writes or adds that of x. A tile reads gy of no
    /// other tile while x's gradient is written.
    pub fn backward<T: Real>(&self, b: InputGradient<T>, gx: Option<(&mut [T], Output)>) -> Sums {
        let right = |s: &[T]| s.len() == self.size();
        assert!(b.gy.is_none_or(right) && b.x.is_none_or(right), "the slices do not have the sizes");
        assert!(gx.as_ref().is_none_or(|g| right(g.0)), "the slices do not have the sizes");
        let mut totals = Sums { gy: list(self.scales(), 0.0), product: list(self.scales(), 0.0) };
        if self.size() == 0 {
            return totals;
        }
        if self.are_turned() {
            let gamma = b.gamma.map(|g| self.by_row(g));
            let found = self.channels().backward(InputGradient { gamma: gamma.as_deref(), ..b }, gx);
            let sums = Scratch::each(self.rows(), |row| [found.gy[row], found.product[row]]);
            self.gather(&sums, b.inverse, &mut totals);
            return totals;
        }
        let to = gx.map(|(g, output)| (SendPtr(g.as_mut_ptr()), output));
        let gy = match (b.gy, to) {
            (Some(gy), _) => SendPtr::of(gy),
            (None, Some((place, Output::Write))) => place,
            (None, _) => panic!("there is no gradient of y"),
        };
        let tiling = GroupTiling::new(self);
        let mut sums = Scratch::filled(self.channels().channels, [0.0; 2]);
        let all = SendPtr(sums.as_mut_ptr());
        let find = |i: usize| {
            let tile = tiling.tile(i);
            let unit = self.unit(&tile);
            // SAFETY: each tile has its own channels.
            let own = unsafe { all.slice(unit.channels.start, unit.channels.len()) };
            self.sums(&tile, &unit, &b, gy, own);
            tile
        };
        let write = |tile: &GroupTile| {
            let Some((y, output)) = to else { return };
            let by = Coefficients::new(tile.rows.clone().flat_map(|row| {
                // SAFETY: no tile writes the sums of this row any more.
                let sums = unsafe { &*all.slice(row * self.width, self.width) };
                self.coefficients(row, tile.channels.clone(), &b, sums)
            }));
            self.map(tile, b.gy, b.x, y, output, &by);
        };
        if tiling.parts == 1 {
            pool::run(tiling.tiles(), &|i| write(&find(i)));
        } else {
            pool::run(tiling.tiles(), &|i| {
                find(i);
            });
            pool::run(tiling.tiles(), &|i| write(&tiling.tile(i)));
        }
        self.gather(&sums, b.inverse, &mut totals);
        totals
    }

    /// For each channel of a tile the sums of gy and of gy * (x - mean).
    fn sums<T: Real>(
        &self,
        tile: &GroupTile,
        unit: &ChannelTile,
        b: &InputGradient<T>,
        gy: SendPtr<T>,
        out: &mut [ChannelPair],
    ) {
        let mean: Vec<T> = self.places(tile).map(|(row, _)| T::from_f64(b.mean[row])).collect();
        let c = self.channels();
        let work = ChannelWork::Sums { gy, x: b.x, mean: &mean, out: &mut *out };
        // SAFETY: units lie within the slices, whose sizes were checked.
        unsafe { enter(NormalizationTask { c: &c, unit, work }) };
        for (((row, _), m), s) in self.places(tile).zip(&mean).zip(out) {
            s[1] -= (b.mean[row] - m.to_f64()) * s[0]; // what the rounding of the mean has left out
        }
    }

    /// The coefficients of the gradient of x for some channels of a row, from the sums of all of the row's channels.
    fn coefficients<T: Real>(
        &self,
        row: usize,
        channels: Range<usize>,
        b: &InputGradient<T>,
        sums: &[ChannelPair],
    ) -> impl Iterator<Item = (f64, f64, f64, f64)> {
        let (mean, inverse, first, n) = (b.mean[row], b.inverse[row], self.scale_of(row), self.length() as f64);
        let scales = b.gamma;
        let gamma = move |c: usize| scales.map_or(1.0, |g| g[first + c].to_f64());
        let (mut sum, mut product) = (0.0, 0.0);
        for (c, s) in sums.iter().enumerate() {
            sum += gamma(c) * s[0];
            product += gamma(c) * s[1];
        }
        let at = |list: Option<&[T]>| list.map_or(0.0, |l| l[row].to_f64());
        let by_x = 2.0 * at(b.gvariance) / n - inverse * inverse * inverse * product / n;
        let plus = (at(b.gmean) - inverse * sum) / n - by_x * (mean - T::from_f64(mean).to_f64());
        channels.map(move |c| (mean, gamma(c) * inverse, by_x, plus))
    }

    /// Adds up the sums of all channels that share a scale. Those of gy * (x - mean) are given by the deviation.
    fn gather(&self, sums: &[ChannelPair], inverse: &[f64], to: &mut Sums) {
        for (row, sums) in sums.chunks_exact(self.width).enumerate() {
            let first = self.scale_of(row);
            let (gy, product) = (&mut to.gy[first..][..self.width], &mut to.product[first..][..self.width]);
            for ((s, gy), product) in sums.iter().zip(gy).zip(product) {
                *gy += s[0];
                *product += s[1] * inverse[row];
            }
        }
    }
}

/// Mean and squared deviation of the rows of a tile, or of its part of one row.
struct RowMoments<'a, T> {
    g: &'a ChannelGroups,
    tile: &'a GroupTile,
    x: &'a [T],
    out: &'a mut [ChannelPair],
}

impl<T: Real> WithLanes<T> for RowMoments<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let (inner, length) = (self.g.inner, self.g.length());
        let at = self.tile.channels.start * inner..self.tile.channels.end * inner;
        for (i, out) in self.out.iter_mut().enumerate() {
            let row = &self.x[(self.tile.rows.start + i) * length..][at.clone()];
            *out = [0.0; 2];
            // SAFETY: inside `enter`.
            unsafe { add_moments::<T, L>(row, 0.0, out) };
        }
    }
}
