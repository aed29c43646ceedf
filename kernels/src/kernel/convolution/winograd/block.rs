//! A block of tiles: transform of the inputs, products, transform of the outputs.

use super::few::{self, FewTiles};
use super::rows::FreshRows;
use super::strip::{InputRow, Plane, TileRow, scatter};
use super::*;
use crate::finish::Finisher;
use crate::gemm::tile::Tiles;
use std::ops::Range;

/// Channels that are summed before their sum goes to the total: longer ones round more.
const SUMMED: usize = 256;

/// Where a task's buffers lie: transformed inputs, sums, a strip of channels, zeros; lengths in numbers.
pub(super) struct Room {
    /// Tiles of a block.
    pub tiles: usize,
    /// Transformed: `v[vector of channels][point][tile][lane]`, so that what is read together lies together.
    pub inputs: usize,
    pub sums: usize,
    pub strip: usize,
    pub zeros: usize,
}

impl Room {
    pub fn new<L: Lanes<f32>>(s: &WinogradSizes) -> Room {
        let channels = s.channels.next_multiple_of(L::N);
        let fit = INPUTS / (s.points() * channels * size_of::<f32>());
        let all = s.tiles()[2];
        let blocks = if by_panels(s) { 1 } else { all.div_ceil(fit.max(TILES)).max(1) };
        let tiles = all.div_ceil(blocks).next_multiple_of(L::ROWS).min(all.max(1));
        let columns = tiles.min(s.tiles()[1]) * OUT + SIDE;
        let line = scratch::line::<f32>;
        Room {
            tiles,
            inputs: line(s.points() * tiles * channels),
            sums: line(s.points() * tiles * 2 * L::N),
            strip: line(s.form.rows(SIDE) * columns * L::N),
            zeros: line(2 * L::N),
        }
    }

    /// What a task has beside the inputs.
    fn work(&self) -> usize {
        self.sums + self.strip + self.zeros
    }
}

/// Whether the tiles are so few that their inputs stay in the cache for all panels, whose weights would not.
pub(super) fn by_panels(s: &WinogradSizes) -> bool {
    s.tiles()[2] * 2 <= s.lanes
}

/// Channels whose weights are transformed at a time for few tiles: of the order of the numbers of the sums, so that both stay near.
fn parts_of_few(s: &WinogradSizes) -> usize {
    (s.tiles()[2] * 2).clamp(16, SUMMED / 2).min(s.channels)
}

/// Numbers that a panel's sums are made in.
fn panel_work<L: Lanes<f32>>(s: &WinogradSizes) -> usize {
    if few::pays::<L>(s) { few::work::<L>(s) } else { s.points() * weight_step::<L>(parts_of_few(s)) }
}

/// Bytes of the large buffers that a run works in.
pub(super) fn bytes<L: Lanes<f32>>(s: &WinogradSizes) -> usize {
    let (room, threads) = (Room::new::<L>(s), pool::num_threads());
    let bytes = |n: usize| scratch::counted(n * size_of::<f32>());
    if by_panels(s) {
        return bytes(room.inputs) + threads.min(panels::<L>(s)) * bytes(panel_work::<L>(s) + room.work());
    }
    bytes(panels::<L>(s) * panel_len::<L>(s)) + threads.min(count(s, &room)) * bytes(room.inputs + room.work())
}

/// Blocks of tiles.
fn count(s: &WinogradSizes, room: &Room) -> usize {
    s.tiles()[2].div_ceil(room.tiles)
}

pub(super) fn run<L: Lanes<f32>>(c: &Winograd) {
    let room = Room::new::<L>(&c.s);
    let off: Vec<isize> =
        (0..c.s.channels).map(|i| (i / L::N * c.s.points() * room.tiles * L::N + i % L::N) as isize).collect();
    let lane: Vec<isize> = (0..room.tiles).map(|t| (t * L::N) as isize).collect();
    let block = |first: usize, v: SendPtr<f32>, work: &mut [f32], stage: Stage<'_>| {
        let tiles = room.tiles.min(c.s.tiles()[2] - first);
        let (m, rest) = work.split_at_mut(room.sums);
        let (strip, zeros) = rest.split_at_mut(room.strip);
        zeros.fill(0.0);
        let block = TileBlock { c, room: &room, off: &off, lane: &lane[..tiles], first, v, m, strip, zeros };
        // SAFETY: the machine has what `dispatch` chose; the block's memory has the sizes of `room`.
        unsafe { L::enter(BlockJob { block, stage }) }
    };
    let (panels, panel) = (panels::<L>(&c.s), panel_len::<L>(&c.s));
    if by_panels(&c.s) {
        return scratch::with(room.inputs, |v: &mut [f32]| {
            let v = SendPtr(v.as_mut_ptr());
            pool::run(c.s.channels.div_ceil(L::N), &|i| {
                scratch::with(room.work(), |work: &mut [f32]| block(0, v, work, Stage::Inputs(i * L::N)));
            });
            pool::run(panels, &|p| {
                let of_panel = panel_work::<L>(&c.s);
                scratch::with(of_panel + room.work(), |work: &mut [f32]| {
                    let (of_panel, work) = work.split_at_mut(of_panel);
                    block(0, v, work, Stage::Panel(p, of_panel));
                });
            });
        });
    }
    scratch::with(panels * panel, |u: &mut [f32]| {
        let u = SendPtr(u.as_mut_ptr());
        pool::run(panels, &|p| {
            // SAFETY: each task has a panel of its own; as above.
            unsafe { L::enter(TransformedWeights { c, p, channels: 0..c.s.channels, to: u.add(p * panel) }) }
        });
        pool::run(count(&c.s, &room), &|b| {
            scratch::with(room.inputs + room.work(), |work: &mut [f32]| {
                let (v, work) = work.split_at_mut(room.inputs);
                block(b * room.tiles, SendPtr(v.as_mut_ptr()), work, Stage::All(u));
            });
        });
    });
}

