//! Gradients. With the weights p = exp(scores - log_sums): gv = p' gy, gp = gy v', gs = p (gp - sum(gy y)), gq = scale gs k,
//! gk = scale gs' q. A task has some of a head's queries, and sums for keys and values of its own.

use super::super::ScaledDotProduct;
use super::{
    KEYS, KeyBlock, PairTables, Passed, QUERIES, QueryKeyValue, QueryRange, SmallProduct, against_keys, pack_columns,
    pad_rows, padded,
};
use crate::array::Output;
use crate::array::scratch::Scratch;
use crate::pool;
use crate::pool::tasks::SendPtr;
use crate::simd::lanes::{Choose, Lanes, WithLanes, dispatch};
use crate::simd::{self, SimdReal};

/// Tasks that few heads are shared out to.
const TASKS: usize = 8;

/// Parts that the queries of a head are done in, by sizes alone.
fn parts(s: &ScaledDotProduct) -> usize {
    TASKS.div_ceil(s.heads.max(1)).min(s.queries.div_ceil(QUERIES)).max(1)
}

/// Numbers of a task: packed operands, blocks, and its sums.
fn task_numbers(s: &ScaledDotProduct) -> usize {
    let (size, wide) = (padded(s.size), padded(s.value_size));
    let packed = padded(s.keys).saturating_mul(s.size + s.value_size) + s.keys.saturating_mul(size);
    packed.saturating_add(QUERIES * (3 * KEYS + 2 * size + wide + 1))
}

/// Numbers of all tasks' sums.
fn sum_numbers(s: &ScaledDotProduct) -> usize {
    s.keys.saturating_mul(padded(s.size) + padded(s.value_size))
}

pub(in super::super) fn backward_numbers(s: &ScaledDotProduct) -> usize {
    let tasks = s.heads.saturating_mul(parts(s));
    tasks.saturating_mul(sum_numbers(s)).saturating_add(pool::num_threads().min(tasks).saturating_mul(task_numbers(s)))
}

type AttentionGradient<'a, T> = Option<(Output, &'a mut [T])>;

pub(in super::super) fn backward<T: SimdReal>(
    s: &ScaledDotProduct,
    inputs: QueryKeyValue<T>,
    passed: Passed<T>,
    gradients: [AttentionGradient<T>; 3],
) {
    let mut sums = Scratch::filled(s.heads * parts(s) * sum_numbers(s), T::ZERO);
    let [gq, gk, gv] = gradients;
    let gq = gq.map(|(output, gq)| (output, SendPtr(gq.as_mut_ptr())));
    dispatch::<T, _>(AllParts { s, inputs, passed, gq, sums: &mut sums });
    // Sums of the parts in their order, for each head.
    let (size, wide) = (padded(s.size), padded(s.value_size));
    let scale = T::from_f64(s.scale);
    for (gradient, n, at, stride, factor) in
        [(gk, s.size, 0, size, scale), (gv, s.value_size, s.keys * size, wide, T::ONE)]
    {
        let Some((output, g)) = gradient else { continue };
        let sums = &*sums;
        pool::tasks::parts(g, s.keys * n, |head, g| {
            if output == Output::Write {
                g.fill(T::ZERO);
            }
            for part in sums.chunks_exact(sum_numbers(s)).skip(head * parts(s)).take(parts(s)) {
                let rows = part[at..].chunks_exact(stride);
                g.chunks_exact_mut(n).zip(rows).for_each(|(g, row)| add_scaled(g, row, factor));
            }
        });
    }
}

struct AllParts<'a, T> {
    s: &'a ScaledDotProduct,
    inputs: QueryKeyValue<'a, T>,
    passed: Passed<'a, T>,
    gq: Option<(Output, SendPtr<T>)>,
    sums: &'a mut [T],
}

