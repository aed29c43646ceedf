//! Rows of tiles, and the strips of channels' vectors that they are read into.

use super::transform::{self, OUT, SIDE, TileForm};
use super::{Strides, WinogradSizes};
use crate::pool::tasks::SendPtr;
use crate::simd::lanes::{Lanes, TransposeBlock, WithLanes, transpose_all};

/// Tiles side by side in one image.
#[derive(Clone, Copy)]
pub(super) struct TileRow {
    pub image: usize,
    /// Of its outputs: the first row and column.
    pub at: [usize; 2],
    pub tiles: usize,
    /// Its first tile's number in the block.
    pub index: usize,
}

impl TileRow {
    /// The tiles from number `index` of a block of `count`, whose first is `first`, to the end of their row, or of the block.
    #[inline(always)]
    pub fn new(s: &WinogradSizes, first: usize, index: usize, count: usize) -> TileRow {
        let [down, across, _] = s.tiles();
        let t = first + index;
        let (column, row, image) = (t % across, t / across % down, t / across / down);
        let tiles = (across - column).min(count - index);
        TileRow { image, at: [row * s.form.rows(OUT), column * OUT], tiles, index }
    }
}

/// The transform of a vector's worth of channels of a row's tiles: point `i` of tile `t` of the block goes to
/// `to + t * tile + i * point`. (A job of its own, so that its code is there once.)
pub(super) struct InputRow<'a> {
    pub source: &'a Plane,
    pub row: TileRow,
    /// The first of the channels.
    pub first: usize,
    pub strip: &'a mut [f32],
    pub to: SendPtr<f32>,
    pub tile: usize,
    pub point: usize,
}

impl WithLanes<f32> for InputRow<'_> {
    #[inline(always)]
    unsafe fn call<L: Lanes<f32>>(self) {
        let InputRow { source, row, first, strip, to, tile, point } = self;
        let line = (row.tiles * OUT + SIDE - OUT) * L::N;
        // SAFETY: the strip has a tile's lines, the block as many points of its tiles.
        unsafe {
            source.load::<L>(row, SIDE, first, strip);
            for t in 0..row.tiles {
                let from = strip[t * OUT * L::N..].as_ptr();
                transform::input::<L>(source.form, from, line, to.add((row.index + t) * tile).0, point);
            }
        }
    }
}

/// Images that strips are read from, with zeros around them.
pub(super) struct Plane {
    form: TileForm,
    from: SendPtr<f32>,
    strides: Strides,
    size: [usize; 2],
    /// Rows and columns of zeros before the image.
    pad: [usize; 2],
    pub channels: usize,
}

impl Plane {
    pub fn inputs(s: &WinogradSizes, from: SendPtr<f32>) -> Plane {
        Plane { form: s.form, from, strides: s.x, size: s.input, pad: s.pad, channels: s.channels }
    }

    /// The results, or their gradients.
    pub fn outputs(s: &WinogradSizes, from: SendPtr<f32>) -> Plane {
        Plane { form: s.form, from, strides: s.y, size: s.output, pad: [0; 2], channels: s.lanes }
    }

    /// Copies a vector's worth of channels of a row's points into `strip`, points outside the image as zeros: the lines
    /// of tiles that are `side` wide and begin [`OUT`] points after one another.
    #[inline(always)]
    pub unsafe fn load<L: Lanes<f32>>(&self, row: TileRow, side: usize, first: usize, strip: &mut [f32]) {
        let columns = row.tiles * OUT + side - OUT;
        let channels = L::N.min(self.channels - first);
        let begin = self.pad[1].saturating_sub(row.at[1]).min(columns);
        let left = row.at[1] + begin - self.pad[1];
        let inside = self.size[1].saturating_sub(left).min(columns - begin);
        for i in 0..self.form.rows(side) {
            let to = &mut strip[i * columns * L::N..][..columns * L::N];
            let y = (row.at[0] + i).wrapping_sub(self.pad[0]);
            if y >= self.size[0] {
                to.fill(0.0);
                continue;
            }
            if channels < L::N {
                to.fill(0.0);
            } else {
                to[..begin * L::N].fill(0.0);
                to[(begin + inside) * L::N..].fill(0.0);
            }
            let s = self.strides;
            let from = row.image * s.image + first * s.channel + (y * self.size[1] + left) * s.point;
            let from = self.from.add(from).0.cast_const();
            let to = to[begin * L::N..].as_mut_ptr();
            // SAFETY: `inside` points of `channels` channels are in the image, and in the strip.
            unsafe { gather::<L>(s, from, inside, channels, to) }
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
pub(super) unsafe fn scatter<L: Lanes<f32>>(
    s: Strides,
    from: *const f32,
    points: usize,
    channels: usize,
    to: *mut f32,
) {
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