pub(super) struct TileBlock<'a> {
    pub c: &'a Winograd<'a>,
    room: &'a Room,
    off: &'a [isize],
    /// One for each tile.
    pub lane: &'a [isize],
    /// The number of the first tile.
    first: usize,
    /// The transformed inputs; the sums, `m[point][tile][lane]`.
    pub v: SendPtr<f32>,
    pub m: &'a mut [f32],
    strip: &'a mut [f32],
    zeros: &'a [f32],
}

/// What is to be done to a block: all of it, with all weights; the inputs of a vector of channels from one on; or the results of
/// one panel, with room for weights.
enum Stage<'a> {
    All(SendPtr<f32>),
    Inputs(usize),
    Panel(usize, &'a mut [f32]),
}

struct BlockJob<'a> {
    block: TileBlock<'a>,
    stage: Stage<'a>,
}

impl WithLanes<f32> for BlockJob<'_> {
    #[inline(always)]
    unsafe fn call<L: Lanes<f32>>(mut self) {
        let s = &self.block.c.s;
        // SAFETY: the caller's promise.
        unsafe {
            match self.stage {
                Stage::Inputs(first) => L::enter(ChannelInputs { block: &mut self.block, first }),
                Stage::Panel(p, work) => {
                    if few::pays::<L>(s) {
                        L::enter(FewTiles { block: &mut self.block, p, work });
                    } else {
                        let (u, each) = (SendPtr(work.as_mut_ptr()), parts_of_few(s));
                        for first in (0..s.channels).step_by(each) {
                            let channels = first..s.channels.min(first + each);
                            let c = self.block.c;
                            L::enter(TransformedWeights { c, p, channels: channels.clone(), to: u });
                            self.block.products::<L>(channels.clone(), u, weight_step::<L>(channels.len()));
                        }
                    }
                    L::enter(PanelResults { block: &mut self.block, p });
                }
                Stage::All(u) => {
                    // Loops, not closures, which would not be compiled for the instruction set.
                    for first in (0..s.channels).step_by(L::N) {
                        L::enter(ChannelInputs { block: &mut self.block, first });
                    }
                    for p in 0..panels::<L>(s) {
                        let u = u.add(p * panel_len::<L>(s));
                        for first in (0..s.channels).step_by(SUMMED) {
                            let channels = first..s.channels.min(first + SUMMED);
                            let (u, apart) = (u.add(first * 2 * L::N), weight_step::<L>(s.channels));
                            self.block.products::<L>(channels, u, apart);
                        }
                        L::enter(PanelResults { block: &mut self.block, p });
                    }
                }
            }
        }
    }
}

// Jobs of their own, so that their code is there once.

/// The transformed inputs of a vector's worth of channels.
struct ChannelInputs<'a, 'b> {
    block: &'a mut TileBlock<'b>,
    first: usize,
}

impl WithLanes<f32> for ChannelInputs<'_, '_> {
    #[inline(always)]
    unsafe fn call<L: Lanes<f32>>(self) {
        // SAFETY: the caller's promise.
        unsafe { self.block.inputs::<L>(self.first) }
    }
}

/// The outputs of one row of tiles for one vector's worth of channels of panel `p`.
struct RowOutputs<'a, 'b> {
    block: &'a mut TileBlock<'b>,
    row: TileRow,
    p: usize,
    half: usize,
}

impl WithLanes<f32> for RowOutputs<'_, '_> {
    #[inline(always)]
    unsafe fn call<L: Lanes<f32>>(self) {
        // SAFETY: the caller's promise.
        unsafe { self.block.outputs::<L>(self.row, self.p, self.half) }
    }
}

/// The results of panel `p` from its sums.
struct PanelResults<'a, 'b> {
    block: &'a mut TileBlock<'b>,
    p: usize,
}

impl WithLanes<f32> for PanelResults<'_, '_> {
    #[inline(always)]
    unsafe fn call<L: Lanes<f32>>(self) {
        let PanelResults { block, p } = self;
        let (mut row, mut fresh) = (block.row(0), FreshRows::none());
        // SAFETY: the caller's promise.
        unsafe {
            while row.tiles > 0 {
                for half in 0..2 {
                    L::enter(RowOutputs { block: &mut *block, row, p, half });
                }
                if let Some(finish) = block.c.finish {
                    let new = FreshRows::new(&block.c.s, row);
                    if !fresh.takes(new) {
                        block.finish(finish, fresh, 2 * p * L::N, 2 * L::N);
                        fresh = new;
                    }
                }
                row = block.row(row.index + row.tiles);
            }
            if let Some(finish) = block.c.finish {
                block.finish(finish, fresh, 2 * p * L::N, 2 * L::N);
            }
        }
    }
}

