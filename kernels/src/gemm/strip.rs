//! The inner loop of matrix products: a tile of sums.

use super::packed::{ROWS, vectors};
use super::panel::PanelRows;
use super::tile::{NextRows, written_out};
use crate::dtype::Real;
use crate::simd::lanes::{Lanes, WithLanes};

/// Steps of a whole tile that are written out, where they are, and ask for two lines.
pub(super) const STEPS: usize = 4;

/// A tile of sums: `out[p][..] = init[p][..] + sum over i of x[p, i] w[i][..]`.
pub(super) struct ProductTile<T> {
    pub(super) x: *const T,
    /// Distance of rows of x that lie in order; None where its columns do, one after another.
    pub(super) x_row: Option<usize>,
    pub(super) rows: usize,
    pub(super) depth: usize,
    pub(super) panel: PanelRows<T>,
    pub(super) vectors: usize,
    pub(super) init: *const T,
    pub(super) init_stride: usize,
    pub(super) out: *mut T,
    pub(super) out_stride: usize,
    /// A whole tile is added to what `out` has.
    pub(super) adds: bool,
    /// What the next tile writes, and then rows of the next panel.
    pub(super) next: NextRows,
    pub(super) later: NextRows,
}

impl<T: Real> WithLanes<T> for ProductTile<T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        macro_rules! choose {
            ($v:literal: $($p:literal)*) => {
                match (self.rows, self.x_row) {
                    // SAFETY: the caller's promise.
                    $(($p, Some(row)) => unsafe { self.tile::<L, true, false, $p, $v>(row) },
                    // SAFETY: as above.
                    ($p, None) => unsafe { self.tile::<L, false, false, $p, $v>(1) },)*
                    _ => unreachable!("a tile has 1 to ROWS rows"),
                }
            };
        }
        macro_rules! lay {
            ($v:literal) => {
                match self.x_row {
                    // SAFETY: the caller's promise.
                    Some(row) => return unsafe { self.tile::<L, true, true, ROWS, $v>(row) },
                    // SAFETY: as above.
                    None => return unsafe { self.tile::<L, false, true, ROWS, $v>(1) },
                }
            };
        }
        if self.panel.lay.is_some() && written_out::<T, L>() {
            if vectors::<T, L>() == 4 { lay!(4) } else { lay!(2) }
        }
        let widest = vectors::<T, L>();
        match self.vectors {
            4 if widest == 4 => choose!(4: 1 2 3 4 5 6),
            3 if widest == 4 => choose!(3: 1 2 3 4 5 6),
            2 => choose!(2: 1 2 3 4 5 6),
            1 => choose!(1: 1 2 3 4 5 6),
            _ => unreachable!("a tile is at most `widest` vectors wide"),
        }
    }
}

impl<T: Real> ProductTile<T> {
    // Indices, not iterators: the sums must stay arrays that the compiler keeps in registers.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    unsafe fn tile<L: Lanes<T>, const IN_ROWS: bool, const LAYS: bool, const P: usize, const V: usize>(
        self,
        x_row: usize,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut acc = [[L::splat(T::ZERO); V]; P];
            for p in 0..P {
                for v in 0..V {
                    acc[p][v] = L::load(self.init.add(p * self.init_stride + v * L::N));
                }
            }
            let (mut x, mut w, mut next) = (self.x, self.panel.w, self.next);
            let mut lay = self.panel.lay.unwrap_or(std::ptr::null_mut());
            macro_rules! step {
                () => {
                    let mut row = [L::splat(T::ZERO); V];
                    for v in 0..V {
                        row[v] = L::load(w.add(v * L::N));
                        if LAYS {
                            L::store(lay.add(v * L::N), row[v]);
                        }
                    }
                    if LAYS {
                        lay = lay.add(V * L::N);
                    }
                    let mut from = x;
                    for p in 0..P {
                        let s = L::splat(*from.add(p * x_row));
                        for v in 0..V {
                            acc[p][v] = L::fma(s, row[v], acc[p][v]);
                        }
                        for v in if V > 2 { V - 1 } else { 0 }..V {
                            from = L::after(from, acc[p][v]);
                        }
                    }
                    x = x.add(if IN_ROWS { 1 } else { P });
                    w = w.add(self.panel.w_stride);
                };
            }
            let is_whole = P == ROWS && V > 1;
            let mut left = self.depth;
            while is_whole && written_out::<T, L>() && left >= STEPS {
                next.fetch_then(&self.later);
                step!();
                step!();
                step!();
                step!();
                left -= STEPS;
            }
            for _ in 0..left {
                // Tiles at the edges are few.
                if is_whole && !written_out::<T, L>() {
                    next.fetch_then(&self.later);
                }
                step!();
            }
            for p in 0..P {
                for v in 0..V {
                    let out = self.out.add(p * self.out_stride + v * L::N);
                    if P == ROWS && self.adds {
                        acc[p][v] = L::fma(L::load(out), L::splat(T::ONE), acc[p][v]);
                    }
                    L::store(out, acc[p][v]);
                }
            }
        }
    }
}
