//! The one inner loop of every convolution: a tile of sums of products, scalars times vectors.
//!
//! `out[j][..] = init[j][..] + sum over i of x[off[i] + lane[j]] * w[i][..]`. Forward and the data gradient put points of
//! the output in `j` and the window in `i`; the weight gradient swaps the two. Channels are in the vectors. The sum is one of its own, to which
//! `init` is added in the end: a long sum in parts rounds less than one chain.

use crate::dtype::Real;
use crate::simd;
use crate::simd::lanes::{Lanes, WithLanes};

/// Operands of a run of tiles. `off` and `lane` are distances in elements from `x`.
#[derive(Clone, Copy)]
pub struct Tiles<'a, T> {
    pub x: *const T,
    pub off: &'a [isize],
    pub lane: &'a [isize],
    /// Rows of `vectors * N` numbers, one for each `off`, `w_stride` apart.
    pub w: *const T,
    pub w_stride: usize,
    pub vectors: usize,
    /// The first row of what is added to the sums; 0 as the stride adds the same row to all.
    pub init: *const T,
    pub init_stride: usize,
    /// Rows of `vectors * N` numbers, one for each `lane`.
    pub out: *mut T,
    pub out_stride: usize,
}

/// What tiles bring into the cache meanwhile, for what comes after them: `fetch` asks for the next of it, once for each row
/// of `w` in each tile.
trait Ahead: Copy {
    fn fetch(&mut self);
}

/// Nothing.
impl Ahead for () {
    #[inline(always)]
    fn fetch(&mut self) {}
}

impl Ahead for [NextRows; 2] {
    #[inline(always)]
    fn fetch(&mut self) {
        self[0].fetch();
        self[1].fetch();
    }
}

/// Rows that are far apart, which the processor does not foresee: the first cache line of each of them, then the next lines.
#[derive(Clone, Copy)]
pub struct NextRows {
    at: *const u8,
    stride: usize,
    rows: usize,
    left: usize,
    lines: usize,
    written: bool,
}

impl NextRows {
    /// `rows` rows of `n` numbers, `stride` numbers apart; any addresses are allowed.
    pub fn new<T>(first: *const T, stride: usize, rows: usize, n: usize) -> NextRows {
        let lines = (n * size_of::<T>()).div_ceil(simd::CACHE_LINE);
        // A row that does not begin with a line reaches into one more.
        let lines = lines + usize::from(!first.addr().is_multiple_of(simd::CACHE_LINE));
        NextRows { at: first.cast(), stride: stride * size_of::<T>(), rows, left: rows, lines, written: false }
    }

    /// The same rows, which will be written: into the first cache, where stores go.
    pub fn written(self) -> NextRows {
        NextRows { written: true, ..self }
    }

    /// Asks for the next line.
    #[inline(always)]
    pub(super) fn fetch(&mut self) {
        if self.written {
            simd::prefetch(self.at);
        } else {
            simd::prefetch_into::<2>(self.at);
        }
        self.at = self.at.wrapping_add(self.stride);
        self.left = self.left.wrapping_sub(1);
        if self.left == 0 {
            self.turn();
        }
    }

    /// From the last row to the first one, a line further; to no more than the last line again where that was all.
    fn turn(&mut self) {
        self.lines = self.lines.saturating_sub(1);
        if self.lines == 0 {
            (self.left, self.stride) = (usize::MAX, 0);
        } else {
            self.at = self.at.wrapping_sub(self.rows * self.stride).wrapping_add(simd::CACHE_LINE);
            self.left = self.rows;
        }
    }
}

/// Tiles, and what they bring into the cache.
pub struct TilesAhead<'a, T>(pub Tiles<'a, T>, pub &'a mut [NextRows; 2]);

impl<T: Real> WithLanes<T> for TilesAhead<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.call_with::<L, _>(self.1) }
    }
}

impl<T: Real> WithLanes<T> for Tiles<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        // SAFETY: the caller's promise.
        unsafe { self.call_with::<L, ()>(&mut ()) }
    }
}

impl<T: Real> Tiles<'_, T> {
    /// # Safety
    /// As [`WithLanes::call`].
    #[inline(always)]
    unsafe fn call_with<L: Lanes<T>, A: Ahead>(self, ahead: &mut A) {
        // SAFETY: the caller's promise.
        unsafe { if self.vectors == 2 { self.split::<L, A, 2>(ahead) } else { self.split::<L, A, 1>(ahead) } }
    }

    /// Tiles of nearly equal height.
    #[inline(always)]
    unsafe fn split<L: Lanes<T>, A: Ahead, const V: usize>(self, ahead: &mut A) {
        let mut from = 0;
        let mut tiles = self.lane.len().div_ceil(L::ROWS);
        while tiles > 0 {
            let rows = (self.lane.len() - from).div_ceil(tiles);
            // SAFETY: rows from..from + rows are in the tables and in `out`.
            unsafe { self.rows::<L, A, V>(from, rows, ahead) }
            from += rows;
            tiles -= 1;
        }
    }

    #[inline(always)]
    unsafe fn rows<L: Lanes<T>, A: Ahead, const V: usize>(&self, from: usize, rows: usize, ahead: &mut A) {
        macro_rules! choose {
            ($($p:literal)*) => {
                match rows {
                    // SAFETY: the caller's promise.
                    $($p if $p <= L::ROWS => unsafe { self.tile::<L, A, $p, V>(from, ahead) },)*
                    _ => unreachable!("a tile has at most L::ROWS rows"),
                }
            };
        }
        choose!(1 2 3 4 5 6 7 8 9 10 11 12 13 14)
    }

    // Indices, not iterators: the sums must stay arrays that the compiler keeps in registers.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    unsafe fn tile<L: Lanes<T>, A: Ahead, const P: usize, const V: usize>(&self, from: usize, ahead: &mut A) {
        // SAFETY: the tables say where operands lie, and the caller promised that they are valid.
        unsafe {
            let lane: &[isize; P] = &*self.lane.as_ptr().add(from).cast();
            let mut acc = [[L::splat(T::ZERO); V]; P];
            let mut w = self.w;
            let mut next = *ahead;
            for &off in self.off {
                // Smaller tiles have no time for it, and are few.
                if 2 * P >= L::ROWS {
                    next.fetch();
                }
                let mut x = self.x.offset(off);
                let mut row = [L::splat(T::ZERO); V];
                for v in 0..V {
                    row[v] = L::load(w.add(v * L::N));
                }
                for p in 0..P {
                    let s = L::splat(*x.offset(lane[p]));
                    for v in 0..V {
                        acc[p][v] = L::fma(s, row[v], acc[p][v]);
                    }
                    if V > 1 {
                        for v in 0..V {
                            x = L::after(x, acc[p][v]);
                        }
                    }
                }
                w = w.add(self.w_stride);
            }
            *ahead = next;
            let (init, out) = (self.init.add(from * self.init_stride), self.out.add(from * self.out_stride));
            for p in 0..P {
                for v in 0..V {
                    let start = L::load(init.add(p * self.init_stride + v * L::N));
                    L::store(out.add(p * self.out_stride + v * L::N), L::fma(start, L::splat(T::ONE), acc[p][v]));
                }
            }
        }
    }
}
