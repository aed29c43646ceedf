//! Matrix products. How they are cut, and so the order of every element's sum, depends on the sizes alone: the thread count cannot
//! change a result.

mod few;
mod outer;
mod pack;
mod packed;
mod panel;
pub(crate) mod parts;
mod strip;
#[cfg(feature = "emulate")]
mod tests;
mod thin;
pub(crate) mod tile;

use crate::array::Output;
use crate::array::scratch::{self, Scratch};
use crate::dtype::Real;
use crate::pool;
use crate::simd::lanes::{Choose, Lanes, dispatch};
use parts::ColumnParts;
use tile::Tiles;

/// Products below this many multiplications run on the caller's thread in one piece.
const SERIAL: usize = 1 << 20;
/// Multiplications of small products that are worth a task.
const FEW: usize = 1 << 16;
/// Products below this many multiplications are done by the convolutions' inner loop.
pub const TINY: usize = 1 << 12;
/// Multiplications that reading or writing a number of a matrix takes as long as.
const PASS: usize = 4;
/// Partial sums over a long inner dimension, at most.
const MAX_PARTS: usize = 8;

/// A matrix, or a sequence of matrices of one shape, in a slice.
#[derive(Clone, Copy)]
pub struct Mat<'a, T> {
    data: &'a [T],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
    step: usize,
    starts: &'a [usize],
}

impl<'a, T> Mat<'a, T> {
    /// A matrix by its sizes and strides. In a batch each one lies `step` elements after the one before, or at its place of
    /// `starts`, if there are any.
    pub fn strided(
        data: &'a [T],
        [rows, cols]: [usize; 2],
        [row_stride, col_stride]: [usize; 2],
        step: usize,
        starts: &'a [usize],
    ) -> Self {
        Mat { data, rows, cols, row_stride, col_stride, step, starts }
    }

    /// A row-major matrix; in a batch every product uses it, unless `each` follows.
    pub fn new(data: &'a [T], rows: usize, cols: usize) -> Self {
        assert!(data.len() >= rows * cols, "a {rows} x {cols} matrix needs more than {} elements", data.len());
        Mat::strided(data, [rows, cols], [cols, 1], 0, &[])
    }

    /// The transposed matrix, or matrices.
    pub fn t(self) -> Self {
        Mat { rows: self.cols, cols: self.rows, row_stride: self.col_stride, col_stride: self.row_stride, ..self }
    }

    /// One matrix for each product of a batch, one after another in the slice.
    pub fn each(self) -> Self {
        Mat { step: self.rows * self.cols, ..self }
    }

    fn assert_batch(&self, batch: usize) {
        assert!(self.starts.is_empty() || self.starts.len() == batch, "a place for each of {batch} products");
        if batch == 0 || self.rows == 0 || self.cols == 0 {
            return;
        }
        let last = self.starts.iter().copied().max().unwrap_or((batch - 1) * self.step);
        let need = last + (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride + 1;
        assert!(self.data.len() >= need, "a batch of {batch} needs {need} elements, not {}", self.data.len());
    }

    /// Where the matrix of product `i` begins.
    #[inline]
    fn start(&self, i: usize) -> usize {
        self.starts.get(i).copied().unwrap_or(i * self.step)
    }
}

/// The destination: row-major, the matrices of a batch one after another.
pub struct MatMut<'a, T> {
    data: &'a mut [T],
    rows: usize,
    cols: usize,
}

impl<'a, T> MatMut<'a, T> {
    pub fn new(data: &'a mut [T], rows: usize, cols: usize) -> Self {
        assert!(data.len() >= rows * cols, "a {rows} x {cols} matrix needs more than {} elements", data.len());
        MatMut { data, rows, cols }
    }
}

/// C = A B, or C += A B.
pub fn matmul<T: Real>(a: Mat<T>, b: Mat<T>, c: MatMut<T>, output: Output) {
    batch_matmul(1, a, b, c, output);
}

