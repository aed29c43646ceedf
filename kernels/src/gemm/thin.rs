//! Products of a few rows: each number of B is read once, in order, and not packed. Where B's rows lie in order a sum is one chain over
//! the inner dimension; where its columns do, one for each lane of a vector.

use super::{GemmProduct, Side, store};
use crate::array::Output;
use crate::array::scratch::{self, Scratch};
use crate::dtype::Real;
use crate::pool;
use crate::simd::lanes::{Choose, Lanes, WithLanes, dispatch};
use crate::tuned;

/// Rows that such a product has at most.
pub(super) const ROWS: usize = tuned::THIN_ROWS[4];
/// Columns of a task, at most, whose sums stay in the first-level cache; bytes of B that are worth a task.
const COLUMNS: usize = 1024;
pub(super) const BYTES: usize = 256 << 10;
/// Rows of B whose numbers are added to a sum in turn, where they lie in order; columns that are read side by side, where they do.
const TURN: usize = 8;
const SIDE_BY_SIDE: usize = 4;
/// Numbers of A's rows that are read at a time.
const BLOCK: usize = 4096;

/// Whether a product is done here.
pub(super) fn pays<T>(p: &GemmProduct<T>) -> bool {
    reads_columns(p) || reads_rows(p).is_some()
}

/// Whether B's columns lie in order.
fn has_columns<T>(p: &GemmProduct<T>) -> bool {
    p.b.rs == 1 && p.b.cs >= 0
}

fn reads_columns<T>(p: &GemmProduct<T>) -> bool {
    p.m <= ROWS && has_columns(p) && is_faster(p, 0)
}

/// The bytes of B, if it is read row by row.
pub(super) fn reads_rows<T>(p: &GemmProduct<T>) -> Option<usize> {
    let lies = p.m <= ROWS && p.b.cs == 1 && p.c.cs == 1 && !has_columns(p);
    (lies && is_faster(p, 1)).then(|| p.k.saturating_mul(p.n).saturating_mul(size_of::<T>()))
}

/// Whether it was measured to be, where columns of B (0) or its rows (1) lie in order. It is for matrices with sides of one size; where
/// what lies in order is shorter than that, it decides.
fn is_faster<T>(p: &GemmProduct<T>, how: usize) -> bool {
    let sizes = [&tuned::THIN_ROWS, &tuned::THIN_SIDES.map(|n| n * n)];
    let (run, runs) = if how == 0 { (p.k, p.n) } else { (p.n, p.k) };
    tuned::percent(&tuned::get().thin[how], sizes, [p.m, run.saturating_mul(runs.min(run))]) < 100
}

/// C = A B, or +=, on all threads or the caller's alone.
///
/// # Safety
/// As the methods of a product.
pub(super) unsafe fn run<T: Real>(p: GemmProduct<T>, output: Output, shared: bool) {
    let bytes = p.k.saturating_mul(p.n).saturating_mul(size_of::<T>());
    let tasks = if has_columns(&p) { bytes / BYTES } else { 1 };
    // Whole vectors, of any machine.
    let width = p.n.div_ceil(tasks.clamp(1, p.n.div_ceil(16))).min(COLUMNS).next_multiple_of(16);
    let part = |i: usize| p.tile(0, i * width, p.m, width.min(p.n - i * width));
    let f = |i: usize| dispatch(Thin { p: part(i), output });
    if shared { pool::run(p.n.div_ceil(width), &f) } else { (0..p.n.div_ceil(width)).for_each(f) }
}

/// Some columns of a product.
struct Thin<T> {
    p: GemmProduct<T>,
    output: Output,
}

impl<T: Real> Choose<T> for Thin<T> {
    fn with<L: Lanes<T>>(self) {
        let Thin { p, output } = self;
        if !has_columns(&p) {
            scratch::with(p.m * p.n.next_multiple_of(L::N), |sums: &mut [T]| {
                sums.fill(T::ZERO);
                // SAFETY: L is what the machine has; `run`'s caller promised the rest.
                unsafe { L::enter(RowProducts { p, sums, output }) }
            });
            return;
        }
        for from in (0..p.k).step_by(BLOCK) {
            let mut p = GemmProduct { k: BLOCK.min(p.k - from), ..p };
            let from = from as isize;
            p.a.data = p.a.data.wrapping_offset(from * p.a.cs);
            p.b.data = p.b.data.wrapping_offset(from);
            let output = if from == 0 { output } else { Output::Accumulate };
            let (m, k) = (p.m, p.k);
            let lies = p.a.cs == 1;
            // SAFETY: an element of A.
            let at = |i: usize| unsafe { *p.a.data.offset((i / k) as isize * p.a.rs + (i % k) as isize * p.a.cs) };
            let rows = Scratch::each(if lies { 0 } else { m * k }, at);
            if !lies {
                p.a = Side { data: rows.as_ptr(), rs: k as isize, cs: 1 };
            }
            // SAFETY: as above.
            unsafe { L::enter(ColumnProducts { p, output }) }
        }
    }
}

/// B's rows lie in order.
struct RowProducts<'a, T> {
    p: GemmProduct<T>,
    /// Rows of so many numbers as the columns' vectors have.
    sums: &'a mut [T],
    output: Output,
}

