//! The weight gradient, by the adjoint of the forward's transforms: for each of the 36 points a product over all tiles of
//! transformed inputs and transformed gradients, and in the end nine taps of 36 sums.
//!
//! Blocks of tiles are transformed together and added in their order; panels of made channels, and the points, are the
//! tasks of the products. So a sum's order follows from the sizes alone.

use super::strip::{InputRow, Plane, TileRow};
use super::transform::{self, OUT, SIDE};
use super::{MOST, WinogradSizes, panels};
use crate::array::Output;
use crate::array::scratch;
use crate::dtype::{DType, Real};
use crate::gemm::tile::Tiles;
use crate::pool;
use crate::pool::tasks::SendPtr;
use crate::simd::lanes::{Choose, Lanes, TransposeBlock, WithLanes, dispatch, transpose_or_add};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Bytes of a block's transformed inputs and gradients, at most where that is enough for [`TILES`].
const BLOCK: usize = 1 << 20;
/// Tiles of a block, at least.
const TILES: usize = 48;
/// Tiles that one chain of additions sums, at most: longer ones round more.
const CHAIN: usize = 56;
/// Tiles whose sums at the points become taps together, about: these are summed too, since differences of the sums of more round more.
const SUMMED: usize = 512;
/// Bytes of sums that are made at a time: for more the inputs are transformed again.
const SUMS: usize = 16 << 20;

/// One group's weight gradient and its operands, which are of float32.
pub(crate) struct WinogradWeight<T> {
    pub s: WinogradSizes,
    pub x: SendPtr<T>,
    pub gy: SendPtr<T>,
    pub gw: SendPtr<T>,
    pub output: Output,
}

impl<T: Real> WinogradWeight<T> {
    /// False where a result is not finite, or a sum on the way to it: nothing is written then.
    ///
    /// # Safety
    /// The pointers are to a group's first channel of tensors that have the sizes.
    pub(crate) unsafe fn run(self) -> bool {
        assert!(T::DTYPE == DType::F32, "only float32 goes this way");
        let [x, gy, gw] = [self.x, self.gy, self.gw].map(|p| SendPtr(p.0.cast::<f32>()));
        let (s, output, finite) = (self.s, self.output, AtomicBool::new(true));
        dispatch(WeightRun { c: &WinogradWeight { s, x, gy, gw, output }, finite: &finite });
        finite.load(Relaxed)
    }
}

struct WeightRun<'a> {
    c: &'a WinogradWeight<f32>,
    finite: &'a AtomicBool,
}

impl Choose<f32> for WeightRun<'_> {
    fn with<L: Lanes<f32>>(self) {
        let room = WeightRoom::new::<L>(&self.c.s);
        scratch::with(room.all(), |work: &mut [f32]| {
            let places: Vec<isize> = (0..room.tiles).map(|t| (t * room.stride) as isize).collect();
            let lanes: Vec<isize> = (0..self.c.s.channels as isize).collect();
            let v = SendPtr(work.as_mut_ptr());
            let u = v.add(room.inputs);
            let sums = u.add(room.gradients);
            let (c, finite, taps) = (self.c, self.finite, sums.add(room.sums));
            let run = WeightPanels { c, finite, room: &room, v, u, sums, taps, places: &places, lanes: &lanes };
            for first in (0..room.panels).step_by(room.together) {
                run.panels::<L>(first, room.together.min(room.panels - first));
            }
            if finite.load(Relaxed) {
                pool::run(room.panels, &|p| {
                    // SAFETY: the machine has what `dispatch` chose; panels are of different made channels.
                    unsafe { L::enter(WriteTaps { run: &run, p }) }
                });
            }
        });
    }
}

/// How a gradient is cut up, and where its buffers lie; lengths in numbers.
struct WeightRoom {
    /// Tiles of a block.
    tiles: usize,
    /// Numbers between the transformed tiles of inputs: channels, and a vector so that they do not share cache sets.
    stride: usize,
    /// Panels of two vectors of made channels, and how many are summed at a time.
    panels: usize,
    together: usize,
    inputs: usize,
    gradients: usize,
    sums: usize,
    taps: usize,
}

impl WeightRoom {
    fn new<L: Lanes<f32>>(s: &WinogradSizes) -> WeightRoom {
        let stride = s.channels.next_multiple_of(L::N) + L::N;
        let (panels, panel) = (panels::<L>(s), s.points() * s.channels * 2 * L::N);
        let most = (SUMS / (panel * size_of::<f32>())).max(1);
        let together = panels.div_ceil(panels.div_ceil(most));
        let width = stride + together * 2 * L::N;
        let (all, fit) = (s.tiles()[2].max(1), BLOCK / (s.points() * width * size_of::<f32>()));
        let tiles = all.div_ceil(all.div_ceil(fit.max(TILES)));
        let line = scratch::line::<f32>;
        WeightRoom {
            tiles,
            stride,
            panels,
            together,
            inputs: line(s.points() * tiles * stride),
            gradients: line(together * s.points() * tiles * 2 * L::N),
            sums: line(together * panel),
            taps: line(panels * panel / s.points() * s.taps()),
        }
    }