impl<T: SimdReal> Choose<T> for AllParts<'_, T> {
    fn with<L: Lanes<T>>(self) {
        let (s, parts) = (self.s, parts(self.s));
        let tables = PairTables::new(s);
        let sums = SendPtr(self.sums.as_mut_ptr());
        let blocks = s.queries.div_ceil(QUERIES);
        pool::run(s.heads * parts, &|task| {
            let (head, part) = (task / parts, task % parts);
            let mut work = HeadPart::new::<L>(s, &self.inputs, &tables, head);
            // SAFETY: tasks have sums of their own.
            let sums = unsafe { sums.slice(task * sum_numbers(s), sum_numbers(s)) };
            // Every so many blocks, so that parts of a causal head do alike.
            for block in (part..blocks).step_by(parts) {
                let first = block * QUERIES;
                let n = QUERIES.min(s.queries - first);
                let at = head * s.queries + first;
                let rows = QueryRows {
                    range: QueryRange { head, first, n },
                    q: &self.inputs.q[at * s.size..][..n * s.size],
                    y: &self.passed.y[at * s.value_size..][..n * s.value_size],
                    gy: &self.passed.gy[at * s.value_size..][..n * s.value_size],
                    log_sums: &self.passed.log_sums[at..][..n],
                };
                work.block::<L>(&rows, sums);
                if let Some((output, gq)) = self.gq {
                    // SAFETY: blocks have queries of their own.
                    let gq = unsafe { gq.slice(at * s.size, n * s.size) };
                    if output == Output::Write {
                        gq.fill(T::ZERO);
                    }
                    let made = work.gq.chunks_exact(padded(s.size));
                    let scale = T::from_f64(s.scale);
                    gq.chunks_exact_mut(s.size).zip(made).for_each(|(g, row)| add_scaled(g, row, scale));
                }
            }
        });
    }
}

/// Queries and what a forward pass made of them.
struct QueryRows<'a, T> {
    range: QueryRange,
    q: &'a [T],
    y: &'a [T],
    gy: &'a [T],
    log_sums: &'a [T],
}

/// The operands of a head, packed for the products, and room for a block.
struct HeadPart<'a, T: SimdReal> {
    s: &'a ScaledDotProduct,
    mask: Option<&'a [T]>,
    tables: &'a PairTables<T>,
    key_columns: Scratch<T>,
    value_columns: Scratch<T>,
    keys: Scratch<T>,
    scores: Scratch<T>,
    weights: Scratch<T>,
    weight_gradients: Scratch<T>,
    queries: Scratch<T>,
    output_gradients: Scratch<T>,
    gq: Scratch<T>,
    /// For each query `sum(gy y)`.
    means: Scratch<T>,
}

impl<'a, T: SimdReal> HeadPart<'a, T> {
    fn new<L: Lanes<T>>(
        s: &'a ScaledDotProduct,
        inputs: &QueryKeyValue<'a, T>,
        tables: &'a PairTables<T>,
        head: usize,
    ) -> Self {
        let (width, keys) = (2 * L::N, padded(s.keys));
        let of_head = |x: &'a [T], n: usize| &x[head * n..][..n];
        let (k, v) = (of_head(inputs.k, s.keys * s.size), of_head(inputs.v, s.keys * s.value_size));
        let empty = |n: usize| Scratch::filled(n, T::ZERO);
        let mut part = HeadPart {
            s,
            mask: inputs.mask,
            tables,
            key_columns: empty(keys * s.size),
            value_columns: empty(keys * s.value_size),
            keys: empty(s.keys * padded(s.size)),
            scores: empty(QUERIES * KEYS),
            weights: empty(QUERIES * KEYS),
            weight_gradients: empty(QUERIES * KEYS),
            queries: empty(QUERIES * padded(s.size)),
            output_gradients: empty(QUERIES * padded(s.value_size)),
            gq: empty(QUERIES * padded(s.size)),
            means: empty(QUERIES),
        };
        pack_columns(k, s.size, width, T::from_f64(s.scale), &mut part.key_columns);
        pack_columns(v, s.value_size, width, T::ONE, &mut part.value_columns);
        pad_rows(k, s.size, &mut part.keys);
        part
    }

