//! Against sums in double, pair by pair.

use super::cpu::{Passed, QueryKeyValue, backward, forward};
use super::{ScaledDotProduct, ScoreMask};
use crate::array::Output;

fn noise(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|i| (((i + seed) * 7919 + 13) % 1009) as f64 / 500.0 - 1.0).collect()
}

struct Case {
    s: ScaledDotProduct,
    q: Vec<f64>,
    k: Vec<f64>,
    v: Vec<f64>,
    mask: Vec<f64>,
    gy: Vec<f64>,
}

impl Case {
    fn new([heads, queries, keys, size, value_size]: [usize; 5], causal: bool, masked: Option<bool>) -> Case {
        let rows = |has: bool| if has { queries } else { 1 };
        let mask = masked.map(|has_rows| ScoreMask {
            starts: (0..heads).map(|h| h % 2 * rows(has_rows) * keys).collect(),
            has_rows,
        });
        let n = mask.as_ref().map_or(0, |m| 2 * rows(m.has_rows) * keys);
        let s = ScaledDotProduct { heads, queries, keys, size, value_size, scale: 0.7, causal, mask };
        let (q, k, v) = (heads * queries * size, heads * keys * size, heads * keys * value_size);
        let mut mask = noise(n, 4);
        mask.iter_mut().skip(5).step_by(7).for_each(|m| *m = f64::NEG_INFINITY);
        Case { s, q: noise(q, 1), k: noise(k, 2), v: noise(v, 3), mask, gy: noise(heads * queries * value_size, 5) }
    }

    /// The weights of each query.
    fn weights(&self, head: usize, query: usize) -> Vec<f64> {
        let s = &self.s;
        let q = &self.q[(head * s.queries + query) * s.size..][..s.size];
        let score = |key: usize| {
            let k = &self.k[(head * s.keys + key) * s.size..][..s.size];
            let product: f64 = q.iter().zip(k).map(|(q, k)| q * k).sum();
            let added = s
                .mask
                .as_ref()
                .map_or(0.0, |m| self.mask[m.starts[head] + if m.has_rows { query * s.keys } else { 0 } + key]);
            if s.causal && key > query { f64::NEG_INFINITY } else { s.scale * product + added }
        };
        let scores: Vec<f64> = (0..s.keys).map(score).collect();
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = scores.iter().map(|x| (x - max).exp()).sum();
        scores.iter().map(|x| (x - max).exp() / sum).collect()
    }

    /// y, gq, gk, gv.
    fn expected(&self) -> [Vec<f64>; 4] {
        let s = &self.s;
        let [mut y, mut gq, mut gk, mut gv] =
            [self.gy.len(), self.q.len(), self.k.len(), self.v.len()].map(|n| vec![0.0; n]);
        for (head, query) in (0..s.heads).flat_map(|h| (0..s.queries).map(move |q| (h, q))) {
            let (at, w) = (head * s.queries + query, self.weights(head, query));
            let gy = &self.gy[at * s.value_size..][..s.value_size];
            let value = |key: usize| (head * s.keys + key) * s.value_size;
            let towards = |key: usize| gy.iter().zip(&self.v[value(key)..]).map(|(g, v)| g * v).sum::<f64>();
            let mean: f64 = (0..s.keys).map(|key| w[key] * towards(key)).sum();
            for key in 0..s.keys {
                for e in 0..s.value_size {
                    y[at * s.value_size + e] += w[key] * self.v[value(key) + e];
                    gv[value(key) + e] += w[key] * gy[e];
                }
                let g = s.scale * w[key] * (towards(key) - mean);
                for e in 0..s.size {
                    let (q, k) = (at * s.size + e, (head * s.keys + key) * s.size + e);
                    gq[q] += g * self.k[k];
                    gk[k] += g * self.q[q];
                }
            }
        }
        [y, gq, gk, gv]
    }

    fn check(&self) {
        let want = self.expected();
        let single = |x: &[f64]| x.iter().map(|&v| v as f32).collect::<Vec<f32>>();
        let [q, k, v, mask, gy] = [&self.q, &self.k, &self.v, &self.mask, &self.gy].map(|x| single(x));
        let inputs = || QueryKeyValue { q: &q, k: &k, v: &v, mask: self.s.mask.as_ref().map(|_| &*mask) };
        let (mut y, mut log_sums) = (vec![0.0f32; gy.len()], vec![0.0f32; self.s.rows()]);
        forward(&self.s, inputs(), &mut y, Some(&mut log_sums));
        let [mut gq, mut gk, mut gv] = [&q, &k, &v].map(|x| vec![1.0f32; x.len()]);
        let outputs =
            [Some((Output::Accumulate, &mut *gq)), Some((Output::Write, &mut *gk)), Some((Output::Write, &mut *gv))];
        backward(&self.s, inputs(), Passed { y: &y, gy: &gy, log_sums: &log_sums }, outputs);
        gq.iter_mut().for_each(|g| *g -= 1.0);
        for (found, want) in [y, gq, gk, gv].iter().zip(&want) {
            let far = found.iter().zip(want).map(|(f, w)| (*f as f64 - w).abs() / (1.0 + w.abs()));
            assert!(far.fold(0.0, f64::max) < 2e-5);
        }
    }
}

unit_test!(all_blocks_and_sizes);
fn all_blocks_and_sizes() {
    for sizes in [[1, 1, 1, 1, 1], [2, 5, 7, 3, 2], [3, 57, 300, 16, 33], [1, 130, 513, 64, 64], [9, 3, 260, 8, 40]] {
        Case::new(sizes, false, None).check();
        Case::new(sizes, true, None).check();
    }
}

unit_test!(masks_are_added);
fn masks_are_added() {
    for has_rows in [false, true] {
        Case::new([4, 60, 270, 8, 8], false, Some(has_rows)).check();
        Case::new([2, 9, 20, 4, 5], true, Some(has_rows)).check();
    }
}

unit_test!(a_query_that_sees_nothing_is_nan);
fn a_query_that_sees_nothing_is_nan() {
    let s = ScaledDotProduct {
        heads: 1,
        queries: 2,
        keys: 2,
        size: 1,
        value_size: 1,
        scale: 1.0,
        causal: false,
        mask: Some(ScoreMask { starts: vec![0], has_rows: true }),
    };
    let nothing = f32::NEG_INFINITY;
    let inputs =
        QueryKeyValue { q: &[1.0, 1.0], k: &[0.0, 0.0], v: &[1.0, 3.0], mask: Some(&[nothing, nothing, 0.0, 0.0]) };
    let mut y = [0.0f32; 2];
    forward(&s, inputs, &mut y, None);
    assert!(y[0].is_nan() && y[1] == 2.0);
}
