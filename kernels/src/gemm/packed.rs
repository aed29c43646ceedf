//! Products of some size, in blocks of the inner dimension: B in panels of a few vectors, which are read where they lie, laid by the task
//! that reads them or laid first for all tasks; A packed where its rows do not lie in order. Each task makes a piece of C, in tiles that
//! stay in registers. Every sum is one chain over the inner dimension, whatever the pieces and the threads.

use super::pack::PackJob;
use super::panel::{PanelRows, PanelTiles, RowsLater};
use super::parts::{ColumnOrder, ColumnParts, PanelColumns};
use super::tile::written_out;
use super::{Dest, GemmProduct, Side};
use crate::array::Output;
use crate::array::scratch;
use crate::dtype::Real;
use crate::pool::tasks::SendPtr;
use crate::pool::{self, Pace};
use crate::simd;
use crate::simd::lanes::{Choose, Lanes, dispatch};
use std::ops::Range;

/// Rows of B in a block.
const DEPTH: usize = 384;
/// Rows of a tile.
pub(super) const ROWS: usize = 6;
/// Tiles of a task, of rows of [`DEPTH`]: A's rows stay in the second-level cache.
const TILES: usize = 28;
/// Multiplications that are worth a task, and numbers to pack.
const TASK: usize = 1 << 20;
const PACK: usize = 1 << 15;
/// Tasks for each thread, at most.
const TASKS: usize = 4;
/// Numbers of packed panels that a task keeps for all its rows, in the second-level cache beside A's.
const GROUP: usize = 1 << 17;
/// Rows of A, at most, that are turned in place of a larger B; the inner dimension that this needs, since C is turned, too; and a
/// block's rows then, so that this is done once for most.
const TURNED: usize = 256;
const TURNED_LEAST: usize = 256;
const TURNED_DEPTH: usize = 1024;
/// Columns between a packed tile of A and the next one: without them the same places of tiles would meet in few of the cache's sets,
/// and whole vectors could not be written where a column ends.
const APART: usize = 16;
/// Bytes of a B that is read where it lies, or rows of A.
const SMALL: usize = 64 << 10;
const FEW: usize = 12;
/// Rows of B that are read where they lie in a block, at least, where more rows of A need them.
const NEAR: usize = 128;
/// Sets of a second-level cache, and half of the lines of one: as small as those of processors with vectors of 64 bytes are.
const SETS: usize = 2048;
const SET: usize = 4;

/// C = A B, or +=, on all threads or the caller's alone.
///
/// # Safety
/// As the methods of a product.
pub(super) unsafe fn run<T: Real>(p: GemmProduct<T>, output: Output, shared: bool) {
    // Columns of B that lie in order are the rows of a turned product, in which few rows of A are packed instead.
    let is_less = p.k >= TURNED_LEAST && p.m <= TURNED.min(p.k / 2).min(p.n / 2);
    let is_turned = is_less && p.c.cs == 1 && p.b.rs == 1 && p.b.cs >= 0 && rows_in_order(p.a);
    let p = if is_turned { p.transposed() } else { p };
    dispatch(Packed { p, parts: ColumnParts::ONE, begins: None, output, shared });
}

/// C = A B on all threads, or +=, with columns in parts; or each row of C begins with a number, to which its products are added.
///
/// # Safety
/// As the methods of a product; B's rows lie in order, and so do C's. There is a number for each row.
pub(super) unsafe fn run_parts<T: Real>(
    p: GemmProduct<T>,
    parts: ColumnParts,
    begins: Option<*const T>,
    output: Output,
) {
    dispatch(Packed { p, parts, begins, output, shared: true });
}

struct Packed<T> {
    p: GemmProduct<T>,
    parts: ColumnParts,
    begins: Option<*const T>,
    output: Output,
    shared: bool,
}

