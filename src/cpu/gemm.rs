//! Matrix products: crate `gemm` on fixed tiles of C, so that the thread count cannot change a result.
//!
//! The tiles, and so the order of every element's sum, depend on the sizes alone.

use super::pool;
use crate::dtype::Real;

/// What happens to the destination's old values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Write,
    Accumulate,
}

/// Products below this many multiplications run on the caller's thread in one piece.
const SERIAL: usize = 1 << 20;
/// Products below this many multiplications skip the crate, whose set-up costs more than they do.
const TINY: usize = 1 << 12;
/// Rows or columns of C that a task has at least: smaller tiles pack A and B too often.
const MIN_TILE: usize = 128;
/// Tasks that the grid aims at: enough for balance on many threads.
const TASKS: usize = 32;
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
}

impl<'a, T> Mat<'a, T> {
    /// A row-major matrix; in a batch every product uses it, unless `each` follows.
    pub fn new(data: &'a [T], rows: usize, cols: usize) -> Self {
        assert!(data.len() >= rows * cols, "a {rows} x {cols} matrix needs more than {} elements", data.len());
        Mat { data, rows, cols, row_stride: cols, col_stride: 1, step: 0 }
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
        let need = batch.saturating_sub(1) * self.step + self.rows * self.cols;
        assert!(self.data.len() >= need, "a batch of {batch} needs {need} elements, not {}", self.data.len());
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
    let product = Product {
        m: c.rows,
        n: c.cols,
        k: a.cols,
        a: Side { data: a.data.as_ptr(), rs: a.row_stride as isize, cs: a.col_stride as isize },
        b: Side { data: b.data.as_ptr(), rs: b.row_stride as isize, cs: b.col_stride as isize },
        c: Dest { data: c.data.as_mut_ptr(), rs: c.cols as isize, cs: 1 },
    };
    let steps = [a.step, b.step, c.rows * c.cols];
    // SAFETY: the assertions put every element of every product inside its slice; C's matrices are disjoint.
    unsafe { product.batch(batch, steps, output) }
}

/// C = A B or C += A B for matrices given by pointers and strides in elements.
///
/// # Safety
/// Every element that the sizes and strides reach is valid; C's elements are distinct, and apart from A's and B's.
#[rustfmt::skip]
pub unsafe fn gemm<T: Real>(
    m: usize, n: usize, k: usize,
    a: *const T, rsa: isize, csa: isize,
    b: *const T, rsb: isize, csb: isize,
    c: *mut T, rsc: isize, csc: isize,
    output: Output,
) {
    let product =
        Product { m, n, k, a: Side { data: a, rs: rsa, cs: csa }, b: Side { data: b, rs: rsb, cs: csb }, c: Dest { data: c, rs: rsc, cs: csc } };
    // SAFETY: the caller's promise.
    unsafe { product.run(output) }
}

#[derive(Clone, Copy)]
pub(super) struct Side<T> {
    pub data: *const T,
    pub rs: isize,
    pub cs: isize,
}

#[derive(Clone, Copy)]
pub(super) struct Dest<T> {
    pub data: *mut T,
    pub rs: isize,
    pub cs: isize,
}

/// One product by pointers. Its unsafe methods ask what [`gemm`] asks.
#[derive(Clone, Copy)]
pub(super) struct Product<T> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: Side<T>,
    pub b: Side<T>,
    pub c: Dest<T>,
}

// SAFETY: a product is a description; its unsafe methods ask the caller that the memory may be used.
unsafe impl<T: Sync> Sync for Product<T> {}

impl<T: Real> Product<T> {
    fn work(&self) -> usize {
        self.m.saturating_mul(self.n).saturating_mul(self.k.max(1))
    }

    /// The product on the pool.
    unsafe fn run(&self, output: Output) {
        if self.work() < SERIAL {
            // SAFETY: as the caller promised.
            return unsafe { self.serial(output) };
        }
        let parts = self.parts();
        // SAFETY: as the caller promised.
        unsafe { if parts > 1 { self.split_k(parts, output) } else { self.tiles(output) } }
    }

