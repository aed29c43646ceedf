//! On the host.

use super::{AxisPass, Resample, Sampling};
use crate::array::Output;
use crate::array::scratch::{self, Scratch, counted};
use crate::kernel::short_rows::{FEW, RowGroup, are_short, each_group};
use crate::pool::tasks::{self, SendPtr};
use crate::simd::SimdReal;
use crate::simd::lanes::{Lanes, WithLanes, enter};
use ndarray::{ArrayViewMutD, Axis, IxDyn};

/// Elements of the arrays that a task takes at a time, so that what lies between two passes stays in the cache.
const GROUP: usize = 1 << 14;
/// Elements of rows that are summed at a time.
const WIDTH: usize = 1 << 10;
/// Lines whose elements are turned together, so that vectors go across them: elements of both sides, and how many lines.
const TURNED: usize = 12 << 10;
const MOST: usize = 64;
/// Elements of both sides of lines for which that is worth it where each is made of two.
const SHORT: usize = 256;
/// Elements of the result that a task of a single pass makes.
const TASK: usize = 1 << 14;

/// For each element of a pass's result the elements it is made of.
struct TapTable<T: Copy> {
    /// It is for each element of the pass's input the one that it goes to: many of the result have none.
    spreads: bool,
    /// How many each has; 0 where not all have as many.
    each: usize,
    /// Where those of each element begin then; its end is where the next ones begin.
    first: Scratch<usize>,
    at: Scratch<u32>,
    weight: Scratch<T>,
}

/// Bytes of a table for numbers of `size` bytes, where they count.
pub(super) fn table(s: &Sampling, transposed: bool, size: usize) -> usize {
    let taps = s.m.saturating_mul(s.count());
    let each = counted(taps.saturating_mul(size_of::<u32>())) + counted(taps.saturating_mul(size));
    let firsts = 2 * counted((s.n + 1).saturating_mul(size_of::<usize>()));
    if transposed { 2 * each + firsts } else { each }
}

impl<T: SimdReal> TapTable<T> {
    fn new(pass: &AxisPass) -> TapTable<T> {
        let s = &pass.sampling;
        match pass.transposed {
            true if pass.behind == 1 && s.count() == 1 && s.m < s.n => {
                TapTable { spreads: true, ..TapTable::forward(s) }
            }
            true => TapTable::transposed(s),
            false => TapTable::forward(s),
        }
    }

    fn forward(s: &Sampling) -> TapTable<T> {
        let each = s.count();
        let (first, at) = (Scratch::filled(0, 0), Scratch::filled(s.m * each, 0));
        let mut table = TapTable { spreads: false, each, first, at, weight: Scratch::filled(s.m * each, T::ZERO) };
        let places = table.at.chunks_exact_mut(each).zip(table.weight.chunks_exact_mut(each));
        for (j, (at, weight)) in places.enumerate() {
            let taps = s.taps(j);
            at.iter_mut().zip(taps.at).for_each(|(to, at)| *to = at as u32);
            weight.iter_mut().zip(taps.weight).for_each(|(to, w)| *to = T::from_f64(w));
        }
        table
    }

    fn transposed(s: &Sampling) -> TapTable<T> {
        let forward = TapTable::<T>::forward(s);
        let mut first = Scratch::filled(s.n + 1, 0);
        forward.at.iter().for_each(|&i| first[i as usize + 1] += 1);
        (0..s.n).for_each(|i| first[i + 1] += first[i]);
        let mut end = Scratch::of(&first);
        let (mut at, mut weight) = (Scratch::filled(forward.at.len(), 0), Scratch::filled(forward.at.len(), T::ZERO));
        for (k, &i) in forward.at.iter().enumerate() {
            let to = end[i as usize];
            (at[to], weight[to]) = ((k / forward.each) as u32, forward.weight[k]);
            end[i as usize] += 1;
        }
        let each = at.len() / s.n;
        let alike = (0..=s.n).all(|i| first[i] == i * each);
        TapTable { spreads: false, each: if alike { each } else { 0 }, first, at, weight }
    }

