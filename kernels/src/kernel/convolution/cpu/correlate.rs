//! Forward and the data gradient: panels of weights against bands of the source.

use super::few::{self, FewChannels, FewScratch};
use super::geometry::{Bands, Geometry, PanelOrder, RowBand};
use super::pack::{Move, PackingMode, PanelRow, WeightPanel, panel_rows, placed};
use crate::array::scratch::{self, Scratch};
use crate::array::{Data, FormElements, FormName, Output};
use crate::dtype::Real;
use crate::finish::Finisher;
use crate::gemm::tile::{NextRows, Tiles, TilesAhead};
use crate::pool::tasks::SendPtr;
use crate::pool::{self, Pace};
use crate::simd::lanes::{Choose, Lanes, dispatch};
use std::cell::Cell;
use std::ops::Range;

/// Bytes of a panel of weights: with the band it should fit the second-level cache.
const PANEL: usize = 300 << 10;
/// Bytes of all panels that are packed at a time.
const PANELS: usize = 1 << 20;
/// Bytes of a copied band.
const BAND: usize = 160 << 10;
/// Points computed before they are stored: some tiles, so that the store can move whole blocks.
const RUN: usize = 112;
/// Multiplications that are worth a task.
const TASK: usize = 1 << 20;

/// One correlation and its operands.
pub(super) struct Correlate<'a, T: 'static> {
    pub g: &'a Geometry,
    pub x: SendPtr<T>,
    pub w: SendPtr<T>,
    pub bias: Option<&'a [T]>,
    pub y: SendPtr<T>,
    pub output: Output,
    /// The array of all weights, if it may keep their panels.
    pub weights: Option<&'a Data>,
    /// What is to be done to the result, where this [finishes](finishes) it.
    pub finish: Option<&'a Finisher<'a, T>>,
}

/// Whether results are finished where they are stored.
pub(super) fn finishes(g: &Geometry) -> bool {
    !g.is_empty() && !few::suits(g)
}

impl<T: Real> Correlate<'_, T> {
    /// # Safety
    /// The pointers are to a group's first channel of tensors that have the geometry's sizes.
    pub unsafe fn run(self) {
        let nothing = self.output == Output::Accumulate && self.g.taps() * self.g.channels == 0 && self.bias.is_none();
        if self.g.is_empty() || nothing {
            return;
        }
        if few::suits(self.g) {
            // SAFETY: the caller's promise.
            return unsafe { FewChannels(self).run() };
        }
        dispatch(self);
    }
}

/// The channels that are summed at a time.
fn block<T: Real, L: Lanes<T>>(g: &Geometry) -> usize {
    let per = g.taps().max(1) * 2 * L::N * size_of::<T>();
    let blocks = g.channels.div_ceil((PANEL / per).max(1)).max(1);
    g.channels.div_ceil(blocks).max(1)
}

impl Bands {
    fn of_channels<T: Real>(g: &Geometry, channels: usize) -> Bands {
        Bands::new(g, channels, BAND / size_of::<T>(), 4096)
    }

    /// Numbers that a task works in: a copy of its band, and sums.
    fn work<T: Real, L: Lanes<T>>(&self) -> (usize, usize) {
        (scratch::line::<T>(self.len), (RUN + 4 * L::ROWS) * 2 * L::N)
    }
}

/// Adds up the bytes of the large buffers that a correlation works in.
pub(super) struct CorrelationScratch<'a> {
    pub g: &'a Geometry,
    pub bytes: &'a Cell<usize>,
}

impl<T: Real> Choose<T> for CorrelationScratch<'_> {
    fn with<L: Lanes<T>>(self) {
        if few::suits(self.g) {
            return Choose::<T>::with::<L>(FewScratch { g: self.g, bytes: self.bytes });
        }
        let bands = Bands::of_channels::<T>(self.g, block::<T, L>(self.g).min(self.g.channels));
        let (copy, sums) = bands.work::<T, L>();
        let tasks = pool::num_threads().min(bands.items(self.g));
        let table = bands.rows * bands.columns * size_of::<isize>();
        self.bytes.set(scratch::counted(table) + tasks * scratch::counted((copy + sums) * size_of::<T>()));
    }
}

