//! Sums over axes, in an order that depends on the sizes alone.

use super::axes::Axes;
use super::gemm::Output;
use super::pool;
use super::simd::{self, SimdReal};
use super::tasks::{MIN_PARALLEL, Shared};
use crate::function::expr::Formula;
use crate::function::expr::tile::{Program, Sink, Source, Walk};
use crate::shape::Shape;
use smallvec::SmallVec;

/// Rows added up before the sum goes to the total: keeps the rounding error small.
const BLOCK: usize = 64;
/// Neighbouring elements that one task sums, where there are too few rows to share out. A multiple of the pairwise sum's block.
const PART: usize = 1 << 15;

/// Sums `x` of shape `from` over `axes` (true: summed) into `y`.
pub fn sum_axes<T: SimdReal>(x: &[T], from: &Shape, summed: &[bool], y: &mut [T], output: Output) {
    let axes = Axes::new(from, summed);
    if x.is_empty() || y.is_empty() {
        if output == Output::Write {
            y.fill(T::ZERO);
        }
        return;
    }
    let inner = axes.inner();
    let out = Rows { y: y.as_mut_ptr(), x, axes: &axes, inner, output };
    let rows = y.len() / inner;
    if x.len() < MIN_PARALLEL {
        return (0..rows).for_each(|r| out.row(r, 0, inner));
    }
    if rows >= 8 {
        let per = rows.div_ceil(64);
        pool::run(rows.div_ceil(per), &|i| (i * per..rows.min((i + 1) * per)).for_each(|r| out.row(r, 0, inner)));
        return;
    }
    if axes.reduced_last().is_some_and(|n| n >= 2 * PART) {
        return (0..rows).for_each(|r| out.long_row(r));
    }
    let cols = inner.div_ceil(16).max(64);
    for r in 0..rows {
        pool::run(inner.div_ceil(cols), &|i| out.row(r, i * cols, inner.min((i + 1) * cols)));
    }
}

/// Sums `x` of shape `from` down to shape `to`, which broadcasts to it.
pub fn sum_to<T: SimdReal>(x: &[T], from: &Shape, y: &mut [T], to: &Shape, output: Output) {
    let lead = from.ndim() - to.ndim();
    let summed: SmallVec<[bool; 6]> =
        (0..from.ndim()).map(|i| i < lead || (to[i - lead] == 1 && from[i] != 1)).collect();
    sum_axes(x, from, &summed, y, output);
}

/// Repeats `x` of shape `from` over shape `to`, which it broadcasts to.
pub fn broadcast<T: SimdReal>(x: &[T], from: &Shape, y: &mut [T], to: &Shape, output: Output) {
    let f = Formula::new(2, |v| vec![Some(if output == Output::Write { v[0].clone() } else { &v[0] + &v[1] })]);
    let program = Program::<T>::of(&f);
    let ptr = y.as_mut_ptr() as *mut u8;
    let dense = Source { ptr, dtype: T::DTYPE, walk: Walk::Dense };
    let x = Source { ptr: x.as_ptr() as *const u8, dtype: T::DTYPE, walk: Walk::new(from, to) };
    // SAFETY: both arrays have the sizes of their shapes; the second source is the sink itself.
    unsafe { program.run(y.len(), &[x, dense], &[Sink { ptr, dtype: T::DTYPE }], &[]) };
}

/// A result as rows of `inner` neighbouring elements.
struct Rows<'a, T> {
    y: *mut T,
    x: &'a [T],
    axes: &'a Axes,
    inner: usize,
    output: Output,
}

// SAFETY: each row part is written by one thread alone.
unsafe impl<T: Sync> Sync for Rows<'_, T> {}

impl<T: SimdReal> Rows<'_, T> {
    /// Columns `from .. to` of row `r`.
    fn row(&self, r: usize, from: usize, to: usize) {
        // SAFETY: inside the result; rows and columns of different calls do not overlap.
        let y = unsafe { std::slice::from_raw_parts_mut(self.y.add(r * self.inner + from), to - from) };
        let base = self.axes.row_offset(r) + from;
        if let Some(n) = self.axes.reduced_last() {
            let outer = self.axes.count(true) / n;
            let total =
                (0..outer).map(|k| simd::sum(&self.x[base + self.axes.reduced_offset(k * n)..][..n])).sum::<T>();
            y[0] = if self.output == Output::Write { total } else { y[0] + total };
            return;
        }
        let n = self.axes.count(true);
        if self.output == Output::Write {
            y.fill(T::ZERO);
        }
        if n <= BLOCK {
            return (0..n).for_each(|k| simd::add_assign(y, &self.x[base + self.axes.reduced_offset(k)..][..y.len()]));
        }
        let mut part = vec![T::ZERO; y.len()];
        for first in (0..n).step_by(BLOCK) {
            part.fill(T::ZERO);
            (first..n.min(first + BLOCK))
                .for_each(|k| simd::add_assign(&mut part, &self.x[base + self.axes.reduced_offset(k)..][..y.len()]));
            simd::add_assign(y, &part);
        }
    }

    /// The one sum of row `r`, its neighbouring elements in parts that all threads share.
    fn long_row(&self, r: usize) {
        let n = self.axes.reduced_last().unwrap_or(1);
        let parts = n.div_ceil(PART);
        let mut sums = vec![T::ZERO; self.axes.count(true) / n * parts];
        let (base, shared) = (self.axes.row_offset(r), Shared(sums.as_mut_ptr()));
        let shared = &shared;
        pool::run(sums.len(), &move |i| {
            let (k, first) = (i / parts, i % parts * PART);
            let row = &self.x[base + self.axes.reduced_offset(k * n)..][..n];
            // SAFETY: task i alone writes sum i.
            unsafe { shared.0.add(i).write(simd::sum(&row[first..n.min(first + PART)])) };
        });
        let total = simd::sum(&sums);
        // SAFETY: r is one of the rows, and this thread alone writes it.
        let y = unsafe { &mut *self.y.add(r) };
        *y = if self.output == Output::Write { total } else { *y + total };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_match_loops() {
        let cases: &[(&[usize], &[bool])] = &[
            (&[3, 4, 5], &[false, true, false]),
            (&[3, 4, 5], &[true, false, true]),
            (&[3, 4, 5], &[true, true, true]),
            (&[200, 7], &[true, false]),
            (&[7, 200], &[false, true]),
            (&[300, 400], &[true, false]),
            (&[2, 3, 2, 3], &[true, false, true, false]),
            (&[70_001], &[true]),
            (&[3, 70_001, 2], &[false, true, true]),
            (&[], &[]),
            (&[0, 3], &[true, false]),
        ];
        for (shape, summed) in cases {
            let shape = Shape::from(*shape);
            let x: Vec<f64> = (0..shape.size()).map(|i| (i % 17) as f64 - 5.0).collect();
            let kept: Shape = shape.iter().zip(*summed).map(|(&n, &s)| if s { 1 } else { n }).collect();
            let mut want = vec![1.0; kept.size()];
            let strides = shape.strides();
            for (i, v) in x.iter().enumerate() {
                let at = (0..shape.ndim())
                    .fold(0, |o, a| o * kept[a] + if summed[a] { 0 } else { i / strides[a] % shape[a] });
                want[at] += v;
            }
            let mut y = vec![1.0; kept.size()];
            sum_axes(&x, &shape, summed, &mut y, Output::Accumulate);
            assert_eq!(y, want, "{shape} {summed:?}");
        }
    }
}