    /// The gradients of a block of queries: theirs in `gq`, not yet scaled; those of keys and values are added to `sums`.
    fn block<L: Lanes<T>>(&mut self, rows: &QueryRows<T>, sums: &mut [T]) {
        let (s, tables, QueryRange { first, n, .. }) = (self.s, self.tables, rows.range);
        let (size, wide) = (padded(s.size), padded(s.value_size));
        let (key_sums, value_sums) = sums.split_at_mut(s.keys * size);
        pad_rows(rows.q, s.size, &mut self.queries);
        pad_rows(rows.gy, s.value_size, &mut self.output_gradients);
        self.gq.fill(T::ZERO);
        let outputs = rows.gy.chunks_exact(s.value_size).zip(rows.y.chunks_exact(s.value_size));
        self.means.iter_mut().zip(outputs).for_each(|(mean, (gy, y))| *mean = simd::dot(gy, y));
        for block in s.key_blocks(s.seen(first + n)) {
            self.weights::<L>(rows, &block);
            self.score_gradients::<L>(rows, &block);
            let (across, down) = (&tables.score[..n], &tables.key[..block.n]);
            let of = |a, b, b_stride, c| SmallProduct {
                a,
                rows: down,
                inner: across,
                b,
                b_stride,
                columns: b_stride,
                c,
                c_stride: b_stride,
                add: true,
            };
            of(&self.weights, &self.output_gradients, wide, &mut value_sums[block.first * wide..])
                .run::<L>(&tables.zeros);
            of(&self.weight_gradients, &self.queries, size, &mut key_sums[block.first * size..])
                .run::<L>(&tables.zeros);
            SmallProduct {
                a: &self.weight_gradients,
                rows: across,
                inner: down,
                b: &self.keys[block.first * size..],
                b_stride: size,
                columns: size,
                c: &mut self.gq,
                c_stride: size,
                add: true,
            }
            .run::<L>(&tables.zeros);
        }
    }

    /// `weights = exp(scores - log_sums)`, 0 where a key is not seen.
    fn weights<L: Lanes<T>>(&mut self, rows: &QueryRows<T>, block: &KeyBlock) {
        let tables = self.tables;
        let operands = (rows.q, &tables.query[..rows.range.n], &*tables.size, &*self.key_columns);
        against_keys::<T, L>(operands, block, &mut self.scores, &tables.zeros);
        self.s.weigh(rows.range, block, self.mask, &mut self.scores, &mut self.weights, |i, x, w| {
            simd::exp_sum(w, x, rows.log_sums[i]);
        });
    }

    /// `weight_gradients = weights (gy v' - means)`.
    fn score_gradients<L: Lanes<T>>(&mut self, rows: &QueryRows<T>, block: &KeyBlock) {
        let (tables, n) = (self.tables, rows.range.n);
        let operands = (rows.gy, &tables.value_query[..n], &*tables.value_size, &*self.value_columns);
        against_keys::<T, L>(operands, block, &mut self.weight_gradients, &tables.zeros);
        let made = self.weight_gradients.chunks_exact_mut(KEYS).zip(self.weights.chunks_exact(KEYS));
        for ((g, w), &mean) in made.zip(self.means.iter()).take(n) {
            // SAFETY: L is what the machine has.
            unsafe { L::enter(FromOutputs { g: &mut g[..block.n], w: &w[..block.n], mean }) }
        }
    }
}

/// `g = w (g - mean)`
struct FromOutputs<'a, T> {
    g: &'a mut [T],
    w: &'a [T],
    mean: T,
}

impl<T: SimdReal> WithLanes<T> for FromOutputs<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        for (g, &w) in self.g.iter_mut().zip(self.w) {
            *g = w * (*g - self.mean);
        }
    }
}

/// `g += factor row`
fn add_scaled<T: SimdReal>(g: &mut [T], row: &[T], factor: T) {
    g.iter_mut().zip(row).for_each(|(g, &v)| *g += factor * v);
}
