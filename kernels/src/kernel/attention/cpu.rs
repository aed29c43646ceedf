//! On the host: the scores of a block of queries and keys by the tile of the matrix products, in memory that stays in the caches.
//!
//! Forward follows the largest score of a query from block to block (Milakov and Gimelshein, 2018; Dao et al., 2022): what was added
//! up before is scaled when a larger one comes. Backward makes the weights again from the scores and the sums that forward has saved.

mod backward;
mod forward;

pub(super) use backward::{backward, backward_numbers};
pub(super) use forward::{block_numbers, forward, forward_numbers};

use super::ScaledDotProduct;
use crate::dtype::Real;
use crate::gemm::tile::Tiles;
use crate::simd::lanes::Lanes;
use crate::simd::{self, SimdReal};

/// Queries of a block: whole tiles on every machine.
const QUERIES: usize = 56;
/// Keys of a block: whole panels on every machine.
const KEYS: usize = 256;
/// Panels of packed operands have at most as many columns on every machine; rows are padded to a multiple of these.
const PADDING: usize = 32;

/// The arrays of a call.
pub(super) struct QueryKeyValue<'a, T> {
    pub q: &'a [T],
    pub k: &'a [T],
    pub v: &'a [T],
    pub mask: Option<&'a [T]>,
}

/// What a forward pass has made, and the gradient that arrives.
pub(super) struct Passed<'a, T> {
    pub y: &'a [T],
    pub gy: &'a [T],
    pub log_sums: &'a [T],
}

fn padded(n: usize) -> usize {
    n.next_multiple_of(PADDING)
}

/// Rows of `n` numbers, with zeros up to `padded(n)`.
fn pad_rows<T: Real>(x: &[T], n: usize, to: &mut [T]) {
    for (row, to) in x.chunks_exact(n).zip(to.chunks_exact_mut(padded(n))) {
        to[..n].copy_from_slice(row);
        to[n..].fill(T::ZERO);
    }
}

/// Rows of `n` numbers as columns: for each `width` rows a panel with a row of `width` numbers for each of the `n`.
fn pack_columns<T: Real>(x: &[T], n: usize, width: usize, factor: T, to: &mut [T]) {
    for (rows, panel) in x.chunks(n * width).zip(to.chunks_exact_mut(n * width)) {
        panel.fill(T::ZERO);
        for (i, row) in rows.chunks_exact(n).enumerate() {
            row.iter().zip(panel[i..].iter_mut().step_by(width)).for_each(|(&v, to)| *to = v * factor);
        }
    }
}

/// A product of small matrices. `a`: `rows` by `inner` at the distances `row` and `column`; `b` and `c`: rows of `b_stride` and
/// `c_stride` numbers, `columns` of them a multiple of a vector.
struct SmallProduct<'a, T> {
    a: &'a [T],
    rows: &'a [isize],
    inner: &'a [isize],
    b: &'a [T],
    b_stride: usize,
    columns: usize,
    c: &'a mut [T],
    c_stride: usize,
    add: bool,
}

impl<T: Real> SmallProduct<'_, T> {
    /// `c = a b`, or `c += a b`.
    fn run<L: Lanes<T>>(self, zeros: &[T]) {
        let (rows, inner, columns) = (self.rows.len(), self.inner.len(), self.columns);
        if rows == 0 || columns == 0 {
            return;
        }
        let last = |d: &[isize]| d.last().map_or(0, |d| *d as usize);
        assert!(inner == 0 || last(self.rows) + last(self.inner) < self.a.len(), "the elements of a");
        assert!(inner == 0 || (inner - 1) * self.b_stride + columns <= self.b.len(), "the elements of b");
        assert!((rows - 1) * self.c_stride + columns <= self.c.len() && columns % L::N == 0, "the elements of c");
        assert!(zeros.len() >= 2 * L::N, "a row of zeros");
        for from in (0..columns).step_by(2 * L::N) {
            let out = self.c[from..].as_mut_ptr();
            let tiles = Tiles {
                x: self.a.as_ptr(),
                off: self.inner,
                lane: self.rows,
                w: self.b[from.min(self.b.len())..].as_ptr(),
                w_stride: self.b_stride,
                vectors: ((columns - from) / L::N).min(2),
                init: if self.add { out } else { zeros.as_ptr() },
                init_stride: if self.add { self.c_stride } else { 0 },
                out,
                out_stride: self.c_stride,
            };
            // SAFETY: the tables rise, so that their last distances are the largest: the checks above are of all elements.
            unsafe { L::enter(tiles) }
        }
    }
}

