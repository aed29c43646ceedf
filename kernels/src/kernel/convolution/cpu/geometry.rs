//! Where the numbers of a correlation lie: points, windows, bands of rows.
//!
//! Forward, the weight gradient and each phase of the data gradient are one operation on different geometry: point
//! `p` of an axis reads the source at `p * step + tap` for each tap and is stored at `start + p * stride`.

use super::{ChannelOrder, Conv};
use crate::array::scratch::Scratch;
use crate::gemm::tile::NextRows;

/// One spatial axis.
#[derive(Clone, Debug)]
pub(super) struct SpatialAxis {
    pub points: usize,
    pub step: usize,
    /// Position relative to `p * step`, and index in the kernel; in order of the position, up or down.
    pub taps: Vec<(isize, usize)>,
    pub source: usize,
    pub start: usize,
    pub stride: usize,
    /// The axis of the stored tensor is `target` long.
    pub target: usize,
}

impl SpatialAxis {
    pub fn forward(source: usize, points: usize, kernel: usize, step: usize, pad: usize, dilation: usize) -> Self {
        let taps = (0..kernel).map(|k| ((k * dilation) as isize - pad as isize, k)).collect();
        SpatialAxis { points, step, taps, source, start: 0, stride: 1, target: points }
    }

    /// The data gradient at the positions that share a remainder modulo the stride, so the taps that reach them.
    pub fn phases(forward: &SpatialAxis) -> Vec<SpatialAxis> {
        let step = forward.step;
        (0..step.min(forward.source)).map(|start| SpatialAxis::phase(forward, start)).collect()
    }

    fn phase(forward: &SpatialAxis, start: usize) -> SpatialAxis {
        let step = forward.step as isize;
        let reach = |&(t, k): &(isize, usize)| {
            let from = start as isize - t;
            (from.rem_euclid(step) == 0).then(|| (from.div_euclid(step), k))
        };
        SpatialAxis {
            points: (forward.source - start).div_ceil(forward.step),
            step: 1,
            taps: forward.taps.iter().filter_map(reach).collect(),
            source: forward.points,
            start,
            stride: forward.step,
            target: forward.source,
        }
    }

    fn lowest(&self) -> isize {
        self.taps.iter().map(|t| t.0).min().unwrap_or(0)
    }

    fn highest(&self) -> isize {
        self.taps.iter().map(|t| t.0).max().unwrap_or(0)
    }

    /// Source positions from the first to the last that a point reads.
    fn reach(&self) -> usize {
        (self.highest() - self.lowest()) as usize + 1
    }

    /// Source positions from the first to the last that `points` points read.
    fn extent(&self, points: usize) -> usize {
        (points.max(1) - 1) * self.step + self.reach()
    }

    /// Points that read so many source positions at most; at least one.
    fn fitting(&self, source: usize) -> usize {
        source.saturating_sub(self.reach()) / self.step + 1
    }

    /// Whether no point reads outside the source.
    fn inside(&self) -> bool {
        let last = (self.points.max(1) - 1) * self.step;
        self.lowest() >= 0 && last as isize + self.highest() < self.source as isize
    }

    /// The taps of a point that lie inside the source: they are neighbours in the list.
    pub fn seen(&self, point: usize) -> std::ops::Range<usize> {
        let at = (point * self.step) as isize;
        let ok = |t: &(isize, usize)| (0..self.source as isize).contains(&(at + t.0));
        let Some(first) = self.taps.iter().position(ok) else { return 0..0 };
        first..first + self.taps[first..].iter().take_while(|t| ok(t)).count()
    }
}

impl SpatialAxis {
    /// Points that tap `t` takes to a place inside the source.
    pub fn reached(&self, t: usize) -> std::ops::Range<usize> {
        let (tap, step) = (self.taps[t].0, self.step as isize);
        let first = |at: isize| (at.max(0) as usize).div_ceil(step as usize).min(self.points);
        first(-tap)..first(self.source as isize - tap)
    }

    /// Pairs of points and taps that lie inside the source, of all pairs.
    pub fn share(&self) -> (usize, usize) {
        let pairs = (0..self.taps.len()).map(|t| self.reached(t).len()).sum();
        (pairs, self.points * self.taps.len())
    }
}