impl<T: Real> Choose<T> for Packed<T> {
    fn with<L: Lanes<T>>(self) {
        let Packed { p, parts, begins, output, shared } = self;
        // A thread keeps what is packed at a time: no more than that, and at least a block of rows and columns.
        let packs_a = !rows_in_order(p.a);
        let room = scratch::KEEP / size_of::<T>() / if packs_a { DEPTH + APART } else { DEPTH };
        let rows = if packs_a { room / 2 / ROWS * ROWS } else { p.m };
        let columns = if parts.each < p.n || is_own::<T, L>(p.m.min(rows), p.n, shared) {
            p.n
        } else {
            (room - if packs_a { rows } else { 0 }) / 64 * 64
        };
        let (rows, columns) = (Cut::at_most(p.m, rows), Cut::at_most(p.n.div_ceil(64), columns.div_ceil(64)));
        for i in 0..rows.pieces {
            for j in 0..columns.pieces {
                let (from, end) = (columns.start(j) * 64, (columns.start(j + 1) * 64).min(p.n));
                let p = p.tile(rows.start(i), from, rows.size(i), end - from);
                let begins = begins.map(|row| row.wrapping_add(rows.start(i)));
                Blocks::<T>::new::<L>(Packed { p, parts, begins, output, shared }).run::<L>();
            }
        }
    }
}

/// Whether the rows of an operand lie in order.
fn rows_in_order<T>(s: Side<T>) -> bool {
    s.cs == 1 && s.rs >= 0
}

/// Whether each task packs the panels that it reads: where rows are few, or panels many for the threads.
fn is_own<T: Real, L: Lanes<T>>(m: usize, n: usize, shared: bool) -> bool {
    let (panels, threads) = (n.div_ceil(vectors::<T, L>() * L::N), threads(shared));
    panels >= TASKS * threads || threads == 1 || (RowTiles(m).count() <= TILES && panels >= threads)
}

/// Tiles of a task, of rows of `depth` numbers.
fn most_tiles(depth: usize) -> usize {
    TILES * DEPTH / depth.clamp(1, DEPTH)
}

/// Threads that share a product.
fn threads(shared: bool) -> usize {
    if shared { pool::num_threads() } else { 1 }
}

/// Rows of B, of which a panel's columns stay in the second-level cache where they lie.
fn near_rows<T: Real, L: Lanes<T>>(b: Side<T>) -> usize {
    // Rows begin at so many sets: few of them where they are a large power of two apart.
    let (way, mut stride) = (SETS * simd::CACHE_LINE, b.rs as usize * size_of::<T>());
    stride = 1 << stride.trailing_zeros().min(way.trailing_zeros());
    let lines = (vectors::<T, L>() * L::N * size_of::<T>()).div_ceil(simd::CACHE_LINE);
    let starts = way / stride.max(simd::CACHE_LINE);
    (starts * lines).min(SETS) * SET / lines
}

/// Vectors of a tile, so that its sums fit the registers.
#[inline(always)]
pub(super) const fn vectors<T: Real, L: Lanes<T>>() -> usize {
    if L::ROWS > ROWS { 4 } else { 2 }
}

/// `n` rows cut into tiles, of which the last one is what is left.
#[derive(Clone, Copy)]
pub(super) struct RowTiles(usize);

impl RowTiles {
    fn count(self) -> usize {
        self.0.div_ceil(ROWS)
    }

    pub(super) fn start(self, i: usize) -> usize {
        (i * ROWS).min(self.0)
    }

    pub(super) fn size(self, i: usize) -> usize {
        self.start(i + 1) - self.start(i)
    }
}

/// `n` things cut into pieces of nearly equal size, the larger ones first.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    n: usize,
    pieces: usize,
}

impl Cut {
    fn at_most(n: usize, size: usize) -> Cut {
        Cut { n, pieces: n.div_ceil(size).max(1) }
    }

    pub(super) fn start(self, i: usize) -> usize {
        i * (self.n / self.pieces) + i.min(self.n % self.pieces)
    }

    pub(super) fn size(self, i: usize) -> usize {
        self.start(i + 1) - self.start(i)
    }
}

/// Where the panels of B are.
#[derive(Clone, Copy, PartialEq)]
enum PanelPlace {
    /// They are read where B lies, but for what is no whole vector.
    InPlace,
    /// Each is packed by the one task that reads it, which has it in its cache then: where B's rows lie in order, by the first tile
    /// that reads it.
    Own,
    /// Packed for all tasks.
    Shared,
}

/// A product of which a block is packed whole.
pub(super) struct Blocks<T> {
    pub(super) p: GemmProduct<T>,
    pub(super) parts: ColumnParts,
    pub(super) order: ColumnOrder,
    begins: Option<*const T>,
    output: Output,
    shared: bool,
    /// The inner dimension in blocks, rows in tiles, the columns' vectors in panels.
    pub(super) depths: Cut,
    pub(super) tiles: RowTiles,
    pub(super) panels: Cut,
    place: PanelPlace,
    /// Numbers between the packed rows of A.
    pub(super) a_depth: usize,
    /// Numbers of A and of B that are packed in a block for all tasks.
    a_size: usize,
    b_size: usize,
}

