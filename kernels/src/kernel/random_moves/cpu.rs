//! On the host.

use super::super::axis::Axis;
use super::{MoveKind, MoveRule};
use crate::pool::tasks;
use crate::simd::{self, SimdReal};

/// Elements of a task, if a block has fewer.
const TASK: usize = 1 << 14;

/// The random numbers of all samples, and what stands where no element is moved to.
pub(super) struct MoveTable<'a> {
    pub numbers: &'a [f64],
    pub columns: usize,
    pub constant: f64,
}

impl MoveTable<'_> {
    fn amount(&self, rule: &MoveRule, sample: usize) -> i64 {
        rule.amount(self.numbers.get(sample * self.columns + rule.column).copied().unwrap_or(0.0))
    }
}

/// Along one axis: block `o` belongs to sample `o / parts`.
pub(super) fn axis<T: SimdReal>(
    at: &Axis,
    parts: usize,
    rule: &MoveRule,
    table: &MoveTable,
    x: &[T],
    y: &mut [T],
    back: bool,
) {
    let (n, to) = (rule.n * at.inner, rule.to * at.inner);
    let constant = T::from_f64(table.constant);
    let size = if back { n } else { to };
    let per = (TASK / size).max(1);
    tasks::parts(y, per * size, |task, y| {
        for (i, y) in y.chunks_exact_mut(size).enumerate() {
            let o = task * per + i;
            let amount = table.amount(rule, o / parts);
            match back {
                false => block(rule, amount, at.inner, &x[o * n..][..n], y, constant),
                true => unblock(rule, amount, at.inner, &x[o * to..][..to], y),
            }
        }
    });
}

/// The places of a result outside of its run of neighbours.
fn edges(rule: &MoveRule, run: &std::ops::Range<usize>) -> impl Iterator<Item = usize> + use<> {
    (0..run.start).chain(run.end..rule.to)
}

fn block<T: SimdReal>(rule: &MoveRule, amount: i64, inner: usize, x: &[T], y: &mut [T], constant: T) {
    let (run, first) = rule.run(amount);
    y[run.start * inner..run.end * inner].copy_from_slice(&x[first * inner..][..run.len() * inner]);
    if inner == 1 && rule.kind == MoveKind::Flip && run.is_empty() {
        return simd::reverse(y, x);
    }
    if inner == 1 && run.is_empty() {
        let shown = |i: usize| rule.source(amount, i).map_or(constant, |k| x[k]);
        return y.iter_mut().enumerate().for_each(|(i, y)| *y = shown(i));
    }
    for i in edges(rule, &run) {
        let y = &mut y[i * inner..][..inner];
        match rule.source(amount, i) {
            Some(k) => y.copy_from_slice(&x[k * inner..][..inner]),
            None => y.fill(constant),
        }
    }
}

/// The reverse: sums of what shows each place.
fn unblock<T: SimdReal>(rule: &MoveRule, amount: i64, inner: usize, gy: &[T], gx: &mut [T]) {
    let (run, first) = rule.run(amount);
    if inner == 1 && rule.kind == MoveKind::Flip && run.is_empty() {
        return simd::reverse(gx, gy);
    }
    gx.fill(T::ZERO);
    gx[first * inner..][..run.len() * inner].copy_from_slice(&gy[run.start * inner..run.end * inner]);
    for i in edges(rule, &run) {
        match rule.source(amount, i) {
            Some(k) if inner == 1 => gx[k] += gy[i],
            Some(k) => simd::add_assign(&mut gx[k * inner..][..inner], &gy[i * inner..][..inner]),
            None => {}
        }
    }
}

/// The sample that sample `s` of the result shows.
fn shown(axes: &[MoveRule], table: &MoveTable, s: usize) -> Option<usize> {
    let (mut rest, mut at, mut stride) = (s, 0, 1);
    for rule in axes.iter().rev() {
        at += stride * rule.source(table.amount(rule, s), rest % rule.to)?;
        stride *= rule.n;
        rest /= rule.to;
    }
    Some(at)
}

pub(super) fn samples<T: SimdReal>(
    axes: &[MoveRule],
    inner: usize,
    count: usize,
    table: &MoveTable,
    x: &[T],
    y: &mut [T],
    back: bool,
) {
    if back {
        y.fill(T::ZERO);
        for s in 0..count {
            if let Some(k) = shown(axes, table, s) {
                simd::add_assign(&mut y[k * inner..][..inner], &x[s * inner..][..inner]);
            }
        }
        return;
    }
    tasks::parts(y, inner, |s, y| match shown(axes, table, s) {
        Some(k) => y.copy_from_slice(&x[k * inner..][..inner]),
        None => y.fill(T::from_f64(table.constant)),
    });
}
