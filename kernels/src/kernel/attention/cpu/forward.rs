//! Outputs, and the logarithms of the sums.

use super::super::ScaledDotProduct;
use super::{
    KEYS, PairTables, QUERIES, QueryKeyValue, QueryRange, SmallProduct, against_keys, pack_columns, pad_rows, padded,
};
use crate::array::scratch::{self, Scratch};
use crate::pool;
use crate::pool::tasks::{self, SendPtr};
use crate::simd::lanes::{Choose, Lanes, dispatch};
use crate::simd::{self, SimdReal};

/// Packed keys and values of all heads.
pub(in super::super) fn forward_numbers(s: &ScaledDotProduct) -> usize {
    let of = |n: usize| s.heads.saturating_mul(n);
    of(padded(s.keys).saturating_mul(s.size)).saturating_add(of(s.keys.saturating_mul(padded(s.value_size))))
}

/// Scores, weights and sums of a block.
pub(in super::super) fn block_numbers(s: &ScaledDotProduct) -> usize {
    QUERIES * (2 * KEYS + padded(s.value_size) + 2)
}

pub(in super::super) fn forward<T: SimdReal>(
    s: &ScaledDotProduct,
    inputs: QueryKeyValue<T>,
    y: &mut [T],
    log_sums: Option<&mut [T]>,
) {
    dispatch::<T, _>(AllBlocks { s, inputs, y, log_sums });
}

struct AllBlocks<'a, T> {
    s: &'a ScaledDotProduct,
    inputs: QueryKeyValue<'a, T>,
    y: &'a mut [T],
    log_sums: Option<&'a mut [T]>,
}

impl<T: SimdReal> Choose<T> for AllBlocks<'_, T> {
    fn with<L: Lanes<T>>(self) {
        let (s, width) = (self.s, 2 * L::N);
        let (k_size, v_size) = (padded(s.keys) * s.size, s.keys * padded(s.value_size));
        let mut keys = Scratch::filled(s.heads * k_size, T::ZERO);
        let mut values = Scratch::filled(s.heads * v_size, T::ZERO);
        let (k, v) = (self.inputs.k, self.inputs.v);
        let scale = T::from_f64(s.scale);
        tasks::parts(&mut keys, k_size.max(1), |head, to| {
            pack_columns(&k[head * s.keys * s.size..][..s.keys * s.size], s.size, width, scale, to)
        });
        tasks::parts(&mut values, v_size.max(1), |head, to| {
            pad_rows(&v[head * s.keys * s.value_size..][..s.keys * s.value_size], s.value_size, to)
        });
        let blocks = s.queries.div_ceil(QUERIES);
        let (y, sums) = (SendPtr(self.y.as_mut_ptr()), self.log_sums.map(|sums| SendPtr(sums.as_mut_ptr())));
        let tables = PairTables::new(s);
        pool::run(s.heads * blocks, &|task| {
            // Long blocks first where the later ones see more.
            let (head, first) = (task / blocks, (blocks - 1 - task % blocks) * QUERIES);
            let n = QUERIES.min(s.queries - first);
            let at = head * s.queries + first;
            let block = QueryBlock {
                s,
                queries: QueryRange { head, first, n },
                q: &self.inputs.q[at * s.size..][..n * s.size],
                keys: &keys[head * k_size..][..k_size],
                values: &values[head * v_size..][..v_size],
                mask: self.inputs.mask,
                tables: &tables,
            };
            // SAFETY: tasks have queries of their own.
            let y = unsafe { y.slice(at * s.value_size, n * s.value_size) };
            // SAFETY: likewise.
            let sums = sums.map(|sums| unsafe { sums.slice(at, n) });
            scratch::with(block_numbers(s), |room: &mut [T]| block.run::<L>(room, y, sums));
        });
    }
}

/// Queries of a head, and what they are held against.
struct QueryBlock<'a, T> {
    s: &'a ScaledDotProduct,
    queries: QueryRange,
    q: &'a [T],
    keys: &'a [T],
    values: &'a [T],
    mask: Option<&'a [T]>,
    tables: &'a PairTables<T>,
}

impl<T: SimdReal> QueryBlock<'_, T> {
    fn run<L: Lanes<T>>(&self, room: &mut [T], y: &mut [T], log_sums: Option<&mut [T]>) {
        let (s, tables, wide) = (self.s, self.tables, padded(self.s.value_size));
        let QueryRange { first, n, .. } = self.queries;
        let (scores, room) = room.split_at_mut(QUERIES * KEYS);
        let (weights, room) = room.split_at_mut(QUERIES * KEYS);
        let (sums, room) = room.split_at_mut(QUERIES);
        let (largest, means) = room.split_at_mut(QUERIES);
        sums.fill(T::ZERO);
        largest.fill(T::from_f64(f64::NEG_INFINITY));
        means[..n * wide].fill(T::ZERO);
        for block in s.key_blocks(s.seen(first + n)) {
            let operands = (self.q, &tables.query[..n], &*tables.size, self.keys);
            against_keys::<T, L>(operands, &block, scores, &tables.zeros);
            s.weigh(self.queries, &block, self.mask, scores, weights, |i, x, w| {
                follow(x, w, &mut largest[i], &mut sums[i], &mut means[i * wide..][..wide]);
            });
            SmallProduct {
                a: weights,
                rows: &tables.score[..n],
                inner: &tables.key[..block.n],
                b: &self.values[block.first * wide..],
                b_stride: wide,
                columns: wide,
                c: means,
                c_stride: wide,
                add: true,
            }
            .run::<L>(&tables.zeros);
        }
        for (i, (y, mean)) in y.chunks_exact_mut(s.value_size).zip(means.chunks_exact(wide)).enumerate() {
            y.copy_from_slice(&mean[..s.value_size]);
            simd::scale(y, T::ONE / sums[i]);
        }
        let all = log_sums.into_iter().flatten().zip(largest.iter().zip(sums.iter()));
        all.for_each(|(to, (largest, sum))| *to = *largest + sum.ln());
    }
}

/// Adds a row of scores to a query's sum as weights relative to the largest score so far; what was added before follows it.
fn follow<T: SimdReal>(x: &[T], w: &mut [T], largest: &mut T, sum: &mut T, mean: &mut [T]) {
    let here = simd::max(x);
    let new = if here > *largest { here } else { *largest };
    if new == T::from_f64(f64::NEG_INFINITY) && !here.is_nan() {
        return w.fill(T::ZERO); // nothing is seen yet
    }
    if new > *largest {
        let factor = (*largest - new).exp();
        *sum = *sum * factor;
        simd::scale(mean, factor);
        *largest = new;
    }
    *sum += simd::exp_sum(w, x, new);
}
