//! The tiles of a panel, one below the other, and what goes between a tile and C where it is no whole one.

use super::Dest;
use super::packed::{ROWS, vectors};
use super::parts::PanelColumns;
use super::strip::{ProductTile, STEPS};
use super::tile::NextRows;
use crate::dtype::Real;
use crate::simd;
use crate::simd::lanes::{Lanes, TransposeBlock, WithLanes, transpose_or_add};

/// Rows of a panel, one for each step.
#[derive(Clone, Copy)]
pub(super) struct PanelRows<T> {
    pub(super) w: *const T,
    pub(super) w_stride: usize,
    /// Where a whole tile lays them, one after another.
    pub(super) lay: Option<*mut T>,
}

impl<T: Real> PanelRows<T> {
    /// The rows, once a whole tile has laid them.
    pub(super) fn laid<L: Lanes<T>>(self) -> PanelRows<T> {
        match self.lay {
            Some(w) => PanelRows { w, w_stride: vectors::<T, L>() * L::N, lay: None },
            None => self,
        }
    }
}

/// Rows of the panel that comes after this one.
#[derive(Clone, Copy)]
pub(super) struct RowsLater<T> {
    pub(super) first: *const T,
    pub(super) stride: usize,
    pub(super) rows: usize,
    pub(super) width: usize,
}

impl<T> RowsLater<T> {
    /// Those that a tile asks for: as many as it has time for.
    fn of_tile(&self, tile: usize, depth: usize) -> Option<NextRows> {
        let pairs = (self.width * size_of::<T>()).div_ceil(2 * simd::CACHE_LINE);
        let each = (depth / STEPS).saturating_sub(ROWS * pairs) / pairs;
        let (from, rows) = (tile * each, each.min(self.rows.saturating_sub(tile * each)));
        let first = self.first.wrapping_add(from * self.stride);
        (rows > 0).then(|| NextRows::new(first, self.stride, rows, self.width))
    }
}

/// Tiles of a panel in one block: `rows` rows of A, and as many numbers of C's columns.
pub(super) struct PanelTiles<T> {
    pub(super) x: *const T,
    /// Distance of A's rows where they lie in order; None where its columns do, in tiles.
    pub(super) x_row: Option<usize>,
    /// Distance of tiles.
    pub(super) x_tile: usize,
    pub(super) rows: usize,
    pub(super) depth: usize,
    pub(super) panel: PanelRows<T>,
    pub(super) vectors: usize,
    /// C's first number, and its columns.
    pub(super) c: Dest<T>,
    pub(super) columns: PanelColumns,
    /// Distance of C's parts.
    pub(super) apart: usize,
    /// What rows begin with, a number for each.
    pub(super) begins: Option<*const T>,
    /// C has the sums of earlier blocks.
    pub(super) begun: bool,
    pub(super) adds: bool,
    pub(super) later: Option<RowsLater<T>>,
    /// Memory for a tile that is no whole one, and a row of zeros.
    pub(super) sums: *mut T,
    pub(super) zeros: *const T,
}