    /// What element j is made of, and the weights.
    fn of(&self, j: usize) -> impl Iterator<Item = (usize, T)> {
        let range = match self.each {
            0 => self.first[j]..self.first[j + 1],
            each => j * each..(j + 1) * each,
        };
        self.at[range.clone()].iter().map(|&i| i as usize).zip(self.weight[range].iter().copied())
    }

    /// A line of neighbours, of a table that spreads.
    fn spread_line(&self, x: &[T], y: &mut [T], output: Output) {
        if output == Output::Write {
            y.fill(T::ZERO);
        }
        x.iter().zip(self.at.iter().zip(&self.weight[..])).for_each(|(&x, (&i, &w))| y[i as usize] += x * w);
    }

    /// A line of neighbours.
    fn line(&self, x: &[T], y: &mut [T], output: Output) {
        let add = output == Output::Accumulate;
        let keep = |y: &mut T, v: T| *y = if add { *y + v } else { v };
        match self.each {
            1 => {
                let taps = self.at.iter().zip(&self.weight[..]);
                y.iter_mut().zip(taps).for_each(|(y, (&i, &w))| keep(y, x[i as usize] * w));
            }
            2 => {
                let taps = self.at.chunks_exact(2).zip(self.weight.chunks_exact(2));
                y.iter_mut()
                    .zip(taps)
                    .for_each(|(y, (i, w))| keep(y, x[i[0] as usize] * w[0] + x[i[1] as usize] * w[1]));
            }
            _ => {
                let sum = |j: usize| self.of(j).fold(T::ZERO, |sum, (i, w)| sum + x[i] * w);
                y.iter_mut().enumerate().for_each(|(j, y)| keep(y, sum(j)));
            }
        }
    }

    /// Element j of lines that lie beside each other: a row of the result from rows of x.
    #[inline(always)]
    fn row(&self, j: usize, x: &[T], y: &mut [T], output: Output) {
        let width = y.len();
        for from in (0..width).step_by(WIDTH) {
            let n = WIDTH.min(width - from);
            let y = &mut y[from..from + n];
            let row = |i: usize| &x[i * width + from..][..n];
            let mut taps = self.of(j);
            if output == Output::Write {
                match (taps.next(), taps.next()) {
                    (Some(a), Some(b)) => write_two(y, (row(a.0), a.1), (row(b.0), b.1)),
                    (Some((i, w)), None) => write_one(y, row(i), w),
                    _ => y.fill(T::ZERO),
                }
            }
            for (i, w) in taps {
                add_one(y, row(i), w);
            }
        }
    }
}

#[inline(always)]
fn write_one<T: SimdReal>(y: &mut [T], a: &[T], w: T) {
    for (y, &a) in y.iter_mut().zip(a) {
        *y = a * w;
    }
}

#[inline(always)]
fn write_two<T: SimdReal>(y: &mut [T], (a, v): (&[T], T), (b, w): (&[T], T)) {
    let n = y.len();
    for (y, (&a, &b)) in y.iter_mut().zip(a[..n].iter().zip(&b[..n])) {
        *y = a * v + b * w;
    }
}

#[inline(always)]
fn add_one<T: SimdReal>(y: &mut [T], a: &[T], w: T) {
    for (y, &a) in y.iter_mut().zip(a) {
        *y += a * w;
    }
}

/// Rows of the result, of `width` elements, from number `first` on; `from` rows of x and `to` of the result are lines beside each
/// other.
struct ResampledRows<'a, T: Copy> {
    table: &'a TapTable<T>,
    x: &'a [T],
    y: &'a mut [T],
    first: usize,
    from: usize,
    to: usize,
    width: usize,
    output: Output,
}

impl<T: SimdReal> WithLanes<T> for ResampledRows<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let all = self.from * self.width;
        for (r, y) in self.y.chunks_exact_mut(self.width).enumerate() {
            let (line, j) = ((self.first + r) / self.to, (self.first + r) % self.to);
            self.table.row(j, &self.x[line * all..][..all], y, self.output);
        }
    }
}

/// Lines of so many elements before and after that are turned together.
fn lines_together(elements: usize) -> usize {
    (TURNED / elements).clamp(FEW, MOST) / FEW * FEW
}