/// Distances in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ImageStrides {
    pub sample: usize,
    pub channel: usize,
    pub at: [usize; 3],
}

impl ImageStrides {
    pub fn new(layout: ChannelOrder, channels: usize, size: [usize; 3]) -> Self {
        let [d, h, w] = size;
        let (channel, one) = match layout {
            ChannelOrder::ChannelFirst => (d * h * w, 1),
            ChannelOrder::ChannelLast => (1, channels),
        };
        ImageStrides { sample: channels * d * h * w, channel, at: [h * w * one, w * one, one] }
    }
}

/// Distances in the weights, for the vectors' channel, the summed channel and the kernel's flat position.
#[derive(Clone, Copy, Debug)]
pub(super) struct WeightStrides {
    pub lane: usize,
    pub channel: usize,
    pub kernel: usize,
}

/// Order of the rows of a panel, outermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PanelOrder {
    /// Depth, height, then what lies together in the source.
    Row,
    /// Width, height, channels: one column of taps at a time. Depth has one tap.
    Column,
}

/// A correlation of one group: `lanes` channels out of `channels`.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    pub batch: usize,
    pub channels: usize,
    pub lanes: usize,
    pub axes: [SpatialAxis; 3],
    pub kernel: [usize; 3],
    pub layout: ChannelOrder,
    pub x: ImageStrides,
    pub y: ImageStrides,
    pub w: WeightStrides,
}

impl Geometry {
    pub fn forward(c: &Conv) -> Self {
        let out = c.output();
        let axis =
            |i: usize| SpatialAxis::forward(c.input[i], out[i], c.kernel[i], c.stride[i], c.pad[i], c.dilation[i]);
        let (channels, taps) = (c.in_channels / c.group, c.kernel.iter().product::<usize>());
        let (channel, kernel) = match c.layout {
            ChannelOrder::ChannelFirst => (taps, 1),
            ChannelOrder::ChannelLast => (1, channels),
        };
        Geometry {
            batch: c.batch,
            channels,
            lanes: c.out_channels / c.group,
            axes: [axis(0), axis(1), axis(2)],
            kernel: c.kernel,
            layout: c.layout,
            x: ImageStrides::new(c.layout, c.in_channels, c.input),
            y: ImageStrides::new(c.layout, c.out_channels, out),
            w: WeightStrides { lane: channels * taps, channel, kernel },
        }
    }

    /// The correlations of gy that make the data gradient, one for each phase of the strides.
    pub fn data(c: &Conv) -> Vec<Self> {
        let f = Geometry::forward(c);
        let w = WeightStrides { lane: f.w.channel, channel: f.w.lane, kernel: f.w.kernel };
        let of = |axes| {
            let g = Geometry { channels: f.lanes, lanes: f.channels, axes, x: f.y, y: f.x, w, ..f.clone() };
            g.without_idle_taps()
        };
        let [d, h, w] = [0, 1, 2].map(|i| SpatialAxis::phases(&f.axes[i]));
        let mut all = Vec::new();
        for d in &d {
            for h in &h {
                all.extend(w.iter().map(|w| of([d.clone(), h.clone(), w.clone()])));
            }
        }
        all
    }

    /// Without the taps that meet nothing but padding.
    fn without_idle_taps(mut self) -> Self {
        for axis in &mut self.axes {
            let reached = (0..axis.taps.len()).filter(|&t| !axis.reached(t).is_empty());
            axis.taps = reached.map(|t| axis.taps[t]).collect();
        }
        self
    }

    /// The correlation of x that makes the result.
    pub fn correlation(c: &Conv) -> Self {
        Geometry::forward(c).without_idle_taps()
    }

    pub fn taps(&self) -> usize {
        self.axes.iter().map(|a| a.taps.len()).product()
    }

    /// Multiplications of the whole correlation.
    pub fn work(&self) -> usize {
        let points: usize = self.axes.iter().map(|a| a.points).product();
        self.batch * self.lanes * self.channels * self.taps() * points
    }

    /// Whether no point reads padding.
    pub fn reads_inside(&self) -> bool {
        self.axes.iter().all(SpatialAxis::inside)
    }

