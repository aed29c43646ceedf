//! Products of some size: blocks of the inner dimension, of which B is first laid in panels of a few vectors, once for all tasks, and A
//! where its rows do not lie in order; then each task makes a piece of C, in tiles that stay in registers. Every sum is one chain over
//! the inner dimension, whatever the pieces.

use super::strip::{Edge, EdgeJob, EdgeStep, ProductTile};
use super::tile::NextRows;
use super::{Dest, GemmProduct, Side};
use crate::array::Output;
use crate::array::scratch;
use crate::dtype::Real;
use crate::pool;
use crate::pool::tasks::SendPtr;
use crate::simd;
use crate::simd::lanes::{Choose, Lanes, TransposeBlock, WithLanes, dispatch, transpose_all};

/// Rows of B in a block.
const DEPTH: usize = 384;
/// Rows of a tile.
pub(super) const ROWS: usize = 6;
/// Tiles of a task: A's rows stay in the second-level cache.
const TILES: usize = 28;
/// Multiplications that are worth a task, and numbers to pack.
const TASK: usize = 1 << 20;
const PACK: usize = 1 << 15;
/// Columns between a packed tile of A and the next one: without them the same places of tiles would meet in few of the cache's sets,
/// and whole vectors could not be written where a column ends.
const APART: usize = 16;
/// Columns that A is read ahead, where they lie far apart.
const SOON: isize = 8;
/// Bytes of a B that is read where it lies, or rows of A.
const SMALL: usize = 64 << 10;
const FEW: usize = 12;

/// C = A B, or +=, on all threads or the caller's alone.
///
/// # Safety
/// As the methods of a product.
pub(super) unsafe fn run<T: Real>(p: GemmProduct<T>, output: Output, shared: bool) {
    dispatch(Packed { p, output, shared });
}

struct Packed<T> {
    p: GemmProduct<T>,
    output: Output,
    shared: bool,
}

impl<T: Real> Choose<T> for Packed<T> {
    fn with<L: Lanes<T>>(self) {
        let Packed { p, output, shared } = self;
        // A thread keeps what is packed at a time: no more than that, and at least a block of rows and columns.
        let packs_a = !rows_in_order(p.a);
        let room = scratch::KEEP / size_of::<T>() / if packs_a { DEPTH + APART } else { DEPTH };
        let rows = if packs_a { room / 2 / ROWS * ROWS } else { p.m };
        let is_own = p.m.min(rows).div_ceil(ROWS) <= TILES;
        let columns = if is_own { p.n } else { (room - if packs_a { rows } else { 0 }) / 64 * 64 };
        let (rows, columns) = (Cut::at_most(p.m, rows), Cut::at_most(p.n.div_ceil(64), columns.div_ceil(64)));
        for i in 0..rows.pieces {
            for j in 0..columns.pieces {
                let (from, end) = (columns.start(j) * 64, (columns.start(j + 1) * 64).min(p.n));
                let p = p.tile(rows.start(i), from, rows.size(i), end - from);
                Blocks::<T>::new::<L>(p, output, shared).run::<L>();
            }
        }
    }
}

/// Whether the rows of an operand lie in order.
fn rows_in_order<T>(s: Side<T>) -> bool {
    s.cs == 1 && s.rs >= 0
}

/// Vectors of a tile, so that its sums fit the registers.
#[inline(always)]
pub(super) const fn vectors<T: Real, L: Lanes<T>>() -> usize {
    if L::ROWS > ROWS { 4 } else { 2 }
}

/// `n` things cut into pieces of nearly equal size, the larger ones first.
#[derive(Clone, Copy)]
struct Cut {
    n: usize,
    pieces: usize,
}

impl Cut {
    fn at_most(n: usize, size: usize) -> Cut {
        Cut { n, pieces: n.div_ceil(size).max(1) }
    }

    fn start(self, i: usize) -> usize {
        i * (self.n / self.pieces) + i.min(self.n % self.pieces)
    }

    fn size(self, i: usize) -> usize {
        self.start(i + 1) - self.start(i)
    }
}

/// Where the panels of B are.
#[derive(Clone, Copy, PartialEq)]
enum PanelPlace {
    /// They are read where B lies.
    InPlace,
    /// Each is packed by the one task that reads it, which has it in its cache then.
    Own,
    /// Packed for all tasks.
    Shared,
}

/// A product of which a block is packed whole.
struct Blocks<T> {
    p: GemmProduct<T>,
    output: Output,
    shared: bool,
    /// The inner dimension in blocks, rows in tiles, the columns' vectors in panels.
    depths: Cut,
    tiles: Cut,
    panels: Cut,
    place: PanelPlace,
    /// Numbers between the packed rows of A.
    a_depth: usize,
    /// Numbers of A and of B that are packed in a block for all tasks.
    a_size: usize,
    b_size: usize,
}

