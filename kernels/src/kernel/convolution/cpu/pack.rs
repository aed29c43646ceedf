//! Copies into the order that the inner loop reads: padded bands of the source, panels of weights and of gradients.

use super::ChannelOrder;
use super::geometry::{Bands, Geometry, PanelOrder, RowBand};
use crate::dtype::Real;
use crate::pool::tasks::SendPtr;
use crate::simd::lanes::{Lanes, TransposeBlock, WithLanes, transpose_all};

/// The band `it` of `x`, which starts at the first of `channels` channels, with zeros for the padding.
///
/// # Safety
/// `x` points into a tensor of the geometry's source, `channels` channels from there exist.
pub(super) unsafe fn band<T: Real>(g: &Geometry, b: &Bands, it: RowBand, x: *const T, channels: usize, out: &mut [T]) {
    let [d, h, _] = &g.axes;
    let x = x.wrapping_add(it.sample * g.x.sample);
    let top = (it.first * h.step) as isize + h.taps.iter().map(|t| t.0).min().unwrap_or(0);
    // Channels last: of those side by side, which may be more than are copied.
    let (planes, each) = if g.layout == ChannelOrder::ChannelFirst { (channels, 1) } else { (1, channels) };
    let row = b.width * b.at[2];
    for c in 0..planes {
        for s in 0..d.taps.len() {
            let z = (it.slice * d.step) as isize + d.taps[s].0;
            for r in 0..b.height {
                let out = &mut out[c * b.channel + s * b.at[0] + r * b.at[1]..][..row];
                let y = top + r as isize;
                if !(0..d.source as isize).contains(&z) || !(0..h.source as isize).contains(&y) {
                    out.fill(T::ZERO);
                    continue;
                }
                let at = c * g.x.channel + z as usize * g.x.at[0] + y as usize * g.x.at[1];
                // SAFETY: slice, row and channel are inside the tensor.
                unsafe { padded_row(g, x.wrapping_add(at), it.column, each, b.at[2], out) }
            }
        }
    }
}

/// Where the band `it` is read: in `x`, or as a copy.
///
/// # Safety
/// As [`band`].
pub(super) unsafe fn placed<T: Real>(
    g: &Geometry,
    b: &Bands,
    it: RowBand,
    x: *const T,
    channels: usize,
    copy: &mut [T],
) -> *const T {
    if !b.copied {
        return x.wrapping_add(b.origin(g, it));
    }
    // SAFETY: the caller's promise.
    unsafe { band(g, b, it, x, channels, copy) }
    copy.as_ptr()
}

/// One source row from the first tap's column of point `first` on, `channels` numbers of every `each`.
#[inline]
unsafe fn padded_row<T: Real>(g: &Geometry, x: *const T, first: usize, channels: usize, each: usize, out: &mut [T]) {
    if out.is_empty() {
        return;
    }
    let axis = &g.axes[2];
    let width = (out.len() / each) as isize;
    let low = (first * axis.step) as isize + axis.taps.iter().map(|t| t.0).min().unwrap_or(0);
    let from = (-low).clamp(0, width);
    let to = (axis.source as isize - low).clamp(from, width);
    out[..from as usize * each].fill(T::ZERO);
    out[to as usize * each..].fill(T::ZERO);
    let (column, run) = ((from + low) as usize, (to - from) as usize);
    let out = &mut out[from as usize * each..to as usize * each];
    if run == 0 {
        return;
    }
    if g.x.at[2] == each && channels == each {
        // SAFETY: the columns are inside the row, and one after another.
        out.copy_from_slice(unsafe { std::slice::from_raw_parts(x.add(column * each), run * each) });
        return;
    }
    for (i, out) in out.chunks_exact_mut(each).enumerate() {
        // SAFETY: each column has `channels` numbers from x on.
        out[..channels]
            .copy_from_slice(unsafe { std::slice::from_raw_parts(x.add((column + i) * g.x.at[2]), channels) });
    }
}

/// A place in the weights, and the row of a panel that it goes to.
pub(super) type PanelRow = (usize, usize);

/// The rows of a panel. Where channels would come before neighbours, in the order of their places in the weights.
pub(super) fn panel_rows(table: Vec<usize>, order: PanelOrder) -> Vec<PanelRow> {
    let mut rows: Vec<PanelRow> = table.into_iter().enumerate().map(|(row, at)| (at, row)).collect();
    if order == PanelOrder::Column {
        rows.sort();
    }
    rows
}

/// A panel of weights: for each row the `lanes` numbers that are `lane` apart, zeros up to `width`. All rows and lanes stay inside
/// the weights; `out` has `width` numbers for each row.
pub(super) struct WeightPanel<'a, T> {
    pub w: *const T,
    pub rows: &'a [PanelRow],
    pub lane: usize,
    pub lanes: usize,
    pub width: usize,
    pub out: *mut T,
}