/// `batch` products: C\[i\] = A\[i\] B\[i\], or +=.
pub fn batch_matmul<T: Real>(batch: usize, a: Mat<T>, b: Mat<T>, c: MatMut<T>, output: Output) {
    assert!(a.rows == c.rows && b.cols == c.cols && a.cols == b.rows, "matrix shapes do not fit together");
    assert!(c.data.len() >= batch * c.rows * c.cols, "the destination is too small for a batch of {batch}");
    a.assert_batch(batch);
    b.assert_batch(batch);
    let product = GemmProduct {
        m: c.rows,
        n: c.cols,
        k: a.cols,
        a: Side { data: a.data.as_ptr(), rs: a.row_stride as isize, cs: a.col_stride as isize },
        b: Side { data: b.data.as_ptr(), rs: b.row_stride as isize, cs: b.col_stride as isize },
        c: Dest { data: c.data.as_mut_ptr(), rs: c.cols as isize, cs: 1 },
    };
    let places = |i: usize| [a.start(i), b.start(i), i * c.rows * c.cols];
    // SAFETY: the assertions put every element of every product inside its slice; C's matrices are disjoint.
    unsafe { product.batch(batch, places, output) }
}

#[derive(Clone, Copy)]
pub(crate) struct Side<T> {
    pub data: *const T,
    pub rs: isize,
    pub cs: isize,
}

#[derive(Clone, Copy)]
pub(crate) struct Dest<T> {
    pub data: *mut T,
    pub rs: isize,
    pub cs: isize,
}

/// One product by pointers. Its unsafe methods ask that every element which sizes and strides reach is valid, and that C's are distinct,
/// and apart from A's and B's.
#[derive(Clone, Copy)]
pub(crate) struct GemmProduct<T> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: Side<T>,
    pub b: Side<T>,
    pub c: Dest<T>,
}

// SAFETY: a product is a description; its unsafe methods ask the caller that the memory may be used.
unsafe impl<T: Sync> Sync for GemmProduct<T> {}

impl<T: Real> GemmProduct<T> {
    fn work(&self) -> usize {
        self.m.saturating_mul(self.n).saturating_mul(self.k.max(1))
    }

    /// The product with columns in parts, or +=; where `begins` has a number for each row of C, the row's products are added to that.
    ///
    /// # Safety
    /// As above, and for the numbers of `begins`.
    pub(crate) unsafe fn run_parts(self, parts: ColumnParts, begins: Option<*const T>, output: Output) {
        if self.m > 0 && self.n > 0 {
            // SAFETY: as the caller promised.
            unsafe { packed::run_parts(self, parts, begins, output) }
        }
    }

    /// Its work, and what reading and writing the matrices takes, in multiplications.
    fn cost(&self) -> usize {
        let sides = [self.m.saturating_mul(self.k), self.k.saturating_mul(self.n), self.m.saturating_mul(self.n)];
        sides.into_iter().fold(self.work(), |sum, n| sum.saturating_add(n.saturating_mul(PASS)))
    }

    /// The product on the pool.
    unsafe fn run(&self, output: Output) {
        if self.m == 0 || self.n == 0 {
            return;
        }
        if few::is_narrow(self) {
            let rows = (FEW / (self.n * self.k)).max(few::ROWS);
            return pool::run(self.m.div_ceil(rows), &|t| {
                let part = self.tile(t * rows, 0, rows.min(self.m - t * rows), self.n);
                // SAFETY: as the caller promised; each task has rows of its own.
                unsafe { few::run(&part, &|_| [0; 3], [0, 1], output) }
            });
        }
        if outer::pays(self) {
            // SAFETY: as the caller promised.
            return unsafe { outer::run(self, 1, |_| [0; 3], output) };
        }
        // Few rows take as long as reading B does.
        let reads = if self.m.min(self.n) <= thin::ROWS { self.m.max(self.n).saturating_mul(self.k) } else { 0 };
        if self.work() < SERIAL && reads < SERIAL / 4 {
            // SAFETY: as the caller promised.
            return unsafe { self.serial(output) };
        }
        let parts = self.parts();
        // SAFETY: as the caller promised.
        unsafe { if parts > 1 { self.split_k(parts, output) } else { self.oriented().whole(output, true) } }
    }

    /// `count` products, each with operands and result at its places.
    unsafe fn batch(&self, count: usize, places: impl Fn(usize) -> [usize; 3] + Sync, output: Output) {
        let at = |i: usize| self.shifted(places(i));
        if count == 1 || self.work() >= SERIAL * 4 {
            // SAFETY: the caller's promise covers every product of the batch.
            return (0..count).for_each(|i| unsafe { at(i).run(output) });
        }
        let is_small = few::pays(self) && self.m > 0 && self.n > 0;
        if outer::pays(self) && !is_small {
            // SAFETY: as above.
            return unsafe { outer::run(self, count, places, output) };
        }
        let each = if is_small { FEW / self.work().max(1) } else { SERIAL / self.cost().max(1) }.clamp(1, count.max(1));
        pool::run(count.div_ceil(each), &|t| {
            let (from, to) = (t * each, count.min((t + 1) * each));
            if is_small {
                // SAFETY: as above; every product has its own C.
                return unsafe { few::run(self, &places, [from, to], output) };
            }
            for i in from..to {
                // SAFETY: as above; every product has its own C.
                unsafe { at(i).serial(output) }
            }
        });
    }

