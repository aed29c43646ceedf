//! Rows of images beside the work on a block: what will be read and written next, and what has just been made.

use super::block::TileBlock;
use super::strip::TileRow;
use super::{OUT, SIDE, Strides, WinogradSizes};
use crate::gemm::tile::NextRows;
use crate::pool::tasks::SendPtr;
use std::ops::Range;

/// What products ask for meanwhile, into the second cache: the same rows of some channels of images, one row of tiles after the other.
pub(super) struct SoonRows {
    pub now: NextRows,
    /// The first of the channels, and how many they are.
    from: SendPtr<f32>,
    channels: usize,
    strides: Strides,
    size: [usize; 2],
    /// The row of an image that a tile whose results begin in its first row begins with.
    first: usize,
    /// The tiles: where they begin, the next one, and how many they are.
    start: usize,
    index: usize,
    count: usize,
}

impl SoonRows {
    /// The results of panel `p`, and of what the next block reads a share for each panel.
    pub fn of_panel(b: &TileBlock, p: usize, wide: usize) -> [SoonRows; 2] {
        let (c, s, next) = (b.c, &b.c.s, b.first + b.lane.len());
        let panels = s.lanes.div_ceil(wide);
        let share = s.channels * p / panels..s.channels * (p + 1) / panels;
        let rows = |from, strides: Strides, channels: Range<usize>, size, first, start, count| SoonRows {
            now: NextRows::new(b.zeros.as_ptr(), 0, 1, 0),
            from: SendPtr::add(from, channels.start * strides.channel),
            channels: channels.len(),
            strides,
            size,
            first,
            start,
            index: 0,
            count: if strides.point == 1 && !channels.is_empty() { count } else { 0 },
        };
        let made = p * wide..s.lanes.min((p + 1) * wide);
        // The rows that the tiles above have had are there.
        let below = SIDE - OUT - s.pad[0];
        [
            rows(c.y, s.y, made, s.output, 0, b.first, b.lane.len()),
            rows(c.x, s.x, share, s.input, below, next, b.room.tiles.min(s.tiles()[2] - next)),
        ]
    }

    /// What is to be asked for next.
    pub fn next(&mut self, s: &WinogradSizes) -> NextRows {
        if self.now.is_over() && self.index < self.count {
            let row = TileRow::new(s, self.start, self.index, self.count);
            self.index += row.tiles;
            let from = (row.at[0] + self.first).min(self.size[0] - 1);
            let n = OUT.min(self.size[0] - from) * self.size[1];
            let at = self.from.add(row.image * self.strides.image + from * self.size[1]);
            self.now = NextRows::new(at.0.cast_const(), self.strides.channel, self.channels, n);
        }
        self.now
    }
}

/// Results that have just been made: so many rows of `n` neighbours of one image, from a place on.
#[derive(Clone, Copy)]
pub(super) struct FreshRows {
    pub image: usize,
    pub at: [usize; 2],
    pub rows: usize,
    pub n: usize,
}

/// Neighbours that are worth a run by themselves, and leave room for other channels in the first cache.
const ENOUGH: usize = 192;

impl FreshRows {
    pub fn none() -> FreshRows {
        FreshRows { image: 0, at: [0; 2], rows: 0, n: 0 }
    }

    /// Whole rows are one.
    pub fn new(s: &WinogradSizes, row: TileRow) -> FreshRows {
        let (rows, n) = (OUT.min(s.output[0] - row.at[0]), (s.output[1] - row.at[1]).min(row.tiles * OUT));
        let (rows, n) = if n == s.output[1] { (1, rows * n) } else { (rows, n) };
        FreshRows { image: row.image, at: row.at, rows, n }
    }

    /// Whether `next` could be added to it.
    pub fn takes(&mut self, next: FreshRows) -> bool {
        let is_whole = |rows: &FreshRows| rows.rows == 1 && rows.at[1] == 0;
        let is_below = self.image == next.image && self.at[0] < next.at[0];
        let follows = is_whole(self) && is_whole(&next) && is_below && self.n < ENOUGH;
        if follows {
            self.n += next.n;
        }
        follows
    }
}