/// Bytes of the turned lines of a pass, of numbers of `size` bytes, where they count.
pub(super) fn turned(p: &AxisPass, size: usize) -> usize {
    let elements = p.from() + p.to();
    if p.behind == 1 && p.before >= FEW { counted(lines_together(elements) * elements * size) } else { 0 }
}

/// Lines whose elements are neighbours, turned so that vectors go across them.
fn turned_lines<T: SimdReal>(table: &TapTable<T>, [from, to]: [usize; 2], x: &[T], y: &mut [T], output: Output) {
    let together = lines_together(from + to);
    for (x, y) in x.chunks(together * from).zip(y.chunks_mut(together * to)) {
        let group = RowGroup { first: 0, rows: x.len() / from, width: from };
        group.through(x, y, output, |x, y| {
            let rows = ResampledRows { table, x, y, first: 0, from, to, width: group.rows, output: Output::Write };
            // SAFETY: nothing but slices.
            unsafe { enter(rows) };
        });
    }
}

fn pass<T: SimdReal>(p: &AxisPass, table: &TapTable<T>, x: &[T], y: &mut [T], output: Output) {
    let (from, to, behind) = (p.from(), p.to(), p.behind);
    if behind == 1 {
        let lines = (TASK / to.max(1)).max(FEW);
        let few = if from + to <= SHORT { 1..=1 } else { 1..=2 };
        let turns = p.before >= FEW && !few.contains(&table.each) && !table.spreads;
        return tasks::parts(y, lines * to, |task, y| {
            let x = &x[task * lines * from..][..y.len() / to * from];
            if turns {
                return turned_lines(table, [from, to], x, y, output);
            }
            x.chunks_exact(from).zip(y.chunks_exact_mut(to)).for_each(|(x, y)| match table.spreads {
                true => table.spread_line(x, y, output),
                false => table.line(x, y, output),
            });
        });
    }
    let rows = (TASK / behind).max(1);
    tasks::parts(y, rows * behind, |task, y| {
        // SAFETY: nothing but slices.
        unsafe { enter(ResampledRows { table, x, y, first: task * rows, from, to, width: behind, output }) };
    });
}

/// Images whose elements are one of the others each: its row, along all axes but the last, and its column.
struct Picked {
    rows: Scratch<u32>,
    columns: Scratch<u32>,
    /// The width of the images that are picked from.
    width: usize,
}

impl Picked {
    /// `None` where that is not all, or where many go back to one.
    fn new(r: &Resample, transposed: bool) -> Option<Picked> {
        let (columns, rows) = r.axes.split_last()?;
        let picks = |s: &Sampling| s.count() == 1 && !s.cut && !(transposed && s.m > s.n);
        if r.inner > 1 || rows.is_empty() || !r.axes.iter().all(picks) {
            return None;
        }
        let at = |s: &Sampling, j: usize| s.taps(j).at[0];
        let row = |j: usize| {
            let (mut i, mut rest, mut step) = (0, j, 1);
            for s in rows.iter().rev() {
                i += at(s, rest % s.m) * step;
                (rest, step) = (rest / s.m, step * s.n);
            }
            i as u32
        };
        let rows = Scratch::each(rows.iter().map(|s| s.m).product(), row);
        Some(Picked { rows, columns: Scratch::each(columns.m, |j| at(columns, j) as u32), width: columns.n })
    }

    /// What is picked from an image.
    fn take<T: SimdReal>(&self, x: &[T], y: &mut [T], output: Output) {
        let width = self.columns.len();
        for (j, &i) in self.rows.iter().enumerate() {
            let (before, y) = y.split_at_mut(j * width);
            let (x, y) = (&x[i as usize * self.width..][..self.width], &mut y[..width]);
            match output {
                Output::Write if j > 0 && self.rows[j - 1] == i => y.copy_from_slice(&before[(j - 1) * width..]),
                Output::Write => pick(x, &self.columns, y),
                Output::Accumulate => y.iter_mut().zip(&self.columns[..]).for_each(|(y, &i)| *y += x[i as usize]),
            }
        }
    }

    /// The way back.
    fn give<T: SimdReal>(&self, x: &[T], y: &mut [T], output: Output) {
        if output == Output::Write {
            y.fill(T::ZERO);
        }
        for (x, &i) in x.chunks_exact(self.columns.len()).zip(&self.rows[..]) {
            let y = &mut y[i as usize * self.width..][..self.width];
            x.iter().zip(&self.columns[..]).for_each(|(&x, &i)| y[i as usize] += x);
        }
    }
}