/// Products of rows with the packed columns of a block of keys.
fn against_keys<T: SimdReal, L: Lanes<T>>(
    (a, rows, inner, columns): (&[T], &[isize], &[isize], &[T]),
    block: &KeyBlock,
    to: &mut [T],
    zeros: &[T],
) {
    let (n, width) = (inner.len(), 2 * L::N);
    for from in (0..block.n).step_by(width) {
        SmallProduct {
            a,
            rows,
            inner,
            b: &columns[(block.first + from) * n..][..n * width],
            b_stride: width,
            columns: width,
            c: &mut to[from..],
            c_stride: KEYS,
            add: false,
        }
        .run::<L>(zeros);
    }
}

/// The numbers 0, step, 2 step, ..
fn distances(n: usize, step: usize) -> Vec<isize> {
    (0..n).map(|i| (i * step) as isize).collect()
}

/// Distances in the operands of the products, and a row of zeros that sums begin with.
struct PairTables<T> {
    query: Vec<isize>,
    size: Vec<isize>,
    value_query: Vec<isize>,
    value_size: Vec<isize>,
    key: Vec<isize>,
    score: Vec<isize>,
    zeros: Vec<T>,
}

impl<T: Real> PairTables<T> {
    fn new(s: &ScaledDotProduct) -> PairTables<T> {
        PairTables {
            query: distances(QUERIES, s.size),
            size: distances(s.size, 1),
            value_query: distances(QUERIES, s.value_size),
            value_size: distances(s.value_size, 1),
            key: distances(KEYS, 1),
            score: distances(QUERIES, KEYS),
            zeros: vec![T::ZERO; PADDING],
        }
    }
}

/// Queries `first .. first + n` of a head.
#[derive(Clone, Copy)]
struct QueryRange {
    head: usize,
    first: usize,
    n: usize,
}

/// A block of scores: rows of `KEYS` numbers, of `n` keys from `first` on.
struct KeyBlock {
    first: usize,
    n: usize,
}

impl ScaledDotProduct {
    /// Makes weights of the scores of a block: calls `f` for each query with its number in the block, its masked scores of the keys
    /// that it sees, and room for their weights. Those of the other keys are 0.
    fn weigh<T: SimdReal>(
        &self,
        queries: QueryRange,
        block: &KeyBlock,
        mask: Option<&[T]>,
        scores: &mut [T],
        weights: &mut [T],
        mut f: impl FnMut(usize, &[T], &mut [T]),
    ) {
        let rows = scores.chunks_exact_mut(KEYS).zip(weights.chunks_exact_mut(KEYS)).take(queries.n);
        for (i, (x, w)) in rows.enumerate() {
            let query = queries.first + i;
            let seen = self.seen(query + 1).saturating_sub(block.first).min(block.n);
            let (x, w) = (&mut x[..seen], &mut w[..block.n]);
            if let (Some(places), Some(mask)) = (&self.mask, mask) {
                let row = if places.has_rows { query * self.keys } else { 0 };
                simd::add_assign(x, &mask[places.starts[queries.head] + row + block.first..][..seen]);
            }
            w[seen..].fill(T::ZERO);
            f(i, x, &mut w[..seen]);
        }
    }

    fn key_blocks(&self, seen: usize) -> impl Iterator<Item = KeyBlock> {
        (0..seen).step_by(KEYS).map(move |first| KeyBlock { first, n: KEYS.min(seen - first) })
    }
}
