//! Sums over axes, in an order that depends on the sizes alone.

use super::rows::{LONGEST, sum_rows};
use crate::array::scratch::Scratch;
use crate::array::{Output, Strided};
use crate::kernel::reduction::axes::{ReductionAxes, Runs};
use crate::pool;
use crate::pool::tasks::{self, MIN_PARALLEL, Shared, share};
use crate::shape::Shape;
use crate::simd::{self, Body, SimdReal, Vector};
use smallvec::SmallVec;

/// Rows added up before the sum goes to the total: keeps the rounding error small.
const BLOCK: usize = 64;
/// Neighbouring elements that one task sums, where there are too few rows to share out. A multiple of the pairwise sum's block.
const PART: usize = 1 << 15;

/// Sums `x` of shape `from` over `axes` (true: summed) into `y`.
pub fn sum_axes<'a, T: SimdReal>(
    x: impl Into<Runs<'a, T>>,
    from: &Shape,
    summed: &[bool],
    y: &mut [T],
    output: Output,
) {
    let (axes, x, size) = (ReductionAxes::new(from, summed), x.into(), from.size());
    if size == 0 || y.is_empty() {
        if output == Output::Write {
            y.fill(T::ZERO);
        }
        return;
    }
    if let (Some((_, n)), Some(x)) = (axes.rows().filter(|r| r.1 <= LONGEST), x.array()) {
        let each = (PART / n).next_multiple_of(64);
        if size < MIN_PARALLEL {
            return sum_rows(x, n, y, output);
        }
        return tasks::parts(y, each, |i, y| sum_rows(&x[i * each * n..][..y.len() * n], n, y, output));
    }
    let inner = axes.inner();
    let out = ResultRows { y: y.as_mut_ptr(), x, axes: &axes, inner, output };
    let rows = y.len() / inner;
    if size < MIN_PARALLEL {
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
    sum_axes(x, from, &repeated(from, to), y, output);
}

/// The sums of an array that is `v` everywhere, with the rounding that they have where it is there.
pub fn sum_constant<T: SimdReal>(v: T, from: &Shape, y: &mut [T], to: &Shape, output: Output) {
    let (summed, mut from) = (repeated(from, to), from.clone());
    let Some(last) = (0..from.ndim()).rposition(|a| from[a] != 1).filter(|_| from.size() > 0 && !y.is_empty()) else {
        let all = Scratch::filled(from.size(), v);
        return sum_axes(&all[..], &from, &summed, y, output);
    };
    if !summed[last] {
        // Neighbouring results are made alike, each from its own column: two are enough, or more than a few where there are.
        let inner = ReductionAxes::new(&from, &summed).inner();
        (0..from.ndim()).filter(|&a| !summed[a] && a != last).for_each(|a| from.as_mut_slice()[a] = 1);
        from.as_mut_slice()[last] = if inner <= NARROW { 2 } else { NARROW + 1 };
    }
    // Neighbours of one kind are a run; all runs are the same elements.
    let first = (0..last).rev().find(|&a| from[a] != 1 && summed[a] != summed[last]).map_or(0, |a| a + 1);
    let strides = from.strides();
    let strides = (0..from.ndim()).map(|a| if a >= first { strides[a] as isize } else { 0 }).collect();
    let run = Scratch::filled(from.size_from(first), v);
    let view = Strided { shape: from.clone(), first: 0, strides };
    let runs = Runs::of(&run, &view);
    if summed[last] {
        return sum_axes(runs, &from, &summed, y, output);
    }
    let mut sums = [T::ZERO; NARROW + 1];
    sum_axes(runs, &from, &summed, &mut sums[..from[last]], Output::Write);
    match output {
        Output::Write => simd::fill(y, sums[0]),
        Output::Accumulate => simd::add_scalar(y, sums[0]),
    }
}

/// Repeats `x` of shape `from` over shape `to`, which it broadcasts to.
pub fn broadcast<T: SimdReal>(x: &[T], from: &Shape, y: &mut [T], to: &Shape, output: Output) {
    let axes = ReductionAxes::new(to, &repeated(to, from));
    if y.is_empty() {
        return;
    }
    if x.len() < SHORT && axes.reduced_last().is_none() && x.len() == axes.inner() && output == Output::Write {
        return tasks::parts(y, SHORT / x.len() * x.len(), |_, y| repeat_row(x, y));
    }
    // Runs of neighbours in y: each one element many times, or a row of x.
    let (inner, fill) = (axes.inner(), axes.reduced_last());
    let (size, count) = (fill.unwrap_or(inner), axes.count(true) / fill.unwrap_or(1));
    let per = if size >= 2 * PART { size.div_ceil(PART) } else { 1 };
    let (runs, total) = (x.len() / inner * count, y.len());
    if let Some(n) = fill.filter(|n| *n < SHORT && axes.count(false) == axes.kept_together()) {
        let each = SHORT / n;
        return tasks::parts(y, each * n, |task, y| repeat(x, task * each % x.len(), n, y, output));
    }
    let y = Shared(y.as_mut_ptr());
    let y = &y;
    share(runs * per, total, move |i| {
        let (run, first) = (i / per, i % per * PART);
        let (row, k) = (run / count, run % count);
        let n = if per == 1 { size } else { PART.min(size - first) };
        let at = axes.row_offset(row) + axes.reduced_offset(k * fill.unwrap_or(1)) + first;
        // SAFETY: inside y; the parts of different runs do not overlap.
        let y = unsafe { std::slice::from_raw_parts_mut(y.0.add(at), n) };
        match (fill, output) {
            (Some(_), Output::Write) => y.fill(x[row]),
            (Some(_), Output::Accumulate) => simd::add_scalar(y, x[row]),
            (None, Output::Write) => y.copy_from_slice(&x[row * inner + first..][..n]),
            (None, Output::Accumulate) => simd::add_assign(y, &x[row * inner + first..][..n]),
        }
    });
}

/// Runs of neighbours below this size are written many in a task.
const SHORT: usize = 1 << 14;

/// Repeats a row: what is written is copied in turn.
fn repeat_row<T: Copy>(x: &[T], y: &mut [T]) {
    y[..x.len()].copy_from_slice(x);
    let mut n = x.len();
    while n < y.len() {
        let more = n.min(y.len() - n);
        y.copy_within(..more, n);
        n += more;
    }
}

/// Repeats each of x, from number `first` on and around, over `n` neighbours.
fn repeat<T: SimdReal>(x: &[T], first: usize, n: usize, y: &mut [T], output: Output) {
    for (y, &x) in y.chunks_exact_mut(n).zip(x[first..].iter().chain(x.iter().cycle())) {
        match output {
            Output::Write => y.fill(x),
            Output::Accumulate => y.iter_mut().for_each(|y| *y += x),
        }
    }
}

/// The axes of `to` that `from` repeats over.
fn repeated(to: &Shape, from: &Shape) -> SmallVec<[bool; 6]> {
    let lead = to.ndim() - from.ndim();
    (0..to.ndim()).map(|i| i < lead || (from[i - lead] == 1 && to[i] != 1)).collect()
}

/// A result as rows of `inner` neighbouring elements.
struct ResultRows<'a, T> {
    y: *mut T,
    x: Runs<'a, T>,
    axes: &'a ReductionAxes,
    inner: usize,
    output: Output,
}

