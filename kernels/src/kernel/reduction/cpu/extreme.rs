//! Largest and smallest elements over axes, and where they are: the first of equal ones; NaN loses to everything.

use crate::array::Output;
use crate::array::scratch::{self, Scratch};
use crate::kernel::reduction::axes::ReductionAxes;
use crate::kernel::short_rows::{FEW, RowGroup, each_group, each_group_of};
use crate::pool;
use crate::pool::tasks::{MIN_PARALLEL, Shared, share};
use crate::shape::Shape;
use crate::simd::{self, SimdReal};

mod strips;

use strips::{COLUMNS, Strips, UNFOUND, position};

/// Neighbouring elements that one task looks through.
const PART: usize = 1 << 15;
/// Rows of at most so many elements are searched side by side, where there are some.
const SHORT: usize = 128;
/// Rows of at most so many elements are turned in larger groups.
const NARROW: usize = 4;
const MANY: usize = 4 * COLUMNS;

/// Which element wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extremum {
    Largest,
    Smallest,
}

/// The winners' numbers among the reduced elements: of one result, or of neighbouring ones.
#[derive(Clone, Copy)]
pub enum Numbers<'a> {
    One(usize),
    Many(&'a [u32]),
}

impl Numbers<'_> {
    /// Writes them.
    pub fn write<I: Index>(self, to: &mut [I]) {
        match self {
            Numbers::One(k) => to[0] = I::new(k),
            Numbers::Many(from) => to.iter_mut().zip(from).for_each(|(to, &k)| *to = I::new(k as usize)),
        }
    }

    fn get(self, i: usize) -> usize {
        match self {
            Numbers::One(k) => k,
            Numbers::Many(k) => k[i] as usize,
        }
    }
}

/// Calls `f` with the number of a result and, of it and its neighbours, the winners' values and, if `numbers` are asked for,
/// their numbers. No axis that is reduced may be empty.
pub fn winners<T: SimdReal>(
    x: &[T],
    shape: &Shape,
    reduced: &[bool],
    order: Extremum,
    numbers: bool,
    f: impl Fn(usize, &[T], Numbers) + Sync,
) {
    if x.is_empty() {
        return;
    }
    let axes = ReductionAxes::new(shape, reduced);
    let s = ExtremumSearch { x, axes: &axes, order, numbers };
    let count = axes.count(true);
    if let Some((rows, n)) = axes.rows().filter(|r| r.0 >= FEW && r.1 <= SHORT) {
        let f = |g: RowGroup| turned(&g, x, order, numbers, &f);
        return if n <= NARROW { each_group_of(MANY, rows, n, f) } else { each_group(rows, n, f) };
    }
    match axes.reduced_last() {
        Some(n) if axes.count(false) < 8 && x.len() >= MIN_PARALLEL => s.long_rows(n, &f),
        Some(n) => share(axes.count(false), x.len(), |r| {
            let (v, k) = s.row(r, n);
            f(r, &[v], Numbers::One(k));
        }),
        None if count <= u32::MAX as usize => s.columns(count, &f),
        None => (0..axes.count(false)).for_each(|r| {
            let (v, k) = s.scan(s.base(r));
            f(r, &[v], Numbers::One(k));
        }),
    }
}

/// The winners of short rows, found side by side.
fn turned<T: SimdReal>(
    g: &RowGroup,
    x: &[T],
    order: Extremum,
    numbers: bool,
    f: &(impl Fn(usize, &[T], Numbers) + Sync),
) {
    let axes = ReductionAxes::new(&g.turned(), &[true, false]);
    scratch::with(g.size(), |columns| {
        g.turn(&x[g.range()], columns);
        let s = ExtremumSearch { x: columns, axes: &axes, order, numbers };
        s.columns(g.width, &|r, v, k| f(g.first + r, v, k));
    });
}

/// 1 at each result's winner, 0 elsewhere.
pub fn mark<T: SimdReal>(x: &[T], shape: &Shape, reduced: &[bool], order: Extremum, y: &mut [T]) {
    assert_eq!(x.len(), y.len(), "mark: slices of one length expected");
    y.fill(T::ZERO);
    let axes = ReductionAxes::new(shape, reduced);
    let shared = Shared(y.as_mut_ptr());
    let (shared, inner) = (&shared, axes.inner());
    winners(x, shape, reduced, order, true, move |first, values, numbers| {
        for i in 0..values.len() {
            let r = first + i;
            let at = axes.row_offset(r / inner) + r % inner + axes.reduced_offset(numbers.get(i));
            // SAFETY: inside the array; each result has elements of its own.
            unsafe { shared.0.add(at).write(T::ONE) };
        }
    });
}