    fn all(&self) -> usize {
        self.inputs + self.gradients + self.sums + self.taps
    }
}

/// Bytes of the large buffers that a gradient works in.
pub(super) fn bytes<L: Lanes<f32>>(s: &WinogradSizes) -> usize {
    scratch::counted(WeightRoom::new::<L>(s).all() * size_of::<f32>())
}

struct WeightPanels<'a> {
    c: &'a WinogradWeight<f32>,
    finite: &'a AtomicBool,
    room: &'a WeightRoom,
    /// Transformed inputs: `v[point][tile][channel]`.
    v: SendPtr<f32>,
    /// Transformed gradients: `u[panel][point][tile][lane]`.
    u: SendPtr<f32>,
    /// `sums[panel][point][channel][lane]`, and `taps[panel][tap][channel][lane]`.
    sums: SendPtr<f32>,
    taps: SendPtr<f32>,
    /// Where each tile of a point is in `v`, and each channel of a tile.
    places: &'a [isize],
    lanes: &'a [isize],
}

impl WeightPanels<'_> {
    /// The taps of `count` panels from `first`.
    fn panels<L: Lanes<f32>>(&self, first: usize, count: usize) {
        let (s, room) = (&self.c.s, self.room);
        let (all, vectors) = (s.tiles()[2], s.channels.div_ceil(L::N));
        let summed = room.tiles * (SUMMED / room.tiles).max(1);
        for from in (0..all).step_by(room.tiles) {
            let tiles = room.tiles.min(all - from);
            pool::run(vectors + 2 * count, &|i| {
                let side = if i < vectors { SIDE } else { OUT };
                let columns = tiles.min(s.tiles()[1]) * OUT + side - OUT;
                scratch::with(s.form.rows(side) * columns * L::N, |strip: &mut [f32]| {
                    let job = TransformTiles { run: self, from, tiles, panel: first, i, vectors, strip };
                    // SAFETY: the machine has what `dispatch` chose; tasks write different vectors.
                    unsafe { L::enter(job) }
                });
            });
            let is_first = from.is_multiple_of(summed);
            pool::run(s.points() * count, &|i| self.product::<L>(i / count, i % count, tiles, is_first));
            let end = from + tiles;
            if end == all || end.is_multiple_of(summed) {
                pool::run(count, &|p| {
                    // SAFETY: as above; the panel's sums are complete.
                    unsafe { L::enter(MakeTaps { run: self, p, to: first + p, add: end > summed }) }
                });
            }
        }
    }

    /// Adds the products of a block's tiles at a point for a panel to their sums.
    fn product<L: Lanes<f32>>(&self, point: usize, p: usize, tiles: usize, is_first: bool) {
        let (room, wide, channels, points) = (self.room, 2 * L::N, self.c.s.channels, self.c.s.points());
        let zeros = [0.0f32; 2 * MOST];
        let sums = self.sums.add((p * points + point) * channels * wide).0;
        let (v, u) =
            (self.v.add(point * room.tiles * room.stride), self.u.add((p * points + point) * room.tiles * wide));
        let chain = tiles.div_ceil(tiles.div_ceil(CHAIN));
        for from in (0..tiles).step_by(chain) {
            let is_first = is_first && from == 0;
            let (init, init_stride) = if is_first { (zeros.as_ptr(), 0) } else { (sums.cast_const(), wide) };
            let job = Tiles {
                x: v.add(from * room.stride).0,
                off: &self.places[..chain.min(tiles - from)],
                lane: self.lanes,
                w: u.add(from * wide).0,
                w_stride: wide,
                vectors: 2,
                init,
                init_stride,
                out: sums,
                out_stride: wide,
            };
            // SAFETY: a point's inputs, gradients and sums, which no other task writes.
            unsafe { L::enter(job) }
        }
    }
}

/// The transform of one vector's worth of channels of a block's tiles: of the inputs, or (from `vectors` on) of the gradients.
struct TransformTiles<'a> {
    run: &'a WeightPanels<'a>,
    from: usize,
    tiles: usize,
    /// The first panel of those that are summed now.
    panel: usize,
    i: usize,
    vectors: usize,
    strip: &'a mut [f32],
}

