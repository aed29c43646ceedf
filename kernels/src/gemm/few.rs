//! Many products of a few numbers each: no packing, no tables, one loop over all of them. The sums are those of every small product,
//! a fused chain over the inner dimension, so the bits do not tell how it was done.

use super::{GemmProduct, Output, Side, store};
use crate::array::scratch::Scratch;
use crate::dtype::Real;
use crate::simd::lanes::{Lanes, WithLanes, enter};

/// Multiplications of rows of B that a product has at most, and numbers in such a row.
pub(super) const ROWS: usize = 64;
const COLUMNS: usize = 16;
/// Products whose B is brought in order before they are multiplied: what has just been written number by number cannot be read as
/// a vector at once.
const TOGETHER: usize = 32;
/// Rows of a result that are read at once.
const AT_ONCE: usize = 8;

/// Products `from` to `to` of a batch.
struct Few<'a, T, F> {
    p: GemmProduct<T>,
    places: &'a F,
    /// A and B have changed places.
    is_transposed: bool,
    from: usize,
    to: usize,
    output: Output,
}

/// Whether products of this shape are done here.
pub(super) fn pays<T: Real>(p: &GemmProduct<T>) -> bool {
    p.n <= COLUMNS && p.m.saturating_mul(p.k) <= ROWS
}

/// Whether one product of many rows is done here: vectors are hardly filled, but nothing is packed.
pub(super) fn is_narrow<T: Real>(p: &GemmProduct<T>) -> bool {
    (2..=COLUMNS).contains(&p.n) && (1..=ROWS).contains(&(p.n * p.k)) && p.m >= ROWS && p.c.cs == 1
}

/// Rows of A that are multiplied at once where sums are long, and how many products are added up before they go to the sum.
const DEEP_ROWS: usize = 4;
const DEEP: usize = 256;

/// Whether one product of a few rows and columns, whose sums are long, is done here.
pub(super) fn is_deep<T: Real>(p: &GemmProduct<T>) -> bool {
    p.m <= 2 * DEEP_ROWS && p.n <= COLUMNS && p.k >= DEEP && p.b.cs == 1
}

/// # Safety
/// As the methods of a product, which is deep.
pub(super) unsafe fn run_deep<T: Real>(p: &GemmProduct<T>, output: Output) {
    // SAFETY: the caller's promise.
    unsafe { enter(Deep { p: *p, output }) };
}

struct Deep<T> {
    p: GemmProduct<T>,
    output: Output,
}

impl<T: Real> WithLanes<T> for Deep<T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let Deep { p, output } = self;
        for j in (0..p.n).step_by(L::N) {
            let mut i = 0;
            while i < p.m {
                // SAFETY: the caller's promise.
                unsafe {
                    let part = p.tile(i, j, p.m - i, L::N.min(p.n - j));
                    if part.m >= DEEP_ROWS {
                        deep::<T, L, DEEP_ROWS>(&part, output);
                        i += DEEP_ROWS;
                    } else {
                        deep::<T, L, 1>(&part, output);
                        i += 1;
                    }
                }
            }
        }
    }
}

/// M rows of C, which has no more columns than a vector: even and odd products of a sum are chains of their own.
#[inline(always)]
unsafe fn deep<T: Real, L: Lanes<T>, const M: usize>(p: &GemmProduct<T>, output: Output) {
    // SAFETY: the caller's promise.
    unsafe {
        let (some, one, zero) = (L::mask(0, p.n), L::splat(T::ONE), L::splat(T::ZERO));
        let mut total = [zero; M];
        let (mut a, mut b) = (p.a.data, p.b.data);
        for from in (0..p.k).step_by(DEEP) {
            let n = DEEP.min(p.k - from);
            let mut sums = [[zero; M]; 2];
            for l in (0..n).step_by(2) {
                for (sums, _) in sums.iter_mut().zip(l..n) {
                    let (row, mut x) = (L::load_masked(b, some), a);
                    for sum in sums {
                        *sum = L::fma(L::splat(*x), row, *sum);
                        x = x.wrapping_offset(p.a.rs);
                    }
                    (a, b) = (a.wrapping_offset(p.a.cs), b.wrapping_offset(p.b.rs));
                }
            }
            for m in 0..M {
                total[m] = L::fma(L::fma(sums[0][m], one, sums[1][m]), one, total[m]);
            }
        }
        let mut lanes = [T::ZERO; COLUMNS];
        for (m, total) in total.into_iter().enumerate() {
            L::store(lanes.as_mut_ptr(), total);
            for (j, &v) in lanes[..p.n].iter().enumerate() {
                store(p.c.data.wrapping_offset(m as isize * p.c.rs + j as isize * p.c.cs), v, output);
            }
        }
    }
}

