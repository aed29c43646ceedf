//! Products of a column and a row: nothing is summed, and writing C is all the work.

use super::{GemmProduct, Output};
use crate::dtype::Real;
use crate::pool;
use crate::simd::lanes::{Lanes, WithLanes, enter};

/// Columns that such a product has at least; numbers of C that are worth a task.
const COLUMNS: usize = 8;
const NUMBERS: usize = 1 << 14;

/// Whether a product is done here.
pub(super) fn pays<T>(p: &GemmProduct<T>) -> bool {
    p.k == 1 && p.n >= COLUMNS && p.b.cs == 1 && p.c.cs == 1
}

/// `count` products, each with operands and result at its places.
///
/// # Safety
/// As the methods of a product, of every one, and they pay.
pub(super) unsafe fn run<T: Real>(
    p: &GemmProduct<T>,
    count: usize,
    places: impl Fn(usize) -> [usize; 3] + Sync,
    output: Output,
) {
    let (rows, each) = (count * p.m, NUMBERS.div_ceil(p.n));
    pool::run(rows.div_ceil(each), &|t| {
        let (mut from, to) = (t * each, rows.min((t + 1) * each));
        while from < to {
            let (i, row) = (from / p.m, from % p.m);
            let m = (p.m - row).min(to - from);
            // SAFETY: the caller's promise; each task has rows of its own.
            unsafe { enter(Outer { p: p.shifted(places(i)).tile(row, 0, m, p.n), output }) };
            from += m;
        }
    });
}

/// Some rows of a product.
struct Outer<T> {
    p: GemmProduct<T>,
    output: Output,
}

impl<T: Real> WithLanes<T> for Outer<T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let GemmProduct { m, n, a, b, c, .. } = self.p;
        let adds = self.output == Output::Accumulate;
        let whole = n / L::N * L::N;
        // SAFETY: the caller's promise.
        unsafe {
            let (zero, one, rest) = (L::splat(T::ZERO), L::splat(T::ONE), L::mask(0, n - whole));
            let (mut x, mut to) = (a.data, c.data);
            for _ in 0..m {
                let factor = L::splat(*x);
                for j in (0..whole).step_by(L::N) {
                    let mut v = L::fma(factor, L::load(b.data.add(j)), zero);
                    if adds {
                        v = L::fma(L::load(to.add(j)), one, v);
                    }
                    L::store(to.add(j), v);
                }
                if whole < n {
                    let mut v = L::fma(factor, L::load_masked(b.data.add(whole), rest), zero);
                    if adds {
                        v = L::fma(L::load_masked(to.add(whole), rest), one, v);
                    }
                    L::store_masked(to.add(whole), rest, v);
                }
                (x, to) = (x.wrapping_offset(a.rs), to.wrapping_offset(c.rs));
            }
        }
    }
}
