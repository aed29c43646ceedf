//! How blocks of A and B are packed: A in tiles of rows, whose columns lie one after another, B in panels of columns, whose rows do.

use super::Side;
use super::packed::{Blocks, ROWS};
use super::parts::PanelColumns;
use crate::dtype::Real;
use crate::pool::tasks::SendPtr;
use crate::simd;
use crate::simd::lanes::{Lanes, TransposeBlock, WithLanes, transpose_all};

/// Columns that A is read ahead, where they lie far apart.
const SOON: isize = 8;

/// Tiles of A, or panels of B, of block `k`.
pub(super) struct PackJob<'a, T> {
    pub(super) all: &'a Blocks<T>,
    pub(super) k: usize,
    pub(super) to: SendPtr<T>,
    pub(super) from: usize,
    pub(super) end: usize,
    pub(super) of_a: bool,
}

impl<T: Real> WithLanes<T> for PackJob<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let (p, depths) = (&self.all.p, self.all.depths);
        let (first, depth) = (depths.start(self.k) as isize, depths.size(self.k));
        let apart = if self.of_a { self.all.a_depth } else { depths.size(0) };
        if self.of_a && p.a.rs == 1 {
            // SAFETY: as below.
            return unsafe { self.lay_columns::<L>(depth) };
        }
        for i in self.from..self.end {
            // A's columns become rows, as B's rows are.
            if self.of_a {
                let (start, rows) = (self.all.tiles.start(i), self.all.tiles.size(i));
                let data = p.a.data.wrapping_offset(first * p.a.cs + start as isize * p.a.rs);
                let s = Side { data, rs: p.a.cs, cs: p.a.rs };
                // SAFETY: as below.
                unsafe { lay::<T, L>(s, depth, rows, self.to.add(start * apart).0, rows) }
                continue;
            }
            let (start, width) = (self.all.panels.start(i) * L::N, self.all.panels.size(i) * L::N);
            let (n, to) = (width.min(p.n - start), self.to.add(start * apart).0);
            for r in 0..if n < width { depth } else { 0 } {
                // SAFETY: as below.
                (n..width).for_each(|j| unsafe { *to.add(r * width + j) = T::ZERO });
            }
            let mut columns = PanelColumns::new(self.all.order, start, n);
            loop {
                let place = first * p.b.rs + columns.run.place(self.all.parts.b, p.b.cs);
                let s = Side { data: p.b.data.wrapping_offset(place), ..p.b };
                // SAFETY: rows and columns are in A and B, and the packed ones this task's.
                unsafe { lay::<T, L>(s, depth, columns.run.count, to.add(columns.at), width) }
                if !columns.step() {
                    break;
                }
            }
        }
    }
}

impl<T: Real> PackJob<'_, T> {
    /// Tiles of A whose columns lie in order: one column of all tiles after the other, since columns may lie so far apart that they
    /// meet in a cache.
    #[inline(always)]
    unsafe fn lay_columns<L: Lanes<T>>(&self, depth: usize) {
        let (a, all) = (&self.all.p.a, self.all);
        let (first, apart, row) = (all.depths.start(self.k), all.a_depth, all.tiles.start(self.from));
        let rows = all.tiles.start(self.end) - row;
        for k in 0..depth {
            let from = a.data.wrapping_offset((first + k) as isize * a.cs).wrapping_add(row);
            let later = from.wrapping_offset(SOON * a.cs).cast::<u8>();
            (0..rows * size_of::<T>()).step_by(simd::CACHE_LINE).for_each(|at| simd::prefetch(later.wrapping_add(at)));
            for first in (0..rows).step_by(ROWS) {
                let tile = ROWS.min(rows - first);
                let to = self.to.add((row + first) * apart + k * tile).0;
                for j in (0..tile).step_by(L::N) {
                    // SAFETY: the numbers are in A's column, and the packed ones this task's; what is written beyond the rows
                    // is where the next column comes, or between the tiles.
                    unsafe { L::store(to.add(j), L::load_part(from.add(first + j), L::N.min(tile - j))) }
                }
            }
        }
    }
}

/// Copies `rows` rows of `n` numbers to rows `width` apart.
#[inline(always)]
unsafe fn lay<T: Real, L: Lanes<T>>(s: Side<T>, rows: usize, n: usize, to: *mut T, width: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if s.rs == 1 && s.cs >= 0 {
            let (src_stride, dst_stride) = (s.cs as usize, width);
            let block = TransposeBlock { src: s.data, src_stride, rows: n, cols: rows, dst: to, dst_stride };
            return transpose_all::<T, L>(block);
        }
        for r in 0..rows {
            let (from, to) = (s.data.wrapping_offset(r as isize * s.rs), to.add(r * width));
            if s.cs != 1 {
                (0..n).for_each(|j| *to.add(j) = *from.wrapping_offset(j as isize * s.cs));
                continue;
            }
            let whole = n / L::N * L::N;
            for j in (0..whole).step_by(L::N) {
                L::store(to.add(j), L::load(from.add(j)));
            }
            if whole < n {
                L::store_part(to.add(whole), L::load_part(from.add(whole), n - whole), n - whole);
            }
        }
    }
}
