//! Products of which B lies across: the crate packs it one number at a time, so it is laid in order before, by blocks that
//! are transposed in registers. Each element's sum stays as it is.

use super::{GemmProduct, Side};
use crate::array::Output;
use crate::array::scratch::{self, KEEP};
use crate::dtype::Real;
use crate::simd::lanes::{Choose, Lanes, TransposeBlock, WithLanes, transpose_all};

/// Bytes of B that are laid in order at a time, about: they stay in the second-level cache.
const COPY: usize = 512 << 10;
/// Columns of B are cut at multiples of this, and into pieces that have as many at least: the crate sums in other pieces where
/// both sides are at most 64 long.
const STEP: usize = 16;
const FEWEST: usize = 5 * STEP;
/// Rows of A, and length of a sum, from which it pays.
const ROWS: usize = 2;
const SUMMED: usize = 16;

/// A product whose B has columns that lie in order.
pub(super) struct Across<T> {
    pub p: GemmProduct<T>,
    pub output: Output,
}

impl<T: Real> Across<T> {
    /// Whether it is faster than the crate alone.
    pub fn pays(p: &GemmProduct<T>) -> bool {
        let lies_across = p.b.rs == 1 && p.b.cs > 1 && p.c.cs == 1 && p.c.rs > 1;
        let large = p.m >= ROWS && p.n >= STEP && p.k >= SUMMED;
        lies_across && large && p.k.saturating_mul(Self::widest(p) * size_of::<T>()) <= KEEP
    }

    /// Pieces that the columns are cut into.
    fn pieces(p: &GemmProduct<T>) -> usize {
        let most = (COPY / p.k.saturating_mul(size_of::<T>())).max(FEWEST);
        p.n.div_ceil(most).min(p.n / FEWEST).max(1)
    }

    /// Columns of the widest piece.
    fn widest(p: &GemmProduct<T>) -> usize {
        (p.n.div_ceil(STEP).div_ceil(Self::pieces(p)) * STEP).min(p.n)
    }
}

impl<T: Real> Choose<T> for Across<T> {
    fn with<L: Lanes<T>>(self) {
        let GemmProduct { m, n, k, .. } = self.p;
        let pieces = Self::pieces(&self.p);
        let edge = |i: usize| (n.div_ceil(STEP) * i / pieces * STEP).min(n);
        scratch::with(k * Self::widest(&self.p), |copy: &mut [T]| {
            for i in 0..pieces {
                let mut p = self.p.tile(0, edge(i), m, edge(i + 1) - edge(i));
                let (src_stride, dst_stride, dst) = (p.b.cs as usize, p.n, copy.as_mut_ptr());
                let columns = TransposeBlock { src: p.b.data, src_stride, rows: p.n, cols: k, dst, dst_stride };
                // SAFETY: the columns are in B; the copy has k rows of `n` numbers.
                unsafe { L::enter(InOrder(columns)) }
                p.b = Side { data: copy.as_ptr(), rs: p.n as isize, cs: 1 };
                // SAFETY: as the product's caller promised, and the copy is apart from C.
                unsafe { p.crate_gemm(self.output) }
            }
        });
    }
}

/// The columns of B, each of which lies in order, as rows.
struct InOrder<T>(TransposeBlock<T>);

impl<T: Real> WithLanes<T> for InOrder<T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        // SAFETY: the caller's promise.
        unsafe { transpose_all::<T, L>(self.0) }
    }
}