// SAFETY: a description; what its tasks write is apart.
unsafe impl<T: Sync> Sync for Blocks<T> {}

impl<T: Real> Blocks<T> {
    fn new<L: Lanes<T>>(Packed { p, parts, begins, output, shared }: Packed<T>) -> Self {
        let (tiles, all) = (RowTiles(p.m), p.n.div_ceil(L::N));
        let panels = Cut::at_most(all, vectors::<T, L>());
        let order = ColumnOrder::new(parts, vectors::<T, L>() * L::N);
        let is_small = p.m <= FEW || p.k.saturating_mul(p.n * size_of::<T>()) <= SMALL;
        let is_panel = panels.pieces == 1 && p.b.rs == p.n as isize;
        // Where C's old numbers are among a sum, its blocks' sums are added one after another: those blocks are fixed.
        let (lies, near) = (rows_in_order(p.b), near_rows::<T, L>(p.b));
        let least = if output == Output::Accumulate { DEPTH } else { NEAR };
        let is_aligned = [p.b.data.addr(), p.b.rs as usize * size_of::<T>()].iter().all(|n| n % simd::CACHE_LINE == 0);
        let is_near = tiles.count() <= TILES && is_aligned && near >= least.min(p.k);
        let place = match lies {
            true if is_small || is_panel || is_near => PanelPlace::InPlace,
            _ if parts.each < p.n || is_own::<T, L>(p.m, p.n, shared) => PanelPlace::Own,
            _ => PanelPlace::Shared,
        };
        let depth = match place {
            PanelPlace::InPlace if is_near => near.min(DEPTH),
            _ if p.c.cs != 1 && output == Output::Write && p.n <= TURNED && rows_in_order(p.a) => TURNED_DEPTH,
            _ => DEPTH,
        };
        let depths = Cut::at_most(p.k, depth);
        let a_depth = depths.size(0) + APART;
        let a_size = if rows_in_order(p.a) { 0 } else { scratch::line::<T>(p.m * a_depth) };
        let b_size = if place == PanelPlace::Shared { all * L::N * depths.size(0) } else { 0 };
        Blocks { p, parts, order, begins, output, shared, depths, tiles, panels, place, a_depth, a_size, b_size }
    }

    fn share(&self, tasks: usize, f: &(dyn Fn(usize) + Sync)) {
        if self.shared { pool::run(tasks, f) } else { (0..tasks).for_each(f) }
    }

    fn run<L: Lanes<T>>(&self) {
        let block = self.a_size + self.b_size;
        let together = (scratch::KEEP / size_of::<T>() / block.max(1)).clamp(1, self.depths.pieces);
        scratch::with(together * block, |packed: &mut [T]| {
            let packed = SendPtr(packed.as_mut_ptr());
            for first in (0..self.depths.pieces).step_by(together) {
                let blocks = together.min(self.depths.pieces - first);
                self.pack::<L>(packed, first, blocks);
                self.multiply::<L>(packed, first, blocks);
            }
        });
    }

    /// Packs blocks from `first` on.
    fn pack<L: Lanes<T>>(&self, packed: SendPtr<T>, first: usize, blocks: usize) {
        let depth = self.depths.size(0);
        let pieces = |size: usize, n: usize, each: usize| {
            let n = if size == 0 { 0 } else { n };
            Cut { n, pieces: n.div_ceil((PACK / (depth * each).max(1)).max(1)) }
        };
        let a = pieces(self.a_size, self.tiles.count(), ROWS);
        let b = pieces(self.b_size, self.panels.pieces, vectors::<T, L>() * L::N);
        let each = a.pieces + b.pieces;
        self.share(blocks * each, &|task| {
            let (block, task) = (task / each, task % each);
            let (k, to) = (first + block, packed.add(block * (self.a_size + self.b_size)));
            let job = match task.checked_sub(a.pieces) {
                None => PackJob { all: self, k, to, from: a.start(task), end: a.start(task + 1), of_a: true },
                Some(task) => {
                    let to = to.add(self.a_size);
                    PackJob { all: self, k, to, from: b.start(task), end: b.start(task + 1), of_a: false }
                }
            };
            // SAFETY: L is what the machine has; tasks write tiles and panels of their own.
            unsafe { L::enter(job) }
        });
    }