    pub fn is_empty(&self) -> bool {
        self.batch == 0 || self.lanes == 0 || self.axes.iter().any(|a| a.points == 0)
    }

    /// Calls `f` with each summed channel, the taps of the three axes and their numbers, in the panels' order.
    fn each_tap(&self, channels: usize, order: PanelOrder, mut f: impl FnMut(usize, [(isize, usize); 3], [usize; 3])) {
        let [ad, ah, aw] = &self.axes;
        let [nd, nh, nw] = [ad, ah, aw].map(|a| a.taps.len());
        let mut one = |c: usize, i: usize, j: usize, k: usize| f(c, [ad.taps[i], ah.taps[j], aw.taps[k]], [i, j, k]);
        let first = self.layout == ChannelOrder::ChannelFirst;
        for e in 0..nd * nh * nw * channels {
            match order {
                PanelOrder::Column => one(e % channels, 0, e / channels % nh, e / channels / nh),
                PanelOrder::Row if first => {
                    one(e / nw % channels, e / nw / channels / nh, e / nw / channels % nh, e % nw)
                }
                PanelOrder::Row => one(e % channels, e / channels / nw / nh, e / channels / nw % nh, e / channels % nw),
            }
        }
    }

    /// The place of each row of a panel within the weights of one lane and channel block.
    pub fn weight_table(&self, channels: usize, order: PanelOrder) -> Vec<usize> {
        let mut table = Vec::with_capacity(channels * self.taps());
        let [_, kh, kw] = self.kernel;
        self.each_tap(channels, order, |c, [d, h, w], _| {
            table.push(c * self.w.channel + ((d.1 * kh + h.1) * kw + w.1) * self.w.kernel)
        });
        table
    }
}

/// Points of a row at least that are a band of their own.
const COLUMNS: usize = 256;

/// How an image is cut into bands of rows, or of parts of one row, and where a band's source is read.
#[derive(Clone, Debug)]
pub(super) struct Bands {
    pub rows: usize,
    /// Points of a row: all of them where a band has several rows.
    pub columns: usize,
    /// Parts of a row.
    pub across: usize,
    /// Bands of one slice.
    pub count: usize,
    /// Whether the source is copied, padded, into a buffer.
    pub copied: bool,
    /// Source rows and columns of a band.
    pub height: usize,
    pub width: usize,
    pub channel: usize,
    pub at: [usize; 3],
    /// Elements of the copy.
    pub len: usize,
}

impl Bands {
    /// Bands of at most `source` elements to read and `points` to compute, where one row allows it.
    pub fn new(g: &Geometry, channels: usize, source: usize, points: usize) -> Self {
        let copied = Bands::copied(g, channels, source, points);
        let near = g.layout == ChannelOrder::ChannelLast || g.channels * g.x.channel <= 1 << 16;
        if near && g.reads_inside() {
            return Bands { copied: false, channel: g.x.channel, at: g.x.at, len: 0, ..copied };
        }
        copied
    }

    /// As `new`, where the source is always copied.
    pub fn copied(g: &Geometry, channels: usize, source: usize, points: usize) -> Self {
        let [d, h, w] = &g.axes;
        let slices = d.taps.len().max(1);
        let limit = source / (channels.max(1) * slices * w.extent(w.points)).max(1);
        let fit = h.fitting(limit).min((points / w.points.max(1)).max(1));
        // A small batch is cut finer, so that there is work for several threads.
        let want = 16usize.div_ceil((g.batch * d.points).max(1));
        let fine = h.points.div_ceil(want).max(64 / w.points.max(1)).max(1);
        let count = h.points.div_ceil(fit.min(fine).min(h.points).max(1)).max(1);
        let rows = h.points.div_ceil(count);
        let height = h.extent(rows);
        let count = h.points.div_ceil(rows.max(1));
        let across = if rows == 1 {
            let fit = w.fitting(source / (channels.max(1) * slices * height)).min(points);
            let fine = w.points.div_ceil(want.div_ceil(count));
            w.points / fit.min(fine).max(COLUMNS).max(w.reach())
        } else {
            1
        };
        let columns = w.points.div_ceil(across.max(1));
        let (across, width) = (w.points.div_ceil(columns.max(1)).max(1), w.extent(columns));
        let (channel, at) = match g.layout {
            ChannelOrder::ChannelFirst => (slices * height * width, [height * width, width, 1]),
            ChannelOrder::ChannelLast => (1, [height * width * channels, width * channels, channels]),
        };
        let (count, len) = (count * across, channels * slices * height * width);
        Bands { rows, columns, across, count, copied: true, height, width, channel, at, len }
    }