// SAFETY: each row part is written by one thread alone.
unsafe impl<T: Sync> Sync for ResultRows<'_, T> {}

impl<T: SimdReal> ResultRows<'_, T> {
    /// Columns `from .. to` of row `r`.
    fn row(&self, r: usize, from: usize, to: usize) {
        // SAFETY: inside the result; rows and columns of different calls do not overlap.
        let y = unsafe { std::slice::from_raw_parts_mut(self.y.add(r * self.inner + from), to - from) };
        let base = self.axes.row_offset(r) + from;
        if let Some(n) = self.axes.reduced_last() {
            let outer = self.axes.count(true) / n;
            let total = (0..outer).map(|k| simd::sum(self.x.get(base + self.axes.reduced_offset(k * n), n))).sum::<T>();
            y[0] = if self.output == Output::Write { total } else { y[0] + total };
            return;
        }
        if self.output == Output::Write {
            y.fill(T::ZERO);
        }
        let y = Shared(y.as_mut_ptr());
        // SAFETY: as above.
        unsafe { simd::run::<T>(&SumColumns { rows: self, base, y, width: to - from }) };
    }

    /// The one sum of row `r`, its neighbouring elements in parts that all threads share.
    fn long_row(&self, r: usize) {
        let n = self.axes.reduced_last().unwrap_or(1);
        let parts = n.div_ceil(PART);
        let mut sums = Scratch::filled(self.axes.count(true) / n * parts, T::ZERO);
        let (base, shared) = (self.axes.row_offset(r), Shared(sums.as_mut_ptr()));
        let shared = &shared;
        pool::run(sums.len(), &move |i| {
            let (k, first) = (i / parts, i % parts * PART);
            let row = self.x.get(base + self.axes.reduced_offset(k * n), n);
            // SAFETY: task i alone writes sum i.
            unsafe { shared.0.add(i).write(simd::sum(&row[first..n.min(first + PART)])) };
        });
        let total = simd::sum(&sums);
        // SAFETY: r is one of the rows, and this thread alone writes it.
        let y = unsafe { &mut *self.y.add(r) };
        *y = if self.output == Output::Write { total } else { *y + total };
    }
}