impl WithLanes<f32> for TransformTiles<'_> {
    #[inline(always)]
    unsafe fn call<L: Lanes<f32>>(mut self) {
        // SAFETY: the caller's promise.
        unsafe { if self.i < self.vectors { self.inputs::<L>() } else { self.gradients::<L>() } }
    }
}

impl TransformTiles<'_> {
    fn row(&self, index: usize) -> TileRow {
        TileRow::new(&self.run.c.s, self.from, index, self.tiles)
    }

    #[inline(always)]
    unsafe fn inputs<L: Lanes<f32>>(&mut self) {
        let (room, first) = (self.run.room, self.i * L::N);
        let (source, to) = (Plane::inputs(&self.run.c.s, self.run.c.x), self.run.v.add(first));
        let (tile, point) = (room.stride, room.tiles * room.stride);
        let mut row = self.row(0);
        while row.tiles > 0 {
            let strip = &mut *self.strip;
            // SAFETY: the strip has a tile's lines, `v` has as many points of the block's tiles.
            unsafe { L::enter(InputRow { source: &source, row, first, strip, to, tile, point }) }
            row = self.row(row.index + row.tiles);
        }
    }

    #[inline(always)]
    unsafe fn gradients<L: Lanes<f32>>(&mut self) {
        let (room, s, wide, k) = (self.run.room, &self.run.c.s, 2 * L::N, self.i - self.vectors);
        let first = (2 * self.panel + k) * L::N;
        let source = Plane::outputs(s, self.run.c.gy);
        let to = self.run.u.add(k / 2 * s.points() * room.tiles * wide + k % 2 * L::N);
        if first >= source.channels {
            self.strip.fill(0.0);
        }
        let mut row = self.row(0);
        while row.tiles > 0 {
            if first < source.channels {
                // SAFETY: the strip has a tile's lines.
                unsafe { source.load::<L>(row, OUT, first, self.strip) }
            }
            for t in 0..row.tiles {
                let from = self.strip[t * OUT * L::N..].as_ptr();
                // SAFETY: as above; `u` has all points of tiles.
                unsafe {
                    transform::gradient::<L>(
                        s.form,
                        from,
                        row.tiles * OUT * L::N,
                        to.add((row.index + t) * wide).0,
                        room.tiles * wide,
                    );
                }
            }
            row = self.row(row.index + row.tiles);
        }
    }
}

/// The taps of panel `p` of those that are summed now, which is number `to` of all; added to what is there, or the first ones.
struct MakeTaps<'a> {
    run: &'a WeightPanels<'a>,
    p: usize,
    to: usize,
    add: bool,
}

impl WithLanes<f32> for MakeTaps<'_> {
    #[inline(always)]
    unsafe fn call<L: Lanes<f32>>(self) {
        let s = &self.run.c.s;
        let step = s.channels * 2 * L::N;
        let from = self.run.sums.add(self.p * s.points() * step).0;
        let to = self.run.taps.add(self.to * s.taps() * step).0;
        let mut sum = [0.0f32; MOST];
        // SAFETY: the panel has all points, and all taps, of `step` numbers.
        unsafe {
            let mut bad = L::splat(0.0);
            for at in (0..step).step_by(L::N) {
                bad = transform::taps::<L>(s.form, from.add(at), to.add(at), step, self.add, bad);
            }
            L::store(sum.as_mut_ptr(), bad);
        }
        if sum[..L::N].iter().any(|v| v.is_nan()) {
            self.run.finite.store(false, Relaxed);
        }
    }
}

/// Puts panel `p` into the gradient, whose made channels are apart.
struct WriteTaps<'a> {
    run: &'a WeightPanels<'a>,
    p: usize,
}

impl WithLanes<f32> for WriteTaps<'_> {
    #[inline(always)]
    unsafe fn call<L: Lanes<f32>>(self) {
        let (c, wide) = (self.run.c, 2 * L::N);
        let ([lane, channel, tap], step) = (c.s.w, c.s.channels * wide);
        let from = self.run.taps.add(self.p * c.s.taps() * step);
        let to = c.gw.add(self.p * wide * lane);
        let cols = wide.min(c.s.lanes - self.p * wide);
        let add = c.output == Output::Accumulate;
        // The taps of a channel lie together, or the channels of a tap.
        let (many, rows, [src_step, src_stride], dst_step) = if tap == 1 {
            (c.s.channels, c.s.taps(), [wide, step], channel)
        } else {
            (c.s.taps(), c.s.channels, [step, wide], tap)
        };
        for i in 0..many {
            let (src, dst) = (from.add(i * src_step).0.cast_const(), to.add(i * dst_step).0);
            // SAFETY: the panel's taps, and the made channels that it is of.
            unsafe {
                transpose_or_add::<f32, L>(TransposeBlock { src, src_stride, rows, cols, dst, dst_stride: lane }, add)
            }
        }
    }
}