    fn shifted(&self, [a, b, c]: [usize; 3]) -> Self {
        let mut p = *self;
        p.a.data = p.a.data.wrapping_add(a);
        p.b.data = p.b.data.wrapping_add(b);
        p.c.data = p.c.data.wrapping_add(c);
        p
    }

    /// The product of rows `i..i + m`, columns `j..j + n`, over all of k.
    fn tile(&self, i: usize, j: usize, m: usize, n: usize) -> Self {
        let (i, j) = (i as isize, j as isize);
        let mut p = GemmProduct { m, n, ..*self };
        p.a.data = p.a.data.wrapping_offset(i * p.a.rs);
        p.b.data = p.b.data.wrapping_offset(j * p.b.cs);
        p.c.data = p.c.data.wrapping_offset(i * p.c.rs + j * p.c.cs);
        p
    }

    /// Pieces of the inner dimension: more than one where C is small and k long, or all is to read B row by row.
    fn parts(&self) -> usize {
        let area = self.m * self.n;
        if let Some(bytes) = thin::reads_rows(&self.oriented()) {
            return (bytes / thin::BYTES).min(self.k / 64).clamp(1, 2 * MAX_PARTS);
        }
        // The blocks of the smallest ones are a task each, one after another.
        let long = if area <= 1 << 12 { 2048 } else { 32 * 256 };
        if area > 1 << 15 || self.k < long {
            return 1;
        }
        (self.work() / (SERIAL * 2)).min(self.k / 1024).clamp(1, MAX_PARTS)
    }

    /// Sums over pieces of the inner dimension, added up in their order.
    unsafe fn split_k(&self, parts: usize, output: Output) {
        let (area, each) = (self.m * self.n, self.k.div_ceil(parts));
        let mut sums = Scratch::filled(area * parts, T::ZERO);
        let base = sums.as_mut_ptr() as usize;
        let is_thin = thin::reads_rows(&self.oriented()).is_some() && !few::is_deep(self);
        pool::run(parts, &|t| {
            let from = each * t;
            let mut p = GemmProduct { k: each.min(self.k.saturating_sub(from)), ..*self };
            p.a.data = p.a.data.wrapping_offset(from as isize * p.a.cs);
            p.b.data = p.b.data.wrapping_offset(from as isize * p.b.rs);
            p.c = Dest { data: (base as *mut T).wrapping_add(t * area), rs: self.n as isize, cs: 1 };
            // SAFETY: the piece lies within the product; each task has its own sums.
            unsafe { if is_thin { thin::run(p.oriented(), Output::Write, false) } else { p.serial(Output::Write) } }
        });
        let (total, others) = sums.split_at_mut(area);
        for part in others.chunks_exact(area) {
            total.iter_mut().zip(part).for_each(|(total, &v)| *total += v);
        }
        for (i, row) in total.chunks_exact(self.n).enumerate() {
            let to = self.c.data.wrapping_offset(i as isize * self.c.rs);
            // SAFETY: row i and column j are in C.
            row.iter().enumerate().for_each(|(j, &v)| unsafe { store(to.offset(j as isize * self.c.cs), v, output) });
        }
    }

    /// The product on the caller's thread.
    pub(super) unsafe fn serial(&self, output: Output) {
        if self.m == 0 || self.n == 0 {
            return;
        }
        // SAFETY: as the caller promised.
        unsafe {
            if few::is_deep(self) {
                return few::run_deep(self, output);
            }
            let p = self.oriented();
            let cheap = p.b.cs == 1 || p.k * p.n <= 512;
            if cheap && p.work() <= TINY && p.m <= TINY_SIDE && p.k <= TINY_SIDE {
                return dispatch(Tiny { p, output });
            }
            p.whole(output, false)
        }
    }

    /// The product, which is no tiny one, on the pool or the caller's thread.
    unsafe fn whole(&self, output: Output, shared: bool) {
        if self.k == 0 {
            return self.empty(output);
        }
        // SAFETY: as the caller promised.
        unsafe { if thin::pays(self) { thin::run(*self, output, shared) } else { packed::run(*self, output, shared) } }
    }