impl TileBlock<'_> {
    /// The tiles from number `index` of the block to the end of their row, or of the block.
    #[inline(always)]
    fn row(&self, index: usize) -> TileRow {
        TileRow::new(&self.c.s, self.first, index, self.lane.len())
    }

    /// The transformed inputs of a vector's worth of channels.
    #[inline(always)]
    unsafe fn inputs<L: Lanes<f32>>(&mut self, first: usize) {
        let s = &self.c.s;
        let (source, point) = (Plane::inputs(s, self.c.x), self.room.tiles * L::N);
        let to = self.v.add(first * s.points() * self.room.tiles);
        let mut row = self.row(0);
        while row.tiles > 0 {
            let strip = &mut *self.strip;
            // SAFETY: the strip has a tile's lines, the inputs have as many points of the block's tiles.
            unsafe { L::enter(InputRow { source: &source, row, first, strip, to, tile: L::N, point }) }
            row = self.row(row.index + row.tiles);
        }
    }

    /// Does to the results of some channels, from `first` on, what is to be done to them.
    unsafe fn finish(&self, finish: &Finisher<f32>, fresh: FreshRows, first: usize, channels: usize) {
        let s = &self.c.s;
        let at = fresh.image * s.y.image + first * s.y.channel + fresh.at[0] * s.output[1] + fresh.at[1];
        for i in 0..fresh.rows {
            // SAFETY: the points have been made, by this task.
            unsafe { finish.rows(self.c.y.add(at + i * s.output[1]).0, channels.min(s.lanes - first), fresh.n) }
        }
    }

    /// Adds the products of a panel, one for each point, over some channels, whose weights are `u`, those of a point `apart`
    /// numbers after the one before.
    #[inline(always)]
    unsafe fn products<L: Lanes<f32>>(&mut self, channels: Range<usize>, u: SendPtr<f32>, apart: usize) {
        let wide = 2 * L::N;
        for point in 0..self.c.s.points() {
            let out = self.m[point * self.room.tiles * wide..].as_mut_ptr();
            let is_first = channels.start == 0;
            let (init, init_stride) = if is_first { (self.zeros.as_ptr(), 0) } else { (out.cast_const(), wide) };
            let tiles = Tiles {
                x: self.v.add(point * self.room.tiles * L::N).0,
                off: &self.off[channels.clone()],
                lane: self.lane,
                w: u.add(point * apart).0,
                w_stride: wide,
                vectors: 2,
                init,
                init_stride,
                out,
                out_stride: wide,
            };
            // SAFETY: a point's inputs, weights and sums. Not inlined: the loops are many, and others have them too.
            unsafe { L::enter(tiles) }
        }
    }

    /// The outputs of one row of tiles for one vector's worth of channels of panel `p`.
    #[inline(always)]
    unsafe fn outputs<L: Lanes<f32>>(&mut self, row: TileRow, p: usize, half: usize) {
        let s = &self.c.s;
        let first = (2 * p + half) * L::N;
        if first >= s.lanes {
            return;
        }
        let channels = L::N.min(s.lanes - first);
        let mut bias = [0.0f32; MOST];
        if let Some(b) = self.c.bias {
            bias[..channels].copy_from_slice(&b[first..first + channels]);
        }
        let (line, wide) = (row.tiles * OUT * L::N, 2 * L::N);
        let mut sum = [0.0f32; MOST];
        // SAFETY: the sums have all points of `tiles` rows, the strip has the lines of a row of tiles.
        unsafe {
            let bias = L::load(bias.as_ptr());
            let mut bad = L::splat(0.0);
            for t in 0..row.tiles {
                let from = self.m[(row.index + t) * wide + half * L::N..].as_ptr();
                let to = self.strip[t * OUT * L::N..].as_mut_ptr();
                bad = transform::output::<L>(s.form, from, self.room.tiles * wide, bias, to, line, bad);
            }
            L::store(sum.as_mut_ptr(), bad);
        }
        // Outputs beyond the image may overflow too: then it is done again for nothing.
        if sum[..channels].iter().any(|v| v.is_nan()) {
            self.c.mark(row.image);
        }
        let inside = (s.output[1] - row.at[1]).min(row.tiles * OUT);
        for i in 0..s.form.rows(OUT).min(s.output[0] - row.at[0]) {
            let at = (row.at[0] + i) * s.output[1] + row.at[1];
            let to = self.c.y.add(row.image * s.y.image + first * s.y.channel + at * s.y.point).0;
            // SAFETY: `inside` points of `channels` channels are in the result, which no other task writes.
            unsafe { scatter::<L>(s.y, self.strip[i * line..].as_ptr(), inside, channels, to) }
        }
    }
}