    /// The distance of each row of a panel from the band's origin.
    pub fn tap_table(&self, g: &Geometry, channels: usize, order: PanelOrder) -> Vec<isize> {
        let mut table = Vec::with_capacity(channels * g.taps());
        let low = if self.copied { [0, g.axes[1].lowest(), g.axes[2].lowest()] } else { [0; 3] };
        g.each_tap(channels, order, |c, taps, index| {
            let depth = if self.copied { index[0] as isize } else { taps[0].0 };
            let at = [depth, taps[1].0 - low[1], taps[2].0 - low[2]];
            let place: isize = (0..3).map(|i| at[i] * self.at[i] as isize).sum();
            table.push(place + (c * self.channel) as isize);
        });
        table
    }

    /// The distance of each point of a full band from its origin.
    pub fn point_table(&self, g: &Geometry) -> Scratch<isize> {
        let [_, h, w] = &g.axes;
        let (down, along) = (h.step * self.at[1], w.step * self.at[2]);
        Scratch::each(self.rows * self.columns, |i| (i / self.columns * down + i % self.columns * along) as isize)
    }

    /// Bands of the whole batch.
    pub fn items(&self, g: &Geometry) -> usize {
        g.batch * g.axes[0].points * self.count
    }

    /// Where a band is.
    pub fn item(&self, g: &Geometry, i: usize) -> RowBand {
        let [depth, h, w] = &g.axes;
        let (first, column) = (i % self.count / self.across * self.rows, i % self.across * self.columns);
        RowBand {
            sample: i / self.count / depth.points,
            slice: i / self.count % depth.points,
            first,
            rows: self.rows.min(h.points - first),
            column,
            columns: self.columns.min(w.points - column),
        }
    }

    /// What tiles bring into the cache for the band `i`, where images' channels come first: the rows of its first slice, from `x` on.
    pub fn rows_ahead<T>(&self, g: &Geometry, i: usize, x: *const T, channels: usize) -> NextRows {
        if i >= self.items(g) || g.layout != ChannelOrder::ChannelFirst {
            return NextRows::nothing(x.cast());
        }
        let (it, [_, h, w]) = (self.item(g, i), &g.axes);
        let begin = |axis: usize, point: usize| {
            (point * g.axes[axis].step).saturating_add_signed(g.axes[axis].lowest()) * g.x.at[axis]
        };
        let first = it.sample * g.x.sample + begin(0, it.slice) + begin(1, it.first) + begin(2, it.column);
        let n = (h.extent(it.rows) - 1) * g.x.at[1] + w.extent(it.columns);
        NextRows::new(x.wrapping_add(first), g.x.channel, channels, n)
    }

    /// The band's origin in x, for bands that are read in place.
    pub fn origin(&self, g: &Geometry, it: RowBand) -> usize {
        let place = |i: usize, point: usize| point * g.axes[i].step * self.at[i];
        it.sample * g.x.sample + place(0, it.slice) + place(1, it.first) + place(2, it.column)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RowBand {
    pub sample: usize,
    pub slice: usize,
    pub first: usize,
    pub rows: usize,
    /// First point of each row, and their number.
    pub column: usize,
    pub columns: usize,
}

impl RowBand {
    /// The place in y of the item's point `column` of its row `row`.
    pub fn target(&self, g: &Geometry, row: usize, column: usize) -> usize {
        let at = [self.slice, self.first + row, self.column + column];
        let place = |i: usize| (g.axes[i].start + at[i] * g.axes[i].stride) * g.y.at[i];
        self.sample * g.y.sample + (0..3).map(place).sum::<usize>()
    }
}