    /// `count` products whose operands lie `steps` elements apart.
    unsafe fn batch(&self, count: usize, steps: [usize; 3], output: Output) {
        let at = |i: usize| self.shifted(steps.map(|s| s * i));
        if count == 1 || self.work() >= SERIAL * 4 {
            // SAFETY: the caller's promise covers every product of the batch.
            return (0..count).for_each(|i| unsafe { at(i).run(output) });
        }
        let each = (SERIAL / self.work().max(1)).clamp(1, count.max(1));
        pool::run(count.div_ceil(each), &|t| {
            for i in t * each..count.min((t + 1) * each) {
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
        let mut p = Product { m, n, ..*self };
        p.a.data = p.a.data.wrapping_offset(i * p.a.rs);
        p.b.data = p.b.data.wrapping_offset(j * p.b.cs);
        p.c.data = p.c.data.wrapping_offset(i * p.c.rs + j * p.c.cs);
        p
    }

    unsafe fn tiles(&self, output: Output) {
        let (tm, tn) = self.tile_size();
        let across = self.n.div_ceil(tn);
        pool::run(self.m.div_ceil(tm) * across, &|t| {
            let (i, j) = (t / across * tm, t % across * tn);
            let tile = self.tile(i, j, tm.min(self.m - i), tn.min(self.n - j));
            // SAFETY: a tile lies within the product, and tiles do not share elements of C.
            unsafe { tile.serial(output) }
        });
    }

    /// Halves the longer side until there are enough tasks or the tiles are as small as is good.
    fn tile_size(&self) -> (usize, usize) {
        let (mut tm, mut tn) = (self.m, self.n);
        let target = (self.work() / SERIAL).clamp(1, TASKS);
        while self.m.div_ceil(tm) * self.n.div_ceil(tn) < target {
            let longer = if tm >= tn { &mut tm } else { &mut tn };
            if *longer < 2 * MIN_TILE {
                break;
            }
            *longer = longer.div_ceil(2).next_multiple_of(48).min(*longer);
        }
        (tm, tn)
    }

    /// Pieces of the inner dimension: more than one where C is small and k long.
    fn parts(&self) -> usize {
        let area = self.m * self.n;
        if area > 1 << 15 || self.k < 32 * 256 {
            return 1;
        }
        (self.work() / (SERIAL * 2)).min(self.k / 1024).clamp(1, MAX_PARTS)
    }

    /// Sums over pieces of the inner dimension, added up in their order.
    unsafe fn split_k(&self, parts: usize, output: Output) {
        let (area, each) = (self.m * self.n, self.k.div_ceil(parts));
        let mut sums = vec![T::ZERO; area * parts];
        let base = sums.as_mut_ptr() as usize;
        pool::run(parts, &|t| {
            let from = each * t;
            let mut p = Product { k: each.min(self.k.saturating_sub(from)), ..*self };
            p.a.data = p.a.data.wrapping_offset(from as isize * p.a.cs);
            p.b.data = p.b.data.wrapping_offset(from as isize * p.b.rs);
            p.c = Dest { data: (base as *mut T).wrapping_add(t * area), rs: self.n as isize, cs: 1 };
            // SAFETY: the piece lies within the product; each task has its own sums.
            unsafe { p.serial(Output::Write) }
        });
        for e in 0..area {
            let total = (0..parts).map(|t| sums[t * area + e]).fold(T::ZERO, |s, v| s + v);
            let (i, j) = ((e / self.n) as isize, (e % self.n) as isize);
            // SAFETY: row i and column j are in C.
            unsafe { store(self.c.data.offset(i * self.c.rs + j * self.c.cs), total, output) }
        }
    }

    /// The product on the caller's thread.
    pub(super) unsafe fn serial(&self, output: Output) {
        if self.m == 0 || self.n == 0 {
            return;
        }
        // SAFETY: as the caller promised.
        unsafe {
            if self.work() < TINY && self.tiny(output) {
                return;
            }
            self.crate_gemm(output)
        }
    }

    unsafe fn crate_gemm(&self, output: Output) {
        let Product { m, n, k, a, b, c } = *self;
        let read = output == Output::Accumulate;
        let none = gemm::Parallelism::None;
        // SAFETY: as the caller promised; the crate takes f32 and f64, the two types that are Real.
        unsafe {
            gemm::gemm(
                m,
                n,
                k,
                c.data,
                c.cs,
                c.rs,
                read,
                a.data,
                a.cs,
                a.rs,
                b.data,
                b.cs,
                b.rs,
                T::ONE,
                T::ONE,
                false,
                false,
                false,
                none,
            );
        }
    }

    /// A small product by plain loops over rows of C, or false where the layout does not suit them.
    unsafe fn tiny(&self, output: Output) -> bool {
        // Rows of B and of C must be contiguous; where their columns are, the transposed product has that.
        let p = if self.c.cs == 1 && self.b.cs == 1 { *self } else { self.transposed() };
        if p.c.cs != 1 || p.b.cs != 1 || p.n > TINY_ROW {
            return false;
        }
        // SAFETY: the same product; rows are contiguous as was just checked.
        unsafe { p.row_loops(output) }
        true
    }

    fn transposed(&self) -> Self {
        let flip = |s: Side<T>| Side { data: s.data, rs: s.cs, cs: s.rs };
        let c = Dest { data: self.c.data, rs: self.c.cs, cs: self.c.rs };
        Product { m: self.n, n: self.m, k: self.k, a: flip(self.b), b: flip(self.a), c }
    }

    unsafe fn row_loops(&self, output: Output) {
        let mut sum = [T::ZERO; TINY_ROW];
        for i in 0..self.m as isize {
            let sum = &mut sum[..self.n];
            sum.fill(T::ZERO);
            for l in 0..self.k as isize {
                // SAFETY: row l of B has n contiguous elements, and A has element (i, l).
                let (s, row) = unsafe {
                    (
                        *self.a.data.offset(i * self.a.rs + l * self.a.cs),
                        std::slice::from_raw_parts(self.b.data.offset(l * self.b.rs), self.n),
                    )
                };
                sum.iter_mut().zip(row).for_each(|(o, &b)| *o += s * b);
            }
            for (j, &v) in sum.iter().enumerate() {
                // SAFETY: row i of C has n contiguous elements.
                unsafe { store(self.c.data.offset(i * self.c.rs + j as isize), v, output) }
            }
        }
    }
}

/// The longest row that the plain loops keep on the stack.
const TINY_ROW: usize = 64;

#[inline(always)]
unsafe fn store<T: Real>(to: *mut T, v: T, output: Output) {
    // SAFETY: the caller's pointer is valid.
    unsafe { *to = if output == Output::Accumulate { *to + v } else { v } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise<T: Real>(n: usize, seed: u64) -> Vec<T> {
        let mut s = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            s ^= s << 13;
            s ^= s >> 7;
            s ^= s << 17;
            T::from_f64((s >> 40) as f64 / (1u64 << 24) as f64 - 0.5)
        };
        (0..n).map(|_| next()).collect()
    }

    fn check<T: Real>(m: usize, n: usize, k: usize, ta: bool, tb: bool, batch: usize, eps: f64) {
        let (a, b) = (noise::<T>(batch * m * k, 1), noise::<T>(batch * k * n, 2));
        let view_a = if ta { Mat::new(&a, k, m).each().t() } else { Mat::new(&a, m, k).each() };
        let view_b = if tb { Mat::new(&b, n, k).each().t() } else { Mat::new(&b, k, n).each() };
        for output in [Output::Write, Output::Accumulate] {
            let old = noise::<T>(batch * m * n, 3);
            let mut c = old.clone();
            batch_matmul(batch, view_a, view_b, MatMut::new(&mut c, m, n), output);
            for e in 0..batch * m * n {
                let (p, i, j) = (e / (m * n), e / n % m, e % n);
                let at = |l: usize| p * m * k + if ta { l * m + i } else { i * k + l };
                let bt = |l: usize| p * k * n + if tb { j * k + l } else { l * n + j };
                let sum: f64 = (0..k).map(|l| a[at(l)].to_f64() * b[bt(l)].to_f64()).sum();
                let want = sum + if output == Output::Accumulate { old[e].to_f64() } else { 0.0 };
                let close = (c[e].to_f64() - want).abs() <= eps * (k as f64 + 1.0).sqrt();
                assert!(close, "{m} {n} {k} {ta} {tb}: {:?} for {want}", c[e]);
            }
        }
    }

    #[test]
    fn products_of_all_shapes() {
        for (m, n, k) in
            [(1, 1, 1), (3, 5, 2), (7, 1, 9), (1, 8, 33), (16, 16, 16), (17, 65, 3), (70, 33, 40), (5, 4, 0)]
        {
            for t in 0..4 {
                check::<f32>(m, n, k, t & 1 > 0, t & 2 > 0, 1, 1e-6);
                check::<f64>(m, n, k, t & 1 > 0, t & 2 > 0, 3, 1e-15);
            }
        }
    }

    #[test]
    fn split_products() {
        check::<f32>(260, 150, 40, false, true, 1, 1e-6);
        check::<f32>(150, 300, 31, true, false, 1, 1e-6);
        check::<f64>(8, 12, 33_000, false, false, 1, 1e-13);
        check::<f32>(12, 8, 33_000, true, true, 1, 1e-4);
        check::<f32>(130, 130, 64, false, false, 2, 1e-6);
    }

    #[test]
    fn empty_products() {
        let mut c = [5.0f32; 4];
        matmul(Mat::new(&[], 0, 3), Mat::new(&[1.0; 6], 3, 2), MatMut::new(&mut c, 0, 2), Output::Write);
        assert_eq!(c, [5.0; 4]);
        matmul(Mat::new(&[], 2, 0), Mat::new(&[], 0, 2), MatMut::new(&mut c, 2, 2), Output::Accumulate);
        assert_eq!(c, [5.0; 4]);
        matmul(Mat::new(&[], 2, 0), Mat::new(&[], 0, 2), MatMut::new(&mut c, 2, 2), Output::Write);
        assert_eq!(c, [0.0; 4]);
    }

    #[test]
    fn one_operand_for_the_whole_batch() {
        let (a, b) = (noise::<f64>(6, 1), noise::<f64>(4 * 12, 2));
        let (mut c, mut d) = (vec![0.0; 4 * 8], vec![0.0; 8]);
        batch_matmul(4, Mat::new(&a, 2, 3), Mat::new(&b, 3, 4).each(), MatMut::new(&mut c, 2, 4), Output::Write);
        for i in 0..4 {
            matmul(Mat::new(&a, 2, 3), Mat::new(&b[i * 12..], 3, 4), MatMut::new(&mut d, 2, 4), Output::Write);
            assert_eq!(d, c[i * 8..][..8]);
        }
    }

    #[test]
    fn results_do_not_depend_on_the_thread_count() {
        let before = pool::num_threads();
        for (m, n, k) in [(300, 260, 70), (12, 20, 40_000), (64, 2000, 30)] {
            let (a, b) = (noise::<f32>(m * k, 1), noise::<f32>(k * n, 2));
            let results = [1, 2, 3].map(|threads| {
                pool::set_num_threads(threads);
                let mut c = vec![0.0; m * n];
                matmul(Mat::new(&a, m, k), Mat::new(&b, k, n), MatMut::new(&mut c, m, n), Output::Write);
                c
            });
            pool::set_num_threads(before);
            assert!(results[0] == results[1] && results[0] == results[2], "{m} {n} {k}");
        }
    }
}
