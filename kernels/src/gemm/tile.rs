//! The one inner loop of every convolution: a tile of sums of products, scalars times vectors.
//!
//! `out[j][..] = init[j][..] + sum over i of x[off[i] + lane[j]] * w[i][..]`. Forward and the data gradient put points of
//! the output in `j` and the window in `i`; the weight gradient swaps the two. Channels are in the vectors.

use crate::dtype::Real;
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
    /// The first row of the sums' starting values; 0 as the stride starts all from the same row.
    pub init: *const T,
    pub init_stride: usize,
    /// Rows of `vectors * N` numbers, one for each `lane`.
    pub out: *mut T,
    pub out_stride: usize,
}

impl<T: Real> WithLanes<T> for Tiles<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        // SAFETY: the caller's promise.
        unsafe { if self.vectors == 2 { self.split::<L, 2>() } else { self.split::<L, 1>() } }
    }
}

impl<T: Real> Tiles<'_, T> {
    /// Tiles of nearly equal height.
    #[inline(always)]
    unsafe fn split<L: Lanes<T>, const V: usize>(self) {
        let mut from = 0;
        let mut tiles = self.lane.len().div_ceil(L::ROWS);
        while tiles > 0 {
            let rows = (self.lane.len() - from).div_ceil(tiles);
            // SAFETY: rows from..from + rows are in the tables and in `out`.
            unsafe { self.rows::<L, V>(from, rows) }
            from += rows;
            tiles -= 1;
        }
    }

    #[inline(always)]
    unsafe fn rows<L: Lanes<T>, const V: usize>(&self, from: usize, rows: usize) {
        macro_rules! choose {
            ($($p:literal)*) => {
                match rows {
                    // SAFETY: the caller's promise.
                    $($p if $p <= L::ROWS => unsafe { self.tile::<L, $p, V>(from) },)*
                    _ => unreachable!("a tile has at most L::ROWS rows"),
                }
            };
        }
        choose!(1 2 3 4 5 6 7 8 9 10 11 12 13 14)
    }

    // Indices, not iterators: the sums must stay arrays that the compiler keeps in registers.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    unsafe fn tile<L: Lanes<T>, const P: usize, const V: usize>(&self, from: usize) {
        // SAFETY: the tables say where operands lie, and the caller promised that they are valid.
        unsafe {
            let lane: &[isize; P] = &*self.lane.as_ptr().add(from).cast();
            let init = self.init.add(from * self.init_stride);
            let mut acc = [[L::splat(T::ZERO); V]; P];
            for p in 0..P {
                for v in 0..V {
                    acc[p][v] = L::load(init.add(p * self.init_stride + v * L::N));
                }
            }
            let mut w = self.w;
            for &off in self.off {
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
            let out = self.out.add(from * self.out_stride);
            for p in 0..P {
                for v in 0..V {
                    L::store(out.add(p * self.out_stride + v * L::N), acc[p][v]);
                }
            }
        }
    }
}