/// A winner's number among the reduced elements.
pub trait Index: Copy + Send + Sync {
    fn new(k: usize) -> Self;
    fn get(self) -> usize;
}

impl Index for u32 {
    fn new(k: usize) -> u32 {
        k as u32
    }
    fn get(self) -> usize {
        self as usize
    }
}

impl Index for u64 {
    fn new(k: usize) -> u64 {
        k as u64
    }
    fn get(self) -> usize {
        self as usize
    }
}

/// Adds or writes each result's gradient at its winner.
pub fn spread<T: SimdReal, I: Index>(
    winners: &[I],
    shape: &Shape,
    reduced: &[bool],
    gy: &[T],
    gx: &mut [T],
    output: Output,
) {
    if output == Output::Write {
        gx.fill(T::ZERO);
    }
    let axes = ReductionAxes::new(shape, reduced);
    let (inner, results, count, n) = (axes.inner(), axes.count(false), axes.count(true), gx.len());
    assert!(results * count == n && winners.len() == results && gy.len() == results, "the slices have the sizes");
    if count == 1 {
        return simd::add_assign(gx, gy);
    }
    if axes.rows().is_some() {
        // A run for each result.
        for (run, (k, &gy)) in gx.chunks_exact_mut(count).zip(winners.iter().zip(gy)) {
            run[k.get()] += gy;
        }
        return;
    }
    let shared = Shared(gx.as_mut_ptr());
    let shared = &shared;
    share(results.div_ceil(inner), results, move |row| {
        let base = axes.row_offset(row);
        for (i, r) in (row * inner..(row + 1) * inner).enumerate() {
            let k = winners[r].get();
            assert!(k < count, "a winner is one of the reduced elements");
            // SAFETY: inside the gradient; each result has elements of its own.
            unsafe { *shared.0.add(base + i + axes.reduced_offset(k)) += gy[r] };
        }
    });
}

/// Whether `v` is among them; no branch for each.
fn holds<V: Copy + PartialEq>(x: &[V], v: V) -> bool {
    x.iter().fold(false, |any, &e| any | (e == v))
}

struct ExtremumSearch<'a, T> {
    x: &'a [T],
    axes: &'a ReductionAxes,
    order: Extremum,
    /// Whether the winners' numbers are wanted, or only their values.
    numbers: bool,
}

