//! Rows of images that a block has just made.

use super::strip::TileRow;
use super::{OUT, WinogradSizes};

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
        let (rows, n) = (s.form.rows(OUT).min(s.output[0] - row.at[0]), (s.output[1] - row.at[1]).min(row.tiles * OUT));
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
