//! Narrow rows one after another, with stride 1: each row of the source is read once for all rows of results.

use super::{NarrowCorrelation, NarrowProducts, RowLanes};
use crate::dtype::Real;
use crate::kernel::convolution::cpu::Conv;
use crate::simd::lanes::Lanes;

/// Row r of the source is read for result `r + low - k` by row k of a square kernel, or of one that is turned upside down.
#[derive(Clone, Copy)]
pub(super) struct Rolling {
    pub(super) low: usize,
    turned: bool,
}

impl Rolling {
    pub(super) fn new(c: &Conv, is_data: bool) -> Option<Rolling> {
        let plain = c.stride == [1; 3] && c.dilation[1] == 1 && c.kernel[1] == c.kernel[2] && c.pad[1] < c.kernel[1];
        plain.then(|| Rolling { low: if is_data { c.kernel[1] - 1 - c.pad[1] } else { c.pad[1] }, turned: is_data })
    }
}

impl<T: Real, M: Copy> NarrowCorrelation<'_, T, M> {
    /// As [`Self::run`] for rows one after another: those of results that a row of the source adds to are in registers.
    #[allow(clippy::needless_range_loop)] // as in `run`
    #[inline(always)]
    pub(super) unsafe fn roll<L: Lanes<T>, const V: usize, const K: usize>(&self, rolling: Rolling) {
        let r = self.rows;
        assert!(self.w.len() == K * K, "a weight for each tap");
        let RowLanes { shifts, places, masks, ends } = r.lanes::<T, L, V, K>(self.block);
        // SAFETY: inside `enter`.
        let mut v = [[unsafe { L::splat(self.start) }; V]; K];
        for row in 0..r.rows() + K - 1 - rolling.low {
            // SAFETY: what the masks cover lies in the rows.
            unsafe {
                if row < r.source[0] {
                    for c in 0..K {
                        let x = self.source.wrapping_add(row * r.width).wrapping_offset(shifts[c]);
                        for j in 0..V {
                            let x = L::load_masked(x.wrapping_add(places[j]), masks[c][j]);
                            for k in 0..K {
                                let at = if rolling.turned { K - 1 - k } else { k } * K + c;
                                v[k][j] = L::fma(x, L::splat(*self.w.get_unchecked(at)), v[k][j]);
                            }
                        }
                    }
                }
                if row + rolling.low + 1 >= K {
                    self.store::<L, V>(row + rolling.low + 1 - K, v[K - 1], places, ends);
                }
                for k in (1..K).rev() {
                    v[k] = v[k - 1];
                }
                v[0] = [L::splat(self.start); V];
            }
        }
    }
}

impl<T: Real, M: Copy> NarrowProducts<'_, T, M> {
    /// As [`Self::run`] for rows one after another: each row of the source meets the gradients of all rows that read it.
    #[allow(clippy::needless_range_loop)] // as in `run`
    #[inline(always)]
    pub(super) unsafe fn roll<L: Lanes<T>, const V: usize, const K: usize>(self, low: usize) {
        let r = self.rows;
        assert!(self.sums.len() == K * K * L::N, "a vector of sums for each tap");
        let RowLanes { shifts, places, masks, ends } = r.lanes::<T, L, V, K>(self.block);
        // SAFETY: what the masks cover lies in the rows.
        unsafe {
            let mut v = [[L::splat(T::ZERO); K]; K];
            for k in 0..K {
                for c in 0..K {
                    v[k][c] = L::load(self.sums.as_ptr().add((k * K + c) * L::N));
                }
            }
            for row in 0..r.source[0] {
                for j in 0..V {
                    let mut x = [L::splat(T::ZERO); K];
                    for c in 0..K {
                        let from = self.source.wrapping_add(row * r.width + places[j]).wrapping_offset(shifts[c]);
                        x[c] = L::load_masked(from, masks[c][j]);
                    }
                    for k in 0..K {
                        if row + low < k || row + low - k >= r.rows() {
                            continue;
                        }
                        let g = self.gradient.add((row + low - k) * r.columns + self.block.first + places[j]);
                        let g = L::load_masked(g, ends[j]);
                        for c in 0..K {
                            v[k][c] = L::fma(x[c], g, v[k][c]);
                        }
                    }
                }
            }
            for k in 0..K {
                for c in 0..K {
                    L::store(self.sums.as_mut_ptr().add((k * K + c) * L::N), v[k][c]);
                }
            }
        }
    }
}