impl<T: Real> Choose<T> for Correlate<'_, T> {
    fn with<L: Lanes<T>>(self) {
        let each = block::<T, L>(self.g);
        let part = |first| ChannelContribution::<T, L>::new(&self, first, each.min(self.g.channels - first));
        let parts: Vec<_> = (0..self.g.channels.max(1)).step_by(each).map(part).collect();
        let kept = self.weights.and_then(|w| kept_panels(w, &parts));
        let mut rest = kept.as_deref();
        for part in &parts {
            let own = rest.map(|all| all.split_at(part.panels() * part.size()));
            rest = own.map(|(_, rest)| rest);
            part.run(own.map(|(own, _)| own));
        }
    }
}

/// The panels of all parts, one after another, if the array keeps them.
fn kept_panels<T: Real, L: Lanes<T>>(weights: &Data, parts: &[ChannelContribution<T, L>]) -> Option<FormElements<T>> {
    let g = parts[0].c.g;
    let mut sizes =
        vec![g.lanes, g.channels, parts[0].channels, parts[0].order as usize, g.w.lane, g.w.channel, g.w.kernel];
    sizes.extend(g.kernel);
    g.axes.iter().for_each(|axis| sizes.extend(axis.taps.iter().map(|tap| tap.1).chain([usize::MAX])));
    let len = parts.iter().map(|part| part.panels() * part.size()).sum();
    weights.form(FormName { kernel: "correlation", sizes }, len, |mut to: &mut [T]| {
        for part in parts {
            let (own, rest) = to.split_at_mut(part.panels() * part.size());
            part.pack(0..part.panels(), own);
            to = rest;
        }
    })
}

/// Columns of taps where more than a sixth of the products would be with padding: 3 x 3 over at most 7 x 7 points.
fn order(g: &Geometry) -> PanelOrder {
    let ((h, all_h), (w, all_w)) = (g.axes[1].share(), g.axes[2].share());
    if g.axes[0].taps.len() == 1 && h * w * 6 < all_h * all_w * 5 { PanelOrder::Column } else { PanelOrder::Row }
}

/// The contribution of some of the summed channels.
struct ChannelContribution<'a, T: 'static, L> {
    c: &'a Correlate<'a, T>,
    first: usize,
    channels: usize,
    bands: Bands,
    weights: Vec<PanelRow>,
    taps: Vec<isize>,
    points: Scratch<isize>,
    order: PanelOrder,
    output: Output,
    lanes: std::marker::PhantomData<L>,
}

// SAFETY: pointers are behind SendPtr; L is a name only.
unsafe impl<T: Sync, L> Sync for ChannelContribution<'_, T, L> {}

/// A band, where it or its copy begins, and the rows of one that comes later.
struct SourceBand<T> {
    item: RowBand,
    x: *const T,
    later: NextRows,
}

impl<'a, T: Real, L: Lanes<T>> ChannelContribution<'a, T, L> {
    fn new(c: &'a Correlate<'a, T>, first: usize, channels: usize) -> Self {
        let g = c.g;
        let bands = Bands::of_channels::<T>(g, channels);
        let order = order(g);
        ChannelContribution {
            weights: panel_rows(g.weight_table(channels, order), order),
            taps: bands.tap_table(g, channels, order),
            points: bands.point_table(g),
            order,
            output: if first == 0 { c.output } else { Output::Accumulate },
            lanes: std::marker::PhantomData,
            c,
            first,
            channels,
            bands,
        }
    }

    /// Vectors and first lane of panel `p`.
    fn panel(&self, p: usize) -> (usize, usize) {
        let first = p * 2 * L::N;
        (if self.c.g.lanes - first > L::N { 2 } else { 1 }, first)
    }

    fn panels(&self) -> usize {
        self.c.g.lanes.div_ceil(2 * L::N)
    }

    /// Numbers of a packed panel.
    fn size(&self) -> usize {
        scratch::line::<T>(self.taps.len() * 2 * L::N)
    }

    /// `kept`: all panels, packed.
    fn run(&self, kept: Option<&[T]>) {
        let (panels, size) = (self.panels(), self.size());
        let group = (PANELS / (size * size_of::<T>()).max(1)).clamp(1, panels);
        for from in (0..panels).step_by(group) {
            let range = from..panels.min(from + group);
            match kept {
                Some(kept) => self.group(range, SendPtr::of(&kept[from * size..])),
                None => scratch::with(size * group, |packed: &mut [T]| {
                    self.pack(range.clone(), packed);
                    self.group(range, SendPtr(packed.as_mut_ptr()));
                }),
            }
        }
    }