    /// Sums of nothing.
    fn empty(&self, output: Output) {
        for e in 0..if output == Output::Write { self.m * self.n } else { 0 } {
            let (i, j) = ((e / self.n) as isize, (e % self.n) as isize);
            // SAFETY: row i and column j are in C.
            unsafe { *self.c.data.offset(i * self.c.rs + j * self.c.cs) = T::ZERO }
        }
    }

    /// Vectors are along C's rows, so the longer side is better there.
    fn oriented(&self) -> Self {
        if self.c.cs != 1 || self.n < self.m.min(thin::ROWS + 1) { self.transposed() } else { *self }
    }

    fn transposed(&self) -> Self {
        let flip = |s: Side<T>| Side { data: s.data, rs: s.cs, cs: s.rs };
        let c = Dest { data: self.c.data, rs: self.c.cs, cs: self.c.rs };
        GemmProduct { m: self.n, n: self.m, k: self.k, a: flip(self.b), b: flip(self.a), c }
    }
}

/// A small product on the convolutions' inner loop.
struct Tiny<T> {
    p: GemmProduct<T>,
    output: Output,
}

/// Rows and inner dimension that a small product has at most.
const TINY_SIDE: usize = 64;

impl<T: Real> Choose<T> for Tiny<T> {
    fn with<L: Lanes<T>>(self) {
        let GemmProduct { m, n, k, a, c, .. } = self.p;
        let (mut off, mut lane) = ([0; TINY_SIDE], [0; TINY_SIDE]);
        (0..k).for_each(|l| off[l] = l as isize * a.cs);
        (0..m).for_each(|i| lane[i] = i as isize * a.rs);
        scratch::with((m + k + 1) * 2 * L::N, |buffer: &mut [T]| {
            for j in (0..n).step_by(2 * L::N) {
                let vectors = if n - j > L::N { 2 } else { 1 };
                let (width, cols) = (vectors * L::N, (n - j).min(vectors * L::N));
                let (zero, rest) = buffer.split_at_mut(2 * L::N);
                let (rows, sums) = rest.split_at_mut(k * width);
                zero.fill(T::ZERO);
                let (w, w_stride) = self.columns(j, cols, width, rows);
                let (off, lane, init, out) = (&off[..k], &lane[..m], zero.as_ptr(), sums.as_mut_ptr());
                let tiles =
                    Tiles { x: a.data, off, lane, w, w_stride, vectors, init, init_stride: 0, out, out_stride: width };
                // SAFETY: the tables reach A's elements; `w` has k rows of `width` numbers, `sums` has m.
                unsafe { L::enter(tiles) }
                for (i, row) in sums.chunks_exact(width).take(m).enumerate() {
                    let to = c.data.wrapping_offset(i as isize * c.rs + j as isize * c.cs);
                    // SAFETY: the elements are in row i of C.
                    unsafe { store_row(to, c.cs, &row[..cols], self.output) }
                }
            }
        });
    }
}

impl<T: Real> Tiny<T> {
    /// Columns of B from `j` on as rows of `width` numbers: in place where they are, otherwise copied.
    fn columns(&self, j: usize, cols: usize, width: usize, rows: &mut [T]) -> (*const T, usize) {
        let b = self.p.b;
        let from = b.data.wrapping_offset(j as isize * b.cs);
        if b.cs == 1 && cols == width && b.rs >= 0 {
            return (from, b.rs as usize);
        }
        for (l, row) in rows.chunks_exact_mut(width).enumerate() {
            let from = from.wrapping_offset(l as isize * b.rs);
            // SAFETY: the elements are in row l of B.
            unsafe {
                if b.cs == 1 {
                    row[..cols].copy_from_slice(std::slice::from_raw_parts(from, cols));
                } else {
                    row[..cols].iter_mut().enumerate().for_each(|(i, v)| *v = *from.wrapping_offset(i as isize * b.cs));
                }
            }
        }
        (rows.as_ptr(), width)
    }
}

unsafe fn store_row<T: Real>(to: *mut T, step: isize, row: &[T], output: Output) {
    // SAFETY: the caller's pointers are valid.
    unsafe {
        if step == 1 && output == Output::Write {
            return std::slice::from_raw_parts_mut(to, row.len()).copy_from_slice(row);
        }
        row.iter().enumerate().for_each(|(l, &v)| store(to.wrapping_offset(l as isize * step), v, output));
    }
}

#[inline(always)]
unsafe fn store<T: Real>(to: *mut T, v: T, output: Output) {
    // SAFETY: the caller's pointer is valid.
    unsafe { *to = if output == Output::Accumulate { *to + v } else { v } }
}