impl<T: Real> WithLanes<T> for RowProducts<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let RowProducts { p, sums, output } = self;
        // SAFETY: the caller's promise.
        unsafe {
            let whole = p.k / TURN * TURN;
            for k in (0..whole).step_by(TURN) {
                add_rows::<T, L, TURN>(&p, k, sums);
            }
            for k in whole..p.k {
                add_rows::<T, L, 1>(&p, k, sums);
            }
            for (i, row) in sums.chunks_exact(p.n.next_multiple_of(L::N)).enumerate() {
                let to = p.c.data.wrapping_offset(i as isize * p.c.rs);
                for j in (0..p.n).step_by(L::N) {
                    let some = L::mask(0, L::N.min(p.n - j));
                    let mut v = L::load(row.as_ptr().add(j));
                    if output == Output::Accumulate {
                        v = L::fma(L::load_masked(to.add(j), some), L::splat(T::ONE), v);
                    }
                    L::store_masked(to.add(j), some, v);
                }
            }
        }
    }
}

/// Adds the products of rows `k .. k + R` of B.
#[inline(always)]
unsafe fn add_rows<T: Real, L: Lanes<T>, const R: usize>(p: &GemmProduct<T>, k: usize, sums: &mut [T]) {
    let width = p.n.next_multiple_of(L::N);
    for j in (0..p.n).step_by(L::N) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut rows = [L::splat(T::ZERO); R];
            for (r, row) in rows.iter_mut().enumerate() {
                let from = p.b.data.wrapping_offset((k + r) as isize * p.b.rs).wrapping_add(j);
                *row = if j + L::N <= p.n { L::load(from) } else { L::load_part(from, p.n - j) };
            }
            for i in 0..p.m {
                let x = p.a.data.wrapping_offset(i as isize * p.a.rs + k as isize * p.a.cs);
                let to = sums.as_mut_ptr().add(i * width + j);
                let mut acc = L::load(to);
                for (r, row) in rows.iter().enumerate() {
                    acc = L::fma(L::splat(*x.wrapping_offset(r as isize * p.a.cs)), *row, acc);
                }
                L::store(to, acc);
            }
        }
    }
}

/// B's columns lie in order, and A's rows.
struct ColumnProducts<T> {
    p: GemmProduct<T>,
    output: Output,
}

impl<T: Real> WithLanes<T> for ColumnProducts<T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        macro_rules! rows {
            ($($m:literal)*) => {
                match self.p.m {
                    // SAFETY: the caller's promise.
                    $($m => unsafe { self.columns::<L, $m>() },)*
                    _ => unreachable!("a thin product has 1 to ROWS rows"),
                }
            };
        }
        rows!(1 2 3 4 5)
    }
}

impl<T: Real> ColumnProducts<T> {
    #[inline(always)]
    unsafe fn columns<L: Lanes<T>, const M: usize>(&self) {
        let n = self.p.n;
        let whole = n / SIDE_BY_SIDE * SIDE_BY_SIDE;
        // SAFETY: the caller's promise.
        unsafe {
            (0..whole).step_by(SIDE_BY_SIDE).for_each(|j| self.some::<L, M, SIDE_BY_SIDE>(j));
            (whole..n).for_each(|j| self.some::<L, M, 1>(j));
        }
    }

    /// The sums of columns `j .. j + C`.
    // Indices, not iterators: the sums must stay arrays that the compiler keeps in registers.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    unsafe fn some<L: Lanes<T>, const M: usize, const C: usize>(&self, j: usize) {
        let GemmProduct { k, a, b, c, .. } = self.p;
        // SAFETY: the caller's promise.
        unsafe {
            let x: [*const T; M] = std::array::from_fn(|i| a.data.wrapping_offset(i as isize * a.rs));
            let w: [*const T; C] = std::array::from_fn(|l| b.data.wrapping_offset((j + l) as isize * b.cs));
            let mut acc = [[L::splat(T::ZERO); C]; M];
            let whole = k / L::N * L::N;
            for at in (0..whole).step_by(L::N) {
                let column: [L::V; C] = std::array::from_fn(|l| L::load(w[l].add(at)));
                for i in 0..M {
                    let row = L::load(x[i].add(at));
                    for l in 0..C {
                        acc[i][l] = L::fma(row, column[l], acc[i][l]);
                    }
                }
            }
            if whole < k {
                let column: [L::V; C] = std::array::from_fn(|l| L::load_part(w[l].add(whole), k - whole));
                for i in 0..M {
                    let row = L::load_part(x[i].add(whole), k - whole);
                    for l in 0..C {
                        acc[i][l] = L::fma(row, column[l], acc[i][l]);
                    }
                }
            }
            for i in 0..M {
                for l in 0..C {
                    let to = c.data.wrapping_offset(i as isize * c.rs + (j + l) as isize * c.cs);
                    store(to, lanes_sum::<T, L>(acc[i][l]), self.output);
                }
            }
        }
    }
}

/// The sum of a vector's lanes, by halves.
#[inline(always)]
unsafe fn lanes_sum<T: Real, L: Lanes<T>>(v: L::V) -> T {
    let mut lanes = [T::ZERO; 16];
    // SAFETY: a vector has at most 16 numbers.
    unsafe { L::store(lanes.as_mut_ptr(), v) }
    let mut n = L::N / 2;
    while n > 0 {
        for i in 0..n {
            lanes[i] += lanes[i + n];
        }
        n /= 2;
    }
    lanes[0]
}
