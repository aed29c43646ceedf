//! A block of tiles: transform of the inputs, products, transform of the outputs.

use super::*;
use crate::gemm::tile::Tiles;

/// Where a task's buffers lie: transformed inputs, sums, a strip of channels, zeros; lengths in numbers.
pub(super) struct Room {
    /// Tiles of a block.
    pub tiles: usize,
    /// Numbers between the transformed tiles: channels, and a vector so that they do not share cache sets.
    pub stride: usize,
    pub inputs: usize,
    pub sums: usize,
    pub strip: usize,
    pub zeros: usize,
}

impl Room {
    pub fn new<L: Lanes<f32>>(s: &WinogradSizes) -> Room {
        let stride = s.channels.next_multiple_of(L::N) + L::N;
        let fit = INPUTS / (AREA * stride * size_of::<f32>());
        let all = s.tiles()[2];
        let blocks = all.div_ceil(fit.max(TILES)).max(1);
        let tiles = all.div_ceil(blocks).next_multiple_of(L::ROWS).min(all.max(1));
        let columns = tiles.min(s.tiles()[1]) * OUT + SIDE;
        let line = scratch::line::<f32>;
        Room {
            tiles,
            stride,
            inputs: line(AREA * tiles * stride),
            sums: line(AREA * tiles * 2 * L::N),
            strip: line(SIDE * columns * L::N),
            zeros: line(2 * L::N),
        }
    }

    pub fn all(&self) -> usize {
        self.inputs + self.sums + self.strip + self.zeros
    }
}

/// Blocks of tiles.
pub(super) fn count<L: Lanes<f32>>(s: &WinogradSizes) -> usize {
    s.tiles()[2].div_ceil(Room::new::<L>(s).tiles)
}

pub(super) fn run<L: Lanes<f32>>(c: &Winograd, u: SendPtr<f32>) {
    let room = Room::new::<L>(&c.s);
    let off: Vec<isize> = (0..c.s.channels as isize).collect();
    let lane: Vec<isize> = (0..room.tiles).map(|t| (t * room.stride) as isize).collect();
    pool::run(count::<L>(&c.s), &|b| {
        let first = b * room.tiles;
        let tiles = room.tiles.min(c.s.tiles()[2] - first);
        scratch::with(room.all(), |work: &mut [f32]| {
            let (v, rest) = work.split_at_mut(room.inputs);
            let (m, rest) = rest.split_at_mut(room.sums);
            let (strip, zeros) = rest.split_at_mut(room.strip);
            zeros.fill(0.0);
            let block = TileBlock { c, room: &room, off: &off, lane: &lane[..tiles], first, v, m, strip, zeros, u };
            // SAFETY: the machine has what `dispatch` chose; the block's memory has the sizes of `room`.
            unsafe { L::enter(block) }
        });
    });
}

struct TileBlock<'a> {
    c: &'a Winograd<'a>,
    room: &'a Room,
    off: &'a [isize],
    /// One for each tile.
    lane: &'a [isize],
    /// The number of the first tile.
    first: usize,
    v: &'a mut [f32],
    m: &'a mut [f32],
    strip: &'a mut [f32],
    zeros: &'a [f32],
    u: SendPtr<f32>,
}

/// Tiles side by side in one image.
#[derive(Clone, Copy)]
struct TileRow {
    image: usize,
    /// Of its outputs: the first row and column.
    at: [usize; 2],
    tiles: usize,
    /// Its first tile's number in the block.
    index: usize,
}

impl WithLanes<f32> for TileBlock<'_> {
    #[inline(always)]
    unsafe fn call<L: Lanes<f32>>(mut self) {
        let panels = self.c.s.lanes.div_ceil(2 * L::N);
        // SAFETY: the caller's promise.
        unsafe {
            let mut row = self.row(0);
            while row.tiles > 0 {
                for first in (0..self.c.s.channels).step_by(L::N) {
                    self.load::<L>(row, first);
                    self.inputs::<L>(row, first);
                }
                row = self.row(row.index + row.tiles);
            }
            for p in 0..panels {
                self.products::<L>(p);
                let mut row = self.row(0);
                while row.tiles > 0 {
                    self.outputs::<L>(row, p, 0);
                    self.outputs::<L>(row, p, 1);
                    row = self.row(row.index + row.tiles);
                }
            }
        }
    }
}