/// A function of its own, so that all that it uses is in registers.
#[inline(never)]
fn pick<T: SimdReal>(x: &[T], at: &[u32], y: &mut [T]) {
    y.iter_mut().zip(at).for_each(|(y, &i)| *y = x[i as usize]);
}

/// Arrays that are resampled together.
pub(super) fn group(r: &Resample) -> usize {
    let (n, m) = r.sizes();
    let least = if r.axes.len() == 1 { FEW } else { 1 };
    (GROUP / n.max(m).max(1)).max(least).min(r.outer.max(1))
}

fn chain<T: SimdReal>(passes: &[AxisPass], tables: &[TapTable<T>], x: &[T], y: &mut [T], output: Output) {
    let ([first, .., last], [table, .., last_table]) = (passes, tables) else {
        return pass(&passes[0], &tables[0], x, y, output);
    };
    let largest = passes[..passes.len() - 1].iter().map(AxisPass::result).max().unwrap_or(0);
    scratch::with(largest, |a: &mut [T]| {
        scratch::with(if passes.len() > 2 { largest } else { 0 }, |b: &mut [T]| {
            pass(first, table, x, &mut a[..first.result()], Output::Write);
            let (mut now, mut next, mut size) = (a, b, first.result());
            for (p, table) in passes.iter().zip(tables).skip(1).take(passes.len() - 2) {
                pass(p, table, &now[..size], &mut next[..p.result()], Output::Write);
                (now, next, size) = (next, now, p.result());
            }
            pass(last, last_table, &now[..size], y, output);
        });
    });
}

pub(super) fn resample<T: SimdReal>(r: &Resample, x: &[T], y: &mut [T], transposed: bool, output: Output) {
    let (n, m) = r.sizes();
    let (from, to) = if transposed { (m, n) } else { (n, m) };
    if r.inner == 1 && are_short(r.outer, n.max(m)) {
        let y = SendPtr(y.as_mut_ptr());
        return each_group(r.outer, n.max(m), |g| {
            let (x_at, y_at) = (g.of_width(from).range(), g.of_width(to).range());
            // SAFETY: each group has images of its own.
            let y = unsafe { y.slice(y_at.start, y_at.len()) };
            let turned = Resample { outer: 1, inner: g.rows, ..r.clone() };
            g.through(&x[x_at], y, output, |x, y| resample(&turned, x, y, transposed, Output::Write));
        });
    }
    let images = group(r);
    if let Some(picked) = Picked::new(r, transposed) {
        return tasks::parts(y, images * to, |task, y| {
            let x = x[task * images * from..].chunks_exact(from);
            x.zip(y.chunks_exact_mut(to)).for_each(|(x, y)| match transposed {
                true => picked.give(x, y, output),
                false => picked.take(x, y, output),
            });
        });
    }
    let passes = r.passes(images, transposed);
    let tables: Vec<TapTable<T>> = passes.iter().map(TapTable::new).collect();
    tasks::parts(y, images * to, |task, y| {
        let here = y.len() / to;
        let x = &x[task * images * from..][..here * from];
        // The last group may be smaller.
        if here == images {
            return chain(&passes, &tables, x, y, output);
        }
        chain(&r.passes(here, transposed), &tables, x, y, output);
    });
    if !transposed && output == Output::Write && r.axes.iter().any(|s| s.cut) {
        fill_beyond(r, y);
    }
}

fn fill_beyond<T: SimdReal>(r: &Resample, y: &mut [T]) {
    let shape: Vec<usize> = [r.outer].into_iter().chain(r.axes.iter().map(|s| s.m)).chain([r.inner]).collect();
    let mut y = ArrayViewMutD::from_shape(IxDyn(&shape), y).expect("the sizes of the axes");
    for (a, s) in r.axes.iter().enumerate() {
        (0..s.m)
            .filter(|&j| s.is_outside(j))
            .for_each(|j| y.index_axis_mut(Axis(a + 1), j).fill(T::from_f64(r.beyond)));
    }
}