impl<T: SimdReal> ExtremumSearch<'_, T> {
    /// True if v wins over the best so far.
    #[inline(always)]
    fn beats(&self, v: T, best: T) -> bool {
        let holds = if self.order == Extremum::Largest { best >= v } else { best <= v };
        !holds && !v.is_nan()
    }

    /// What the loops begin with: an element that is no better is found by looking at each.
    fn start(&self) -> T {
        T::from_f64(if self.order == Extremum::Largest { f64::NEG_INFINITY } else { f64::INFINITY })
    }

    /// The best of neighbours, -inf or inf where there are only NaN.
    fn best(&self, x: &[T]) -> T {
        if self.order == Extremum::Largest { simd::max(x) } else { simd::min(x) }
    }

    fn base(&self, r: usize) -> usize {
        let inner = self.axes.inner();
        self.axes.row_offset(r / inner) + r % inner
    }

    /// The winner of one result, element by element.
    fn scan(&self, base: usize) -> (T, usize) {
        let at = |k: usize| self.x[base + self.axes.reduced_offset(k)];
        let mut winner = (at(0), 0);
        for k in 1..self.axes.count(true) {
            if self.beats(at(k), winner.0) {
                winner = (at(k), k);
            }
        }
        winner
    }

    /// A result over runs of `n` neighbours.
    fn row(&self, r: usize, n: usize) -> (T, usize) {
        let base = self.axes.row_offset(r);
        let runs = (0..self.axes.count(true) / n).map(|k| base + self.axes.reduced_offset(k * n));
        let best = runs.map(|at| self.best(&self.x[at..at + n])).enumerate();
        let best = best.reduce(|a, b| if self.beats(b.1, a.1) { b } else { a });
        self.place(base, n, best)
    }

    /// The place of the best run's best element.
    fn place(&self, base: usize, n: usize, best: Option<(usize, T)>) -> (T, usize) {
        if let Some((_, v)) = best.filter(|best| !self.numbers && best.1 != self.start()) {
            return (v, 0);
        }
        let found = best.and_then(|(run, v)| {
            let at = base + self.axes.reduced_offset(run * n);
            position(&self.x[at..at + n], v).map(|i| (v, run * n + i))
        });
        // None where a run is all NaN.
        found.unwrap_or_else(|| self.scan(base))
    }

    /// Few results over many neighbours: parts of the runs are looked through on all threads.
    fn long_rows(&self, n: usize, f: &impl Fn(usize, &[T], Numbers)) {
        let (runs, parts) = (self.axes.count(true) / n, n.div_ceil(PART));
        let mut bests = Scratch::filled(runs * parts, T::ZERO);
        for r in 0..self.axes.count(false) {
            let base = self.axes.row_offset(r);
            let shared = Shared(bests.as_mut_ptr());
            let shared = &shared;
            pool::run(runs * parts, &move |i| {
                let run = &self.x[base + self.axes.reduced_offset(i / parts * n)..][..n];
                let first = i % parts * PART;
                // SAFETY: task i alone writes element i.
                unsafe { shared.0.add(i).write(self.best(&run[first..n.min(first + PART)])) };
            });
            let best = bests.iter().copied().enumerate().reduce(|a, b| if self.beats(b.1, a.1) { b } else { a });
            let (v, k) = self.place(base, n, best.map(|(i, v)| (i / parts, v)));
            f(r, &[v], Numbers::One(k));
        }
    }

    /// Neighbouring results over `count` rows, some columns at a time.
    fn columns(&self, count: usize, f: &(impl Fn(usize, &[T], Numbers) + Sync)) {
        let inner = self.axes.inner();
        let blocks = inner.div_ceil(COLUMNS);
        share(self.axes.count(false) / inner * blocks, self.x.len(), |task| {
            let (row, first) = (task / blocks, task % blocks * COLUMNS);
            let width = COLUMNS.min(inner - first);
            let base = self.axes.row_offset(row) + first;
            let (mut best, mut at) = ([T::ZERO; COLUMNS], [0; COLUMNS]);
            let (best, at) = (&mut best[..width], &mut at[..width]);
            let strips = Strips { axes: self.axes, count, base, smallest: self.order == Extremum::Smallest };
            strips.find(self.x, best, self.numbers.then_some(&mut *at));
            // Mostly all are found, which is seen first, without a branch for each.
            let some_are_lost = if self.numbers { holds(at, UNFOUND) } else { holds(best, self.start()) };
            if some_are_lost {
                for j in 0..width {
                    if at[j] == UNFOUND || best[j] == self.start() {
                        let (v, k) = self.scan(base + j);
                        (best[j], at[j]) = (v, k as u32);
                    }
                }
            }
            f(row * inner + first, best, Numbers::Many(at));
        });
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// By the definition, over the whole index space.
    fn slow(x: &[f64], shape: &Shape, reduced: &[bool], order: Extremum) -> Vec<(f64, usize)> {
        let strides = shape.strides();
        let number = |i: usize, which: bool| {
            (0..shape.ndim()).filter(|&a| reduced[a] == which).fold(0, |n, a| n * shape[a] + i / strides[a] % shape[a])
        };
        let results: usize = (0..shape.ndim()).filter(|&a| !reduced[a]).map(|a| shape[a]).product();
        let mut winners = vec![(f64::NAN, 0); results];
        for (i, &v) in x.iter().enumerate() {
            let w = &mut winners[number(i, false)];
            let better = if order == Extremum::Largest { v > w.0 } else { v < w.0 };
            if better || w.0.is_nan() && !v.is_nan() {
                *w = (v, number(i, true));
            }
        }
        winners
    }

    fn check(x: &[f64], shape: &Shape, reduced: &[bool]) {
        for order in [Extremum::Largest, Extremum::Smallest] {
            let want = slow(x, shape, reduced, order);
            let got = Mutex::new(vec![(0.0, usize::MAX); want.len()]);
            winners(x, shape, reduced, order, true, |r, v, k| {
                let found = v.iter().enumerate().map(|(i, &v)| (v, k.get(i)));
                got.lock().unwrap()[r..].iter_mut().zip(found).for_each(|(to, found)| *to = found);
            });
            for (g, w) in got.into_inner().unwrap().iter().zip(&want) {
                assert!((g.0 == w.0 || g.0.is_nan() && w.0.is_nan()) && g.1 == w.1, "{shape} {reduced:?}: {g:?} {w:?}");
            }
            let got = Mutex::new(vec![0.5; want.len()]);
            winners(x, shape, reduced, order, false, |r, v, _| got.lock().unwrap()[r..][..v.len()].copy_from_slice(v));
            for (g, w) in got.into_inner().unwrap().iter().zip(&want) {
                assert!(g.to_bits() == w.0.to_bits() || g.is_nan() && w.0.is_nan(), "{shape} {reduced:?}: {g} {w:?}");
            }
        }
    }

    unit_test!(winners_match_loops);
    fn winners_match_loops() {
        let cases: &[(&[usize], &[bool])] = &[
            (&[3, 4, 5], &[false, true, false]),
            (&[3, 4, 5], &[true, false, true]),
            (&[3, 4, 5], &[true, true, true]),
            (&[3, 4, 5], &[false, false, false]),
            (&[200, 300], &[true, false]),
            (&[300, 400], &[false, true]),
            (&[2, 70_000], &[false, true]),
            (&[2, 3, 2, 3], &[true, false, true, false]),
            (&[3, 9, 201], &[false, true, false]),
            (&[2, 3, 4, 67], &[true, false, true, false]),
            (&[5, 131], &[false, true]),
            (&[40, 3], &[false, true]),
            (&[70, 17], &[false, true]),
            (&[300, 33], &[false, true]),
            (&[], &[]),
        ];
        for (shape, reduced) in cases {
            let shape = Shape::from(*shape);
            let x: Vec<f64> = (0..shape.size()).map(|i| (i * 7919 % 31) as f64 - 15.0).collect();
            check(&x, &shape, reduced);
            let holes: Vec<f64> = x.iter().map(|v| if v.abs() > 12.0 { f64::NAN } else { *v }).collect();
            check(&holes, &shape, reduced);
        }
    }

    unit_test!(not_a_number_loses_and_infinity_is_a_number);
    fn not_a_number_loses_and_infinity_is_a_number() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        for x in [[nan, nan, nan], [nan, -inf, nan], [nan, inf, -inf], [-inf, -inf, nan], [nan, 1.0, 1.0]] {
            check(&x, &[3].into(), &[true]);
            check(&x, &[3, 1].into(), &[true, false]);
            let twice: Vec<f64> = x.iter().flat_map(|v| [*v, *v]).collect();
            check(&twice, &[3, 2].into(), &[true, false]);
            let many: Vec<f64> = x.iter().flat_map(|v| [*v; 70]).collect();
            check(&many, &[3, 70].into(), &[true, false]);
            let long: Vec<f64> = x.iter().chain(&[nan; 68]).copied().collect();
            check(&long, &[71].into(), &[true]);
            check(&x.repeat(20), &[20, 3].into(), &[false, true]);
        }
    }

    unit_test!(speed_of_extremes, ignore = "prints a measurement");
    /// `cargo test --release --features emulate -- --ignored --nocapture speed_of_extremes`
    fn speed_of_extremes() {
        let n = 1024;
        let x: Vec<f32> = (0..n * n).map(|i| (i * 7919 % 100_003) as f32).collect();
        let mut y = vec![0f32; n];
        let shared = Shared(y.as_mut_ptr());
        let shared = &shared;
        for reduced in [[false, true], [true, false], [true, true]] {
            let search = || {
                // SAFETY: r is one of at most n results.
                winners(&x, &[n, n].into(), &reduced, Extremum::Largest, true, move |r, v, _| unsafe {
                    *shared.0.add(r) = v[0]
                })
            };
            let best = (0..50).map(|_| (std::time::Instant::now(), search()).0.elapsed()).min();
            println!("{reduced:?}: {:.3} ns an element", best.unwrap().as_secs_f64() * 1e9 / (n * n) as f64);
        }
    }
}