impl TileBlock<'_> {
    /// The tiles from number `index` of the block to the end of their row, or of the block.
    #[inline(always)]
    fn row(&self, index: usize) -> TileRow {
        let [down, across, _] = self.c.s.tiles();
        let t = self.first + index;
        let (column, row, image) = (t % across, t / across % down, t / across / down);
        let tiles = (across - column).min(self.lane.len() - index);
        TileRow { image, at: [row * OUT, column * OUT], tiles, index }
    }

    /// Copies a vector's worth of channels of the row's inputs into the strip, points outside the image as zeros.
    #[inline(always)]
    unsafe fn load<L: Lanes<f32>>(&mut self, row: TileRow, first: usize) {
        let s = &self.c.s;
        let columns = row.tiles * OUT + SIDE - OUT;
        let channels = L::N.min(s.channels - first);
        let begin = s.pad[1].saturating_sub(row.at[1]).min(columns);
        let left = row.at[1] + begin - s.pad[1];
        let inside = s.input[1].saturating_sub(left).min(columns - begin);
        for i in 0..SIDE {
            let to = &mut self.strip[i * columns * L::N..][..columns * L::N];
            let y = (row.at[0] + i).wrapping_sub(s.pad[0]);
            if y >= s.input[0] {
                to.fill(0.0);
                continue;
            }
            if channels < L::N {
                to.fill(0.0);
            } else {
                to[..begin * L::N].fill(0.0);
                to[(begin + inside) * L::N..].fill(0.0);
            }
            let from = row.image * s.x.image + first * s.x.channel + (y * s.input[1] + left) * s.x.point;
            let from = self.c.x.add(from).0.cast_const();
            let to = to[begin * L::N..].as_mut_ptr();
            // SAFETY: `inside` points of `channels` channels are in the image, and in the strip.
            unsafe { gather::<L>(s.x, from, inside, channels, to) }
        }
    }

    #[inline(always)]
    unsafe fn inputs<L: Lanes<f32>>(&mut self, row: TileRow, first: usize) {
        let line = (row.tiles * OUT + SIDE - OUT) * L::N;
        let step = self.room.tiles * self.room.stride;
        for t in 0..row.tiles {
            let from = self.strip[t * OUT * L::N..].as_ptr();
            let to = self.v[(row.index + t) * self.room.stride + first..].as_mut_ptr();
            // SAFETY: the strip has six lines, the inputs have AREA points of `step` numbers.
            unsafe { transform::input::<L>(from, line, to, step) }
        }
    }

    /// The 36 products for panel `p`.
    #[inline(always)]
    unsafe fn products<L: Lanes<f32>>(&mut self, p: usize) {
        let (wide, channels) = (2 * L::N, self.c.s.channels);
        for point in 0..AREA {
            let tiles = Tiles {
                x: self.v[point * self.room.tiles * self.room.stride..].as_ptr(),
                off: self.off,
                lane: self.lane,
                w: self.u.add((p * AREA + point) * channels * wide).0,
                w_stride: wide,
                vectors: 2,
                init: self.zeros.as_ptr(),
                init_stride: 0,
                out: self.m[point * self.room.tiles * wide..].as_mut_ptr(),
                out_stride: wide,
            };
            // SAFETY: a point's inputs, weights and sums.
            unsafe { tiles.call::<L>() }
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
        // SAFETY: the sums have AREA points of `tiles` rows, the strip has four lines.
        unsafe {
            let bias = L::load(bias.as_ptr());
            let mut bad = L::splat(0.0);
            for t in 0..row.tiles {
                let from = self.m[(row.index + t) * wide + half * L::N..].as_ptr();
                let to = self.strip[t * OUT * L::N..].as_mut_ptr();
                bad = transform::output::<L>(from, self.room.tiles * wide, bias, to, line, bad);
            }
            L::store(sum.as_mut_ptr(), bad);
        }
        // Outputs beyond the image may overflow too: then it is done again for nothing.
        if sum[..channels].iter().any(|v| v.is_nan()) {
            self.c.mark(row.image);
        }
        let inside = (s.output[1] - row.at[1]).min(row.tiles * OUT);
        for i in 0..OUT.min(s.output[0] - row.at[0]) {
            let at = (row.at[0] + i) * s.output[1] + row.at[1];
            let to = self.c.y.add(row.image * s.y.image + first * s.y.channel + at * s.y.point).0;
            // SAFETY: `inside` points of `channels` channels are in the result, which no other task writes.
            unsafe { scatter::<L>(s.y, self.strip[i * line..].as_ptr(), inside, channels, to) }
        }
    }
}

/// `to[point][channel]` of `points` points of an image.
#[inline(always)]
unsafe fn gather<L: Lanes<f32>>(s: Strides, from: *const f32, points: usize, channels: usize, to: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe {
        if s.channel == 1 {
            for i in 0..points {
                from.add(i * s.point).copy_to_nonoverlapping(to.add(i * L::N), channels);
            }
            return;
        }
        let (rows, cols, src_stride, dst_stride) = (channels, points, s.channel, L::N);
        transpose_all::<f32, L>(TransposeBlock { src: from, src_stride, rows, cols, dst: to, dst_stride });
    }
}

/// `points` points of an image from `from[point][channel]`.
#[inline(always)]
unsafe fn scatter<L: Lanes<f32>>(s: Strides, from: *const f32, points: usize, channels: usize, to: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe {
        if s.channel == 1 {
            for i in 0..points {
                from.add(i * L::N).copy_to_nonoverlapping(to.add(i * s.point), channels);
            }
            return;
        }
        let (rows, cols, src_stride, dst_stride) = (points, channels, L::N, s.channel);
        transpose_all::<f32, L>(TransposeBlock { src: from, src_stride, rows, cols, dst: to, dst_stride });
    }
}