/// Neighbouring results whose sums stay in registers.
const STRIP: usize = 64;
/// So few columns are added up row by row in turns.
const NARROW: usize = 16;
const TURNS: usize = 4;
/// Rows that are asked for ahead: they lie far apart.
const AHEAD: usize = 6;

/// Neighbouring results, to which the rows from `base` on are added, strip by strip.
struct SumColumns<'a, 'b, T> {
    rows: &'a ResultRows<'b, T>,
    base: usize,
    y: Shared<T>,
    width: usize,
}

impl<T: SimdReal> SumColumns<'_, '_, T> {
    /// Adds all rows of a strip, a block of rows at a time.
    #[inline(always)]
    fn strip(&self, from: usize, y: &mut [T], row: impl Fn(usize) -> usize) {
        let n = self.rows.axes.count(true);
        for first in (0..n).step_by(BLOCK) {
            // Few rows go to the result at once.
            let begin = if n <= BLOCK { padded(y) } else { [T::ZERO; STRIP] };
            let sum = self.block(begin, from, y.len(), first..n.min(first + BLOCK), &row);
            match n <= BLOCK {
                true => y.copy_from_slice(&sum[..y.len()]),
                false => y.iter_mut().zip(&sum).for_each(|(y, &sum)| *y += sum),
            }
        }
    }

    /// `sum` and some rows of a strip. Nothing but this loop knows its array, so that it stays in registers.
    #[inline(always)]
    fn block(
        &self,
        mut sum: [T; STRIP],
        from: usize,
        width: usize,
        rows: std::ops::Range<usize>,
        row: &impl Fn(usize) -> usize,
    ) -> [T; STRIP] {
        let ahead = AHEAD * self.rows.axes.reduced_stride().unwrap_or(0);
        for k in rows {
            let x = self.rows.x.get(self.base + from + row(k), width);
            let x = match x.first_chunk::<STRIP>() {
                Some(x) => {
                    let later = x.as_ptr().wrapping_add(ahead).cast::<u8>();
                    (0..size_of::<[T; STRIP]>() / 64).for_each(|line| simd::prefetch(later.wrapping_add(line * 64)));
                    *x
                }
                None => padded(x),
            };
            for i in 0..STRIP {
                sum[i] += x[i];
            }
        }
        sum
    }
}

/// The numbers of a strip, which may be a short one, with zeros behind.
#[inline(always)]
fn padded<T: SimdReal>(x: &[T]) -> [T; STRIP] {
    let mut strip = [T::ZERO; STRIP];
    strip[..x.len()].copy_from_slice(x);
    strip
}

impl<T: SimdReal> SumColumns<'_, '_, T> {
    /// As `strip`, for few columns: every fourth row is added to a sum of its own, so that rows that lie in order fill vectors.
    #[inline(always)]
    fn narrow(&self, y: &mut [T]) {
        let (n, width, stride) = (self.rows.axes.count(true), y.len(), self.rows.axes.reduced_stride());
        let array = self.rows.x.array().filter(|_| stride == Some(width));
        for first in (0..n).step_by(BLOCK) {
            let (rows, mut sums) = (BLOCK.min(n - first), [T::ZERO; TURNS * NARROW]);
            let sums = &mut sums[..TURNS * width];
            match array {
                Some(x) => {
                    let x = x[self.base + first * width..][..rows * width].chunks_exact(TURNS * width);
                    sums[..x.remainder().len()].copy_from_slice(x.remainder());
                    for x in x {
                        let (n, sums) = (x.len(), &mut *sums);
                        for i in 0..n.min(sums.len()) {
                            sums[i] += x[i];
                        }
                    }
                }
                None => {
                    for k in (rows / TURNS * TURNS..rows).chain(0..rows / TURNS * TURNS) {
                        let x = self.rows.x.get(self.base + self.rows.axes.reduced_offset(first + k), width);
                        sums[k % TURNS * width..][..width].iter_mut().zip(x).for_each(|(sum, &x)| *sum += x);
                    }
                }
            }
            let (a, b) = sums.split_at(2 * width);
            let pair = |s: &[T], i: usize| s[i] + s[width + i];
            y.iter_mut().enumerate().for_each(|(i, y)| *y += pair(a, i) + pair(b, i));
        }
    }
}