    /// Packs panels.
    fn pack(&self, panels: Range<usize>, packed: &mut [T]) {
        let (shared, size) = (SendPtr(packed.as_mut_ptr()), self.size());
        self.each_panel(panels.len(), &|p| {
            // SAFETY: each panel has its own `size` numbers.
            let out = unsafe { shared.slice(p * size, size) };
            self.pack_panel(panels.start + p, out);
        });
    }

    fn group(&self, panels: Range<usize>, shared: SendPtr<T>) {
        let size = self.size();
        let items = self.bands.items(self.c.g);
        let work = self.c.g.work() / items.max(1) * panels.len() / self.c.g.lanes.div_ceil(2 * L::N);
        let each = (TASK / work.max(1)).clamp(1, items);
        pool::run(items.div_ceil(each), &|t| {
            let range = t * each..items.min((t + 1) * each);
            self.task(range, panels.clone(), shared, size);
        });
    }

    /// On the pool only where there is enough to pack.
    fn each_panel(&self, count: usize, f: &(dyn Fn(usize) + Sync)) {
        if count * self.taps.len() < 1 << 12 { (0..count).for_each(f) } else { pool::run(count, f) }
    }

    fn pack_panel(&self, panel: usize, out: &mut [T]) {
        let g = self.c.g;
        let (vectors, lane) = self.panel(panel);
        let lanes = (g.lanes - lane).min(vectors * L::N);
        let w = self.c.w.0.wrapping_add(self.first * g.w.channel + lane * g.w.lane);
        let (rows, lane, width, out) = (&self.weights[..], g.w.lane, vectors * L::N, out.as_mut_ptr());
        // SAFETY: channels and lanes of this panel are inside the weights; `out` has room for a row for each tap.
        unsafe { L::enter(WeightPanel { w, rows, lane, lanes, width, out }) }
    }

    fn task(&self, items: Range<usize>, panels: Range<usize>, packed: SendPtr<T>, size: usize) {
        let g = self.c.g;
        let (len, run) = self.bands.work::<T, L>();
        scratch::with(len + run, |buffer: &mut [T]| {
            let (copy, sums) = buffer.split_at_mut(len);
            let mut pace = Pace::new();
            for i in items.clone() {
                let item = self.bands.item(g, i);
                let source = self.c.x.0.wrapping_add(self.first * g.x.channel).cast_const();
                // SAFETY: the item and the channels are inside the source.
                let x = unsafe { placed(g, &self.bands, item, source, self.channels, copy) };
                // After this task's last one come those that other threads are at.
                let later = if i + 1 < items.end { i + 1 } else { i + 1 + (pool::num_threads() - 1) * items.len() };
                let mut now = SourceBand { item, x, later: self.bands.rows_ahead(g, later, source, self.channels) };
                for p in panels.clone() {
                    let w = packed.0.wrapping_add((p - panels.start) * size).cast_const();
                    self.points(&mut now, p, w, sums, &mut pace);
                }
            }
        });
    }

    /// All points of a band for one panel.
    fn points(&self, band: &mut SourceBand<T>, panel: usize, w: *const T, sums: &mut [T], pace: &mut Pace) {
        let count = band.item.rows * band.item.columns;
        for q in (0..count).step_by(RUN) {
            pace.step(RUN * self.taps.len());
            self.block(band, panel, w, q..count.min(q + RUN), sums);
        }
    }

    /// The points `q` of a band: their sums, then the store.
    fn block(&self, band: &mut SourceBand<T>, panel: usize, w: *const T, q: Range<usize>, sums: &mut [T]) {
        let SourceBand { item, x, .. } = *band;
        let (vectors, lane) = self.panel(panel);
        let width = vectors * L::N;
        let lanes = (self.c.g.lanes - lane).min(width);
        let (init, out) = sums.split_at_mut(2 * L::N);
        init.fill(T::ZERO);
        if let (Some(b), 0) = (self.c.bias, self.first) {
            init[..lanes].copy_from_slice(&b[lane..lane + lanes]);
        }
        let tiles = Tiles {
            x,
            off: &self.taps,
            lane: &self.points[q.clone()],
            w,
            w_stride: width,
            vectors,
            init: init.as_ptr(),
            init_stride: 0,
            out: out.as_mut_ptr(),
            out_stride: width,
        };
        match self.order {
            // SAFETY: the tables stay inside the band, the panel has a row for each tap, `out` one for each point.
            PanelOrder::Row => unsafe {
                let mut ahead = [self.ahead(item, lane, lanes, &q), band.later];
                L::enter(TilesAhead(tiles, &mut ahead));
                band.later = ahead[1];
            },
            PanelOrder::Column => {
                out.chunks_exact_mut(width).take(q.len()).for_each(|row| row.copy_from_slice(&init[..width]));
                let tiles = Tiles { init: out.as_ptr(), init_stride: width, ..tiles };
                let points = item.columns;
                for row in q.start / points..q.end.div_ceil(points) {
                    let part = q.start.max(row * points)..q.end.min((row + 1) * points);
                    self.columns(item, part, q.start, tiles);
                }
            }
        }
        self.store(item, lane, lanes, width, q, out);
    }