impl<T: Real> WithLanes<T> for WeightPanel<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        for l in self.lanes..self.width {
            // SAFETY: the caller's promise.
            self.rows.iter().for_each(|r| unsafe { *self.out.add(r.1 * self.width + l) = T::ZERO });
        }
        let mut rest = self.rows;
        while !rest.is_empty() {
            let neighbours = 1 + rest.windows(2).take(L::N - 1).take_while(|r| r[1].0 == r[0].0 + 1).count();
            let (run, after) = rest.split_at(neighbours);
            // SAFETY: the caller's promise; the run's places lie one after another.
            unsafe {
                if neighbours > 1 && run.windows(2).all(|r| r[1].1 == r[0].1 + 1) {
                    self.across::<L>(run);
                } else {
                    self.scatter(run);
                }
            }
            rest = after;
        }
    }
}

impl<T: Real> WeightPanel<'_, T> {
    /// At most a vector of rows that are neighbours in the weights.
    #[inline(always)]
    unsafe fn scatter(&self, run: &[PanelRow]) {
        let (from, width) = (self.w.wrapping_add(run[0].0), self.width);
        // SAFETY: the caller's promise.
        unsafe {
            if self.lane == 1 {
                let copy = |(i, r): (usize, &PanelRow)| {
                    self.out.add(r.1 * width).copy_from_nonoverlapping(from.add(i), self.lanes)
                };
                return run.iter().enumerate().for_each(copy);
            }
            for l in 0..self.lanes {
                let from = from.add(l * self.lane);
                run.iter().enumerate().for_each(|(i, r)| *self.out.add(r.1 * width + l) = *from.add(i));
            }
        }
    }

    /// As many rows, which are neighbours in the panel too.
    #[inline(always)]
    unsafe fn across<L: Lanes<T>>(&self, run: &[PanelRow]) {
        let (src, dst) = (self.w.wrapping_add(run[0].0), self.out.wrapping_add(run[0].1 * self.width));
        let (rows, cols, src_stride, dst_stride) = (self.lanes, run.len(), self.lane, self.width);
        // SAFETY: the caller's promise.
        unsafe { transpose_all::<T, L>(TransposeBlock { src, src_stride, rows, cols, dst, dst_stride }) }
    }
}

/// Moves rows of `lanes` numbers, `width` apart, from or to a tensor whose channels are `channel` apart.
pub(super) struct Move<'a, T> {
    pub rows: *mut T,
    pub width: usize,
    pub lanes: usize,
    pub tensor: SendPtr<T>,
    pub channel: usize,
    /// Distance of one point from the next.
    pub point: usize,
    /// First row, number of rows, and place in the tensor.
    pub runs: &'a [(usize, usize, usize)],
    pub how: PackingMode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PackingMode {
    /// From the tensor to the rows.
    Gather,
    /// To the tensor.
    Write,
    /// Added to the tensor.
    Add,
}

impl<T: Real> WithLanes<T> for Move<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        for &(row, count, at) in self.runs {
            let (rows, tensor) = (self.rows.wrapping_add(row * self.width), self.tensor.0.wrapping_add(at));
            // SAFETY: the caller's promise that rows and runs are valid.
            unsafe {
                if self.channel == 1 {
                    self.straight(rows, tensor, count)
                } else if self.point == 1 {
                    self.across::<L>(rows, tensor, count)
                } else {
                    (0..count).for_each(|q| self.slow(rows.add(q * self.width), tensor.add(q * self.point)))
                }
            }
        }
    }
}

impl<T: Real> Move<'_, T> {
    #[inline(always)]
    unsafe fn straight(&self, rows: *mut T, tensor: *mut T, count: usize) {
        for q in 0..count {
            let (a, b) = (rows.wrapping_add(q * self.width), tensor.wrapping_add(q * self.point));
            for l in 0..self.lanes {
                // SAFETY: the caller's promise.
                unsafe { self.one(a.add(l), b.add(l)) }
            }
        }
    }

    #[inline(always)]
    unsafe fn slow(&self, row: *mut T, tensor: *mut T) {
        for l in 0..self.lanes {
            // SAFETY: the caller's promise.
            unsafe { self.one(row.add(l), tensor.add(l * self.channel)) }
        }
    }

    #[inline(always)]
    unsafe fn one(&self, row: *mut T, tensor: *mut T) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.how {
                PackingMode::Gather => *row = *tensor,
                PackingMode::Write => *tensor = *row,
                PackingMode::Add => *tensor += *row,
            }
        }
    }

    #[inline(always)]
    unsafe fn across<L: Lanes<T>>(&self, rows: *mut T, tensor: *mut T, count: usize) {
        for l in (0..self.lanes).step_by(L::N) {
            let lanes = L::N.min(self.lanes - l);
            for q in (0..count).step_by(L::N) {
                let points = L::N.min(count - q);
                let (a, b) = (rows.wrapping_add(q * self.width + l), tensor.wrapping_add(l * self.channel + q));
                let block = match self.how {
                    PackingMode::Gather => TransposeBlock {
                        src: b.cast_const(),
                        src_stride: self.channel,
                        rows: lanes,
                        cols: points,
                        dst: a,
                        dst_stride: self.width,
                    },
                    _ => TransposeBlock {
                        src: a.cast_const(),
                        src_stride: self.width,
                        rows: points,
                        cols: lanes,
                        dst: b,
                        dst_stride: self.channel,
                    },
                };
                // SAFETY: the caller's promise.
                unsafe { L::transpose(block, self.how == PackingMode::Add) }
            }
        }
    }
}