    /// Tiles and panels in pieces, of which tasks have one each; but all tiles, where a task packs the panels, `numbers` each.
    fn cut(&self, numbers: usize, blocks: usize) -> (Cut, Cut) {
        let (tiles, panels, threads) = (self.tiles.count(), self.panels.pieces, threads(self.shared));
        let work = self.p.m * self.p.n * self.depths.size(0) * blocks;
        let tasks = if threads > 1 { (work / TASK).clamp(1, TASKS * threads) } else { 1 };
        let mut rows = Cut::at_most(tiles, most_tiles(self.depths.size(0)));
        let columns = if self.place == PanelPlace::Own {
            let kept = if rows.pieces > 1 { (GROUP / numbers).max(1) } else { panels };
            tasks.max(panels.div_ceil(kept)).min(panels)
        } else {
            let columns = (tasks / rows.pieces).clamp(1, panels);
            rows.pieces = (tasks / columns).clamp(rows.pieces, tiles);
            columns
        };
        (rows, Cut { n: panels, pieces: columns })
    }

    /// Adds the products of packed blocks from `first` on to C.
    fn multiply<L: Lanes<T>>(&self, packed: SendPtr<T>, first: usize, blocks: usize) {
        let (is_own, width, largest) = (self.place == PanelPlace::Own, vectors::<T, L>() * L::N, self.depths.size(0));
        let (rows, columns) = self.cut(width * largest, blocks);
        self.share(if is_own { 1 } else { rows.pieces } * columns.pieces, &|task| {
            let (i, j) = (task / columns.pieces, task % columns.pieces);
            let pieces = if is_own { 0..rows.pieces } else { i..i + 1 };
            let (k, panels) = (first..first + blocks, columns.start(j)..columns.start(j + 1));
            // Panels, sums of a tile that is no whole one, and zeros.
            let kept = if pieces.len() > 1 { panels.len() } else { 1 };
            let own = if self.place == PanelPlace::Shared { 0 } else { kept * width * largest };
            scratch::with(own + (ROWS + 1) * width, |room: &mut [T]| {
                let (own, room) = room.split_at_mut(own);
                let (sums, zeros) = room.split_at_mut(ROWS * width);
                zeros.fill(T::ZERO);
                let mut pace = Pace::new();
                for (k, piece, panel) in k.clone().flat_map(|k| {
                    let panels = panels.clone();
                    pieces.clone().flat_map(move |piece| panels.clone().map(move |panel| (k, piece, panel)))
                }) {
                    pace.step(rows.size(piece) * ROWS * width * self.depths.size(k));
                    let packed = packed.add((k - first) * (self.a_size + self.b_size));
                    // The task after this one is the next panel's.
                    let next = match panel + 1 < panels.end {
                        true if piece > pieces.start => None,
                        true => Some((k, panel + 1)),
                        false if piece + 1 < pieces.end => None,
                        false if k + 1 < first + blocks => Some((k + 1, panels.start)),
                        false => Some((first, panel + 1)),
                    };
                    let own = if kept > 1 { &mut own[(panel - panels.start) * width * largest..] } else { &mut *own };
                    let is_laid = piece > pieces.start;
                    let w = self.panel::<L>([k, panel, rows.start(piece)], packed, own, is_laid);
                    let tiles = rows.start(piece)..rows.start(piece + 1);
                    let tiles =
                        self.tiles_of::<L>([k, panel], tiles, packed, w, next, (sums.as_mut_ptr(), zeros.as_ptr()));
                    // SAFETY: L is what the machine has; the block is packed, and the tiles' numbers in C are this task's.
                    unsafe { L::enter(tiles) }
                }
            });
        });
    }

    /// The rows of the panel after this one, if that is read where it lies.
    fn rows_later<L: Lanes<T>>(&self, next: Option<(usize, usize)>) -> Option<RowsLater<T>> {
        let (k, panel) = next.filter(|&(_, panel)| self.is_read_there::<L>(panel))?;
        let first = self.rows_in_place::<L>(k, panel);
        let width = self.panels.size(panel) * L::N;
        Some(RowsLater { first, stride: self.p.b.rs as usize, rows: self.depths.size(k), width })
    }

