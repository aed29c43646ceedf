//! Many products of a few numbers each: no packing, no tables, one loop over all of them. The sums are those of every small product,
//! a fused chain over the inner dimension, so the bits do not tell how it was done.

use super::{GemmProduct, Output, Side};
use crate::array::scratch::Scratch;
use crate::dtype::Real;
use crate::simd::lanes::{Choose, Lanes, WithLanes, dispatch};

/// Multiplications of rows of B that a product has at most, and numbers in such a row.
pub(super) const ROWS: usize = 64;
const COLUMNS: usize = 16;
/// Products whose B is brought in order before they are multiplied: what has just been written number by number cannot be read as
/// a vector at once.
const TOGETHER: usize = 32;

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
    dispatch(Few { p, places, is_transposed, from, to, output });
}

impl<T: Real, F: Fn(usize) -> [usize; 3]> Choose<T> for Few<'_, T, F> {
    fn with<L: Lanes<T>>(self) {
        // SAFETY: L is what the machine has; `run`'s caller promised the rest.
        unsafe { L::enter(self) }
    }
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
            for _ in 0..p.m {
                let (mut acc, mut x, mut y) = (L::splat(T::ZERO), row, b.wrapping_add(column));
                for _ in 0..p.k {
                    acc = L::fma(L::splat(*x), L::load_masked(y, some), acc);
                    x = x.wrapping_offset(p.a.cs);
                    y = y.wrapping_offset(stride);
                }
                if output == Output::Accumulate {
                    acc = L::fma(L::load_masked(to, some), one, acc);
                }
                L::store_masked(to, some, acc);
                row = row.wrapping_offset(p.a.rs);
                to = to.wrapping_offset(p.c.rs);
            }
        }
        column += width;
    }
}