/// # Safety
/// The products may be run, each with operands and result at its places.
pub(super) unsafe fn run<T: Real, F: Fn(usize) -> [usize; 3]>(
    p: &GemmProduct<T>,
    places: &F,
    [from, to]: [usize; 2],
    output: Output,
) {
    // A column is a row of the transposed product.
    let is_transposed = p.n == 1 && p.c.rs == 1 && p.a.rs == 1;
    let p = if is_transposed { p.transposed() } else { *p };
    // SAFETY: the caller's promise.
    unsafe { enter(Few { p, places, is_transposed, from, to, output }) };
}

impl<T: Real, F: Fn(usize) -> [usize; 3]> Few<'_, T, F> {
    /// Where operands and result of product `i` begin.
    #[inline(always)]
    fn at(&self, i: usize) -> [usize; 3] {
        let [a, b, c] = (self.places)(i);
        if self.is_transposed { [b, a, c] } else { [a, b, c] }
    }
}

impl<T: Real, F: Fn(usize) -> [usize; 3]> WithLanes<T> for Few<'_, T, F> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let &Few { p, from, to, output, .. } = &self;
        // SAFETY: the caller's promise.
        unsafe {
            if p.b.cs == 1 || p.n == 1 {
                let mut i = from;
                while i < to {
                    let [a, b, c] = self.at(i);
                    product::<T, L>(&p, a, p.b.data.wrapping_add(b), p.b.rs, c, output);
                    i += 1;
                }
                return;
            }
            let size = p.k * p.n;
            let mut rows = Scratch::filled(TOGETHER * size, T::ZERO);
            let mut first = from;
            while first < to {
                let count = TOGETHER.min(to - first);
                let mut i = 0;
                while i < count {
                    in_order(&p, self.at(first + i)[1], &mut rows[i * size..][..size]);
                    i += 1;
                }
                i = 0;
                while i < count {
                    let [a, _, c] = self.at(first + i);
                    product::<T, L>(&p, a, rows.as_ptr().add(i * size), p.n as isize, c, output);
                    i += 1;
                }
                first += count;
            }
        }
    }
}

/// The elements of B, which lie across, row by row.
#[inline(always)]
unsafe fn in_order<T: Real>(p: &GemmProduct<T>, b: usize, rows: &mut [T]) {
    let Side { data, rs, cs } = p.b;
    let (mut from, mut at) = (data.wrapping_add(b), 0);
    for _ in 0..p.k {
        let mut one = from;
        for _ in 0..p.n {
            // SAFETY: an element of B.
            rows[at] = unsafe { *one };
            at += 1;
            one = one.wrapping_offset(cs);
        }
        from = from.wrapping_offset(rs);
    }
}

/// One product, with the rows of B in order, `stride` apart.
#[inline(always)]
unsafe fn product<T: Real, L: Lanes<T>>(
    p: &GemmProduct<T>,
    a: usize,
    b: *const T,
    stride: isize,
    c: usize,
    output: Output,
) {
    let mut column = 0;
    while column < p.n {
        let width = L::N.min(p.n - column);
        // SAFETY: the caller's promise.
        unsafe {
            let (some, one) = (L::mask(0, width), L::splat(T::ONE));
            let (mut row, mut to) = (p.a.data.wrapping_add(a), p.c.data.wrapping_add(c + column));
            let mut done = 0;
            while done < p.m {
                // What is added to is read before any of it is written: a read has to wait for what is written just before
                // it, even where a mask keeps them apart.
                let rows = if output == Output::Accumulate { AT_ONCE.min(p.m - done) } else { 0 };
                let mut before = [L::splat(T::ZERO); AT_ONCE];
                for (r, before) in before[..rows].iter_mut().enumerate() {
                    *before = L::load_masked(to.wrapping_offset(r as isize * p.c.rs), some);
                }
                for before in &before[..rows.max(1)] {
                    let (mut acc, mut x, mut y) = (L::splat(T::ZERO), row, b.wrapping_add(column));
                    for _ in 0..p.k {
                        acc = L::fma(L::splat(*x), L::load_masked(y, some), acc);
                        x = x.wrapping_offset(p.a.cs);
                        y = y.wrapping_offset(stride);
                    }
                    if output == Output::Accumulate {
                        acc = L::fma(*before, one, acc);
                    }
                    L::store_masked(to, some, acc);
                    row = row.wrapping_offset(p.a.rs);
                    to = to.wrapping_offset(p.c.rs);
                }
                done += rows.max(1);
            }
        }
        column += width;
    }
}