    /// Points of one row, of a block that starts at `start`: for each column of taps only the points and the taps that do not meet padding.
    fn columns(&self, item: RowBand, q: Range<usize>, start: usize, tiles: Tiles<T>) {
        let [_, h, w] = &self.c.g.axes;
        let (row, first) = (q.start / item.columns, item.column + q.start % item.columns);
        let seen = h.seen(item.first + row);
        for t in 0..w.taps.len() {
            let reached = w.reached(t);
            let inside = |at: usize| at.clamp(first, first + q.len()) - first + q.start - start;
            let (from, to) = (inside(reached.start), inside(reached.end.max(reached.start)));
            let taps = (t * h.taps.len() + seen.start) * self.channels..(t * h.taps.len() + seen.end) * self.channels;
            let part = Tiles {
                off: &tiles.off[taps.clone()],
                lane: &tiles.lane[from..to],
                w: tiles.w.wrapping_add(taps.start * tiles.w_stride),
                init: tiles.init.wrapping_add(from * tiles.out_stride),
                out: tiles.out.wrapping_add(from * tiles.out_stride),
                ..tiles
            };
            // SAFETY: as in `block`, for some of its taps and points.
            unsafe { L::enter(part) }
        }
    }

    /// Whether points that follow each other in a band do so in the target.
    fn is_whole(&self, item: RowBand) -> bool {
        let [_, h, w] = &self.c.g.axes;
        h.stride == 1 && w.stride == 1 && w.points == w.target && item.columns == w.points
    }

    /// Where the sums of points `q` will be stored, if that is in rows.
    fn ahead(&self, item: RowBand, lane: usize, lanes: usize, q: &Range<usize>) -> NextRows {
        let g = self.c.g;
        if !self.is_whole(item) {
            return NextRows::nothing(self.c.x.0.cast_const().cast());
        }
        let first = lane * g.y.channel + item.target(g, q.start / item.columns, q.start % item.columns);
        NextRows::new(self.c.y.0.wrapping_add(first).cast_const(), g.y.channel, lanes, q.len())
    }

    fn store(&self, item: RowBand, lane: usize, lanes: usize, width: usize, q: Range<usize>, rows: &mut [T]) {
        let g = self.c.g;
        let (w, whole) = (&g.axes[2], self.is_whole(item));
        let mut runs = [(0, 0, 0); RUN];
        let (mut from, mut n) = (q.start, 0);
        while from < q.end {
            let (r, c) = (from / item.columns, from % item.columns);
            let count = if whole { q.end - from } else { (item.columns - c).min(q.end - from) };
            runs[n] = (from - q.start, count, item.target(g, r, c));
            (from, n) = (from + count, n + 1);
        }
        let how = if self.output == Output::Accumulate { PackingMode::Add } else { PackingMode::Write };
        let tensor = SendPtr(self.c.y.0.wrapping_add(lane * g.y.channel));
        let point = w.stride * g.y.at[2];
        let to =
            Move { rows: rows.as_mut_ptr(), width, lanes, tensor, channel: g.y.channel, point, runs: &runs[..n], how };
        // SAFETY: every point of the item has its own places in y.
        unsafe { L::enter(to) }
        let is_last = self.first + self.channels == g.channels;
        if let Some(finish) = self.c.finish.filter(|_| is_last) {
            for &(_, count, at) in &runs[..n] {
                // SAFETY: as above.
                unsafe { finish.rows(tensor.add(at).0, lanes, count) }
            }
        }
    }
}