    /// Whether a tile reads a panel where it lies in B.
    fn is_read_there<L: Lanes<T>>(&self, panel: usize) -> bool {
        if panel >= self.panels.pieces {
            return false;
        }
        let (from, width) = (self.panels.start(panel) * L::N, self.panels.size(panel) * L::N);
        let is_there = from + width <= self.p.n && self.order.run(from, width).count == width;
        match self.place {
            PanelPlace::InPlace => is_there,
            PanelPlace::Own => {
                let is_whole = self.panels.size(panel) == vectors::<T, L>() && self.tiles.size(0) == ROWS;
                is_there && is_whole && written_out::<T, L>() && rows_in_order(self.p.b)
            }
            PanelPlace::Shared => false,
        }
    }

    /// A panel's first row in B.
    fn rows_in_place<L: Lanes<T>>(&self, k: usize, panel: usize) -> *const T {
        let (b, from) = (self.p.b, self.depths.start(k) as isize);
        let run = self.order.run(self.panels.start(panel) * L::N, 1);
        b.data.wrapping_offset(from * b.rs).wrapping_add(run.part * self.parts.b + run.first)
    }

    /// A panel, as the first tile is to read it; `own` is the place for one, which may have it already.
    fn panel<L: Lanes<T>>(
        &self,
        [k, panel, tile]: [usize; 3],
        packed: SendPtr<T>,
        own: &mut [T],
        is_laid: bool,
    ) -> PanelRows<T> {
        let column = self.panels.start(panel) * L::N;
        let (width, start) = (self.panels.size(panel) * L::N, column * self.depths.size(0));
        let there = PanelRows { w: self.rows_in_place::<L>(k, panel), w_stride: self.p.b.rs as usize, lay: None };
        let (is_there, is_whole) = (self.is_read_there::<L>(panel), self.tiles.size(tile) == ROWS);
        match self.place {
            PanelPlace::InPlace if is_there => there,
            PanelPlace::Shared => {
                PanelRows { w: packed.add(self.a_size + start).0.cast_const(), w_stride: width, lay: None }
            }
            PanelPlace::Own if is_there && is_whole && !is_laid => PanelRows { lay: Some(own.as_mut_ptr()), ..there },
            PanelPlace::InPlace | PanelPlace::Own => {
                if !is_laid {
                    let to = SendPtr(own.as_mut_ptr().wrapping_sub(start));
                    // SAFETY: L is what the machine has; there is room for a panel.
                    unsafe { L::enter(PackJob { all: self, k, to, from: panel, end: panel + 1, of_a: false }) }
                }
                PanelRows { w: own.as_ptr(), w_stride: width, lay: None }
            }
        }
    }

    /// Some tiles of a panel, in one block, before the panel `next`.
    fn tiles_of<L: Lanes<T>>(
        &self,
        [k, panel]: [usize; 2],
        tiles: Range<usize>,
        packed: SendPtr<T>,
        w: PanelRows<T>,
        next: Option<(usize, usize)>,
        (sums, zeros): (*mut T, *const T),
    ) -> PanelTiles<T> {
        let (GemmProduct { a, c, n, .. }, row) = (self.p, self.tiles.start(tiles.start));
        let (column, vectors) = (self.panels.start(panel) * L::N, self.panels.size(panel));
        let n = (vectors * L::N).min(n - column);
        let columns = PanelColumns::new(self.order, column, n);
        let (x, x_row, x_tile) = match self.a_size {
            0 => {
                (a.data.wrapping_offset(row as isize * a.rs + self.depths.start(k) as isize), Some(a.rs as usize), a.rs)
            }
            _ => (packed.add(row * self.a_depth).0.cast_const(), None, self.a_depth as isize),
        };
        PanelTiles {
            x,
            x_row,
            x_tile: x_tile as usize * ROWS,
            rows: self.tiles.start(tiles.end) - row,
            depth: self.depths.size(k),
            c: Dest { data: c.data.wrapping_offset(row as isize * c.rs + columns.run.place(self.parts.c, c.cs)), ..c },
            columns,
            apart: self.parts.c,
            panel: w,
            vectors,
            begins: self.begins.filter(|_| k == 0).map(|rows| rows.wrapping_add(row)),
            // What earlier blocks gave begins the sums, but where C's old numbers are among it.
            begun: k > 0 && self.output == Output::Write,
            adds: self.output == Output::Accumulate,
            later: self.rows_later::<L>(next),
            sums,
            zeros,
        }
    }
}