impl<T: SimdReal> Body<T> for SumColumns<'_, '_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        // SAFETY: the caller's promise.
        let y = unsafe { std::slice::from_raw_parts_mut(self.y.0, self.width) };
        let axes = self.rows.axes;
        if self.rows.inner <= NARROW {
            return self.narrow(y);
        }
        for (strip, y) in y.chunks_mut(STRIP).enumerate() {
            match axes.reduced_stride() {
                Some(stride) => self.strip(strip * STRIP, y, |k| k * stride),
                None => self.strip(strip * STRIP, y, |k| axes.reduced_offset(k)),
            }
        }
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    const CASES: &[(&[usize], &[bool])] = &[
        (&[3, 4, 5], &[false, true, false]),
        (&[3, 4, 5], &[true, false, true]),
        (&[3, 4, 5], &[true, true, true]),
        (&[200, 7], &[true, false]),
        (&[7, 200], &[false, true]),
        (&[300, 400], &[true, false]),
        (&[2, 3, 2, 3], &[true, false, true, false]),
        (&[70_001], &[true]),
        (&[2, 70_001], &[true, false]),
        (&[3, 70_001, 2], &[false, true, true]),
        (&[1003, 5, 4], &[true, false, false]),
        (&[203, 16], &[true, false]),
        (&[2, 67, 3], &[false, true, false]),
        (&[], &[]),
        (&[0, 3], &[true, false]),
    ];

    /// A case's shape, the shape with its reduced axes of size 1, and for each element of the first where it lies in the second.
    fn places(shape: &[usize], reduced: &[bool]) -> (Shape, Shape, Vec<usize>) {
        let shape = Shape::from(shape);
        let kept: Shape = shape.iter().zip(reduced).map(|(&n, &s)| if s { 1 } else { n }).collect();
        let strides = shape.strides();
        let place = |i: usize| {
            (0..shape.ndim()).fold(0, |o, a| o * kept[a] + if reduced[a] { 0 } else { i / strides[a] % shape[a] })
        };
        let places = (0..shape.size()).map(place).collect();
        (shape, kept, places)
    }

    unit_test!(sums_match_loops);
    fn sums_match_loops() {
        for (shape, summed) in CASES {
            let (shape, kept, places) = places(shape, summed);
            let x: Vec<f64> = (0..shape.size()).map(|i| (i % 17) as f64 - 5.0).collect();
            let mut want = vec![1.0; kept.size()];
            x.iter().zip(places).for_each(|(v, at)| want[at] += v);
            let mut y = vec![1.0; kept.size()];
            sum_axes(&x[..], &shape, summed, &mut y, Output::Accumulate);
            assert_eq!(y, want, "{shape} {summed:?}");
        }
    }

    unit_test!(constants_add_up_as_arrays_do);
    fn constants_add_up_as_arrays_do() {
        for (shape, summed) in CASES {
            let (shape, kept, _) = places(shape, summed);
            let (mut want, mut got) = (vec![1f32; kept.size()], vec![2f32; kept.size()]);
            sum_axes(&vec![0.1f32; shape.size()][..], &shape, summed, &mut want, Output::Write);
            sum_constant(0.1, &shape, &mut got, &kept, Output::Write);
            assert_eq!(got, want, "{shape} {summed:?}");
        }
    }

    unit_test!(broadcasts_match_loops);
    fn broadcasts_match_loops() {
        for (shape, repeated) in CASES {
            let (shape, kept, places) = places(shape, repeated);
            let x: Vec<f64> = (0..kept.size()).map(|i| i as f64 - 5.0).collect();
            for (output, old) in [(Output::Write, 0.0), (Output::Accumulate, 0.5)] {
                let want: Vec<f64> = places.iter().map(|&at| x[at] + old).collect();
                let mut y = vec![0.5; shape.size()];
                broadcast(&x, &kept, &mut y, &shape, output);
                assert_eq!(y, want, "{shape} {repeated:?} {output:?}");
            }
        }
    }
}