impl<T: Real> WithLanes<T> for PanelTiles<T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let width = self.vectors * L::N;
        let is_whole = self.columns.n == width && self.c.cs == 1 && self.columns.is_one();
        let mut panel = self.panel;
        for tile in 0..self.rows.div_ceil(ROWS) {
            let row = tile * ROWS;
            let rows = ROWS.min(self.rows - row);
            let c = Dest { data: self.c.data.wrapping_offset(row as isize * self.c.rs), ..self.c };
            let in_place = is_whole && (!self.adds || rows == ROWS);
            let (out, out_stride) = if in_place { (c.data, c.rs as usize) } else { (self.sums, width) };
            let (init, init_stride) = match self.begins {
                Some(_) => (self.sums.cast_const(), width),
                None if self.begun => (out.cast_const(), out_stride),
                None => (self.zeros, 0),
            };
            let below = c.data.wrapping_offset(rows as isize * c.rs);
            let later = self.later.and_then(|later| later.of_tile(tile, self.depth));
            let product = ProductTile {
                x: self.x.wrapping_add(tile * self.x_tile),
                x_row: self.x_row,
                rows,
                depth: self.depth,
                panel,
                vectors: self.vectors,
                init,
                init_stride,
                out,
                out_stride,
                adds: self.adds && in_place,
                next: NextRows::new(below.cast_const(), c.rs as usize, rows, width),
                later: later.unwrap_or(NextRows::nothing(self.zeros.cast())),
            };
            let edge = Edge { sums: self.sums, width, columns: self.columns, apart: self.apart, rows, c };
            // SAFETY: the caller's promise.
            unsafe {
                if let Some(begins) = self.begins {
                    for p in 0..rows {
                        let begin = L::splat(*begins.add(row + p));
                        (0..self.vectors).for_each(|v| L::store(self.sums.add(p * width + v * L::N), begin));
                    }
                } else if self.begun && !in_place {
                    L::enter(EdgeJob(edge, EdgeStep::Read));
                }
                product.call::<L>();
                if !in_place {
                    L::enter(EdgeJob(edge, if self.adds { EdgeStep::Add } else { EdgeStep::Write }));
                }
            }
            panel = panel.laid::<L>();
        }
    }
}

/// Rows of sums beside those of C that they belong to.
#[derive(Clone, Copy)]
struct Edge<T> {
    sums: *mut T,
    width: usize,
    columns: PanelColumns,
    apart: usize,
    rows: usize,
    c: Dest<T>,
}

/// The sums are read from C, written to it, or added to it.
#[derive(Clone, Copy)]
enum EdgeStep {
    Read,
    Write,
    Add,
}

/// A call of its own: it is rare, and not small.
struct EdgeJob<T>(Edge<T>, EdgeStep);

impl<T: Real> WithLanes<T> for EdgeJob<T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let EdgeJob(Edge { sums, width, columns, apart, rows, c }, step) = self;
        if c.cs != 1 {
            // C is a turned one: its rows lie side by side.
            let (tile, turned) = ((sums, width), (c.data, c.cs as usize));
            let ((src, src_stride), [rows, cols], (dst, dst_stride)) = match step {
                EdgeStep::Read => (turned, [columns.n, rows], tile),
                EdgeStep::Write | EdgeStep::Add => (tile, [rows, columns.n], turned),
            };
            let block = TransposeBlock { src: src.cast_const(), src_stride, rows, cols, dst, dst_stride };
            // SAFETY: the numbers are in C's rows, and those of the sums.
            return unsafe { transpose_or_add::<T, L>(block, matches!(step, EdgeStep::Add)) };
        }
        let (mut columns, start) = (columns, columns.run.place(apart, 1));
        loop {
            let (count, place) = (columns.run.count, columns.run.place(apart, 1));
            let (sums, to) = (sums.wrapping_add(columns.at), c.data.wrapping_offset(place - start));
            for i in 0..rows {
                let (sums, c_row) = (sums.wrapping_add(i * width), to.wrapping_offset(i as isize * c.rs));
                for j in (0..count).step_by(L::N) {
                    let (sums, c) = (sums.wrapping_add(j), c_row.wrapping_add(j));
                    // SAFETY: the numbers are in row i of C, and after the last row of sums there is one of zeros.
                    unsafe {
                        let some = L::mask(0, L::N.min(count - j));
                        match step {
                            EdgeStep::Read => L::store_masked(sums, some, L::load_masked(c, some)),
                            EdgeStep::Write => L::store_masked(c, some, L::load(sums)),
                            EdgeStep::Add => {
                                let sum = L::fma(L::load_masked(c, some), L::splat(T::ONE), L::load(sums));
                                L::store_masked(c, some, sum);
                            }
                        }
                    }
                }
            }
            if !columns.step() {
                return;
            }
        }
    }
}