// SAFETY: a description; what its tasks write is apart.
unsafe impl<T: Sync> Sync for Blocks<T> {}

impl<T: Real> Blocks<T> {
    fn new<L: Lanes<T>>(p: GemmProduct<T>, output: Output, shared: bool) -> Self {
        let (depths, all) = (Cut::at_most(p.k, DEPTH), p.n.div_ceil(L::N));
        let is_small = p.m <= FEW || p.k.saturating_mul(p.n * size_of::<T>()) <= SMALL;
        let a_depth = depths.size(0) + APART;
        let a_size = if rows_in_order(p.a) { 0 } else { scratch::line::<T>(p.m * a_depth) };
        let (tiles, panels) = (Cut::at_most(p.m, ROWS), Cut::at_most(all, vectors::<T, L>()));
        let is_panel = panels.pieces == 1 && p.b.rs == p.n as isize;
        let place = match rows_in_order(p.b) && p.n.is_multiple_of(L::N) && (is_small || is_panel) {
            true => PanelPlace::InPlace,
            false if tiles.pieces <= TILES => PanelPlace::Own,
            false => PanelPlace::Shared,
        };
        let b_size = if place == PanelPlace::Shared { all * L::N * depths.size(0) } else { 0 };
        Blocks { p, output, shared, depths, tiles, panels, place, a_depth, a_size, b_size }
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
        let pieces = |size: usize, cut: Cut, each: usize| {
            let n = if size == 0 { 0 } else { cut.pieces };
            Cut { n, pieces: n.div_ceil((PACK / (depth * each)).max(1)) }
        };
        let (a, b) =
            (pieces(self.a_size, self.tiles, ROWS), pieces(self.b_size, self.panels, vectors::<T, L>() * L::N));
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

    /// Adds the products of packed blocks from `first` on to C.
    fn multiply<L: Lanes<T>>(&self, packed: SendPtr<T>, first: usize, blocks: usize) {
        let rows = Cut::at_most(self.tiles.pieces, TILES);
        let work = self.p.m * self.p.n * self.depths.size(0) * blocks;
        let columns = Cut { n: self.panels.pieces, pieces: (work / TASK / rows.pieces).clamp(1, self.panels.pieces) };
        self.share(rows.pieces * columns.pieces, &|task| {
            let (i, j) = (task / columns.pieces, task % columns.pieces);
            // A panel, sums of a tile that is no whole one, and zeros.
            let (width, largest) = (vectors::<T, L>() * L::N, self.depths.size(0));
            let own = if self.place == PanelPlace::Own { width * largest } else { 0 };
            scratch::with(own + (ROWS + 1) * width, |room: &mut [T]| {
                let (own, room) = room.split_at_mut(own);
                let (sums, zeros) = room.split_at_mut(ROWS * width);
                zeros.fill(T::ZERO);
                for k in first..first + blocks {
                    let packed = packed.add((k - first) * (self.a_size + self.b_size));
                    for panel in columns.start(j)..columns.start(j + 1) {
                        let w = self.panel::<L>(k, panel, packed, own);
                        for tile in rows.start(i)..rows.start(i + 1) {
                            // SAFETY: the block is packed; the tile's numbers in C are this task's.
                            unsafe { self.tile::<L>([k, tile, panel], packed, w, sums, zeros) }
                        }
                    }
                }
            });
        });
    }

    /// Where a panel is in a block, and the distance of its rows.
    fn panel<L: Lanes<T>>(&self, k: usize, panel: usize, packed: SendPtr<T>, own: &mut [T]) -> (*const T, usize) {
        let (column, b) = (self.panels.start(panel) * L::N, self.p.b);
        let (width, start) = (self.panels.size(panel) * L::N, column * self.depths.size(0));
        match self.place {
            PanelPlace::InPlace => {
                let from = self.depths.start(k) as isize;
                (b.data.wrapping_offset(from * b.rs).wrapping_add(column), b.rs as usize)
            }
            PanelPlace::Own => {
                let to = SendPtr(own.as_mut_ptr().wrapping_sub(start));
                // SAFETY: L is what the machine has; there is room for a panel.
                unsafe { L::enter(PackJob { all: self, k, to, from: panel, end: panel + 1, of_a: false }) }
                (own.as_ptr(), width)
            }
            PanelPlace::Shared => (packed.add(self.a_size + start).0.cast_const(), width),
        }
    }

    /// One tile of C, in one block.
    unsafe fn tile<L: Lanes<T>>(
        &self,
        [k, tile, panel]: [usize; 3],
        packed: SendPtr<T>,
        (w, w_stride): (*const T, usize),
        sums: &mut [T],
        zeros: &[T],
    ) {
        let GemmProduct { a, c, .. } = self.p;
        let (depth, from) = (self.depths.size(k), self.depths.start(k) as isize);
        let (row, rows, vectors) = (self.tiles.start(tile), self.tiles.size(tile), self.panels.size(panel));
        let (column, width) = (self.panels.start(panel) * L::N, vectors * L::N);
        let n = width.min(self.p.n - column);
        let (x, x_row) = match self.a_size {
            0 => (a.data.wrapping_offset(row as isize * a.rs + from), Some(a.rs as usize)),
            _ => (packed.add(row * self.a_depth).0.cast_const(), None),
        };
        let c = Dest { data: c.data.wrapping_offset(row as isize * c.rs + column as isize * c.cs), ..c };
        let adds = self.output == Output::Accumulate;
        let in_place = n == width && c.cs == 1 && (!adds || rows == ROWS);
        let (out, out_stride) = if in_place { (c.data, c.rs as usize) } else { (sums.as_mut_ptr(), width) };
        // What earlier blocks gave begins the sums, but where C's old numbers are among it.
        let begun = k > 0 && !adds;
        let (init, init_stride) = if begun { (out.cast_const(), out_stride) } else { (zeros.as_ptr(), 0) };
        let below = c.data.wrapping_offset(rows as isize * c.rs);
        let next = NextRows::new(below.cast_const(), c.rs as usize, rows, width).written();
        let edge = Edge { sums: sums.as_mut_ptr(), width, n, rows, c };
        let strip = ProductTile {
            x,
            x_row,
            rows,
            depth,
            w,
            w_stride,
            vectors,
            init,
            init_stride,
            out,
            out_stride,
            adds: adds && in_place,
            next,
        };
        // SAFETY: the caller's promise.
        unsafe {
            if begun && !in_place {
                L::enter(EdgeJob(edge, EdgeStep::Read));
            }
            L::enter(strip);
            if !in_place {
                L::enter(EdgeJob(edge, if adds { EdgeStep::Add } else { EdgeStep::Write }));
            }
        }
    }
}

/// Tiles of A, or panels of B, of block `k`.
struct PackJob<'a, T> {
    all: &'a Blocks<T>,
    k: usize,
    to: SendPtr<T>,
    from: usize,
    end: usize,
    of_a: bool,
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
            let (s, start, width, n) = if self.of_a {
                let (start, rows) = (self.all.tiles.start(i), self.all.tiles.size(i));
                (Side { data: p.a.data, rs: p.a.cs, cs: p.a.rs }, start, rows, rows)
            } else {
                let (start, width) = (self.all.panels.start(i) * L::N, self.all.panels.size(i) * L::N);
                (p.b, start, width, width.min(p.n - start))
            };
            let from = s.data.wrapping_offset(first * s.rs + start as isize * s.cs);
            let to = self.to.add(start * apart).0;
            // SAFETY: rows and columns are in A and B, and the packed ones this task's.
            unsafe { lay::<T, L>(Side { data: from, ..s }, depth, n, to, width) }
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
        let bytes = (all.tiles.start(self.end) - row) * size_of::<T>();
        let last = all.tiles.size(all.tiles.pieces - 1);
        // Tiles of one row more come before the others.
        let longer = (all.tiles.n - last * all.tiles.pieces).clamp(self.from, self.end);
        for k in 0..depth {
            let from = a.data.wrapping_offset((first + k) as isize * a.cs).wrapping_add(row);
            let later = from.wrapping_offset(SOON * a.cs).cast::<u8>();
            (0..bytes).step_by(simd::CACHE_LINE).for_each(|at| simd::prefetch(later.wrapping_add(at)));
            let mut done = 0;
            for (tiles, rows) in [(self.from..longer, last + 1), (longer..self.end, last)] {
                for _ in tiles {
                    let to = self.to.add((row + done) * apart + k * rows).0;
                    for j in (0..rows).step_by(L::N) {
                        // SAFETY: the numbers are in A's column, and the packed ones this task's; what is written beyond the rows
                        // is where the next column comes, or between the tiles.
                        unsafe { L::store(to.add(j), L::load_part(from.add(done + j), L::N.min(rows - j))) }
                    }
                    done += rows;
                }
            }
        }
    }
}

/// Copies `rows` rows of `n` numbers to rows of `width`; the rest of them is zeroed.
#[inline(always)]
unsafe fn lay<T: Real, L: Lanes<T>>(s: Side<T>, rows: usize, n: usize, to: *mut T, width: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        for r in 0..if n < width { rows } else { 0 } {
            (n..width).for_each(|j| *to.add(r * width + j) = T::ZERO);
        }
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
