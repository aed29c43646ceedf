//! Channels whose elements lie apart, one or a few in each row: vectors run across the channels.

use super::{Channels, Coefficients, Pair, Unit, Work, merge_moments};
use crate::cpu::gemm::Output;
use crate::dtype::Real;

/// Rows that are summed up in their own type; the sums are merged in f64.
const ROWS: usize = 16;

/// Inside `Lanes::enter`, so that the loops become vectors.
///
/// # Safety
/// The unit lies within the slices of the work.
#[inline(always)]
pub(super) unsafe fn run<T: Real>(c: &Channels, unit: &Unit, work: Work<T>) {
    let columns = Columns { c, unit, width: unit.channels.len() * c.inner };
    match work {
        Work::Moments { x, out } => columns.moments(x, out),
        Work::Sums { gy, x, mean, out } => columns.sums(gy, x, mean, out),
        Work::Map { a, x, y, output, by } => {
            let by = columns.spread(by);
            for o in unit.outer.clone() {
                let at = columns.start(o);
                // SAFETY: the caller's promise.
                let y = unsafe { y.slice(at, columns.width) };
                map(&a[at..], x.map(|x| &x[at..]), y, output, &by);
            }
        }
    }
}

/// A unit as rows of `width` neighbouring numbers.
struct Columns<'a> {
    c: &'a Channels,
    unit: &'a Unit,
    width: usize,
}

impl Columns<'_> {
    #[inline(always)]
    fn start(&self, o: usize) -> usize {
        (o * self.c.channels + self.unit.channels.start) * self.c.inner
    }

    #[inline(always)]
    fn row<'x, T>(&self, x: &'x [T], o: usize) -> &'x [T] {
        &x[self.start(o)..][..self.width]
    }

    /// The first rows of blocks.
    #[inline(always)]
    fn blocks(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let end = self.unit.outer.end;
        self.unit.outer.clone().step_by(ROWS).map(move |o| o..end.min(o + ROWS))
    }

    #[inline(always)]
    fn moments<T: Real>(&self, x: &[T], out: &mut [Pair]) {
        let mut total = vec![[0.0; 2]; self.width];
        let (mut mean, mut rest, mut squares) = (self.zeros(), self.zeros(), self.zeros());
        let mut before = 0.0;
        for block in self.blocks() {
            let n = block.len() as f64;
            [&mut mean, &mut rest, &mut squares].into_iter().for_each(|v| v.fill(T::ZERO));
            block.clone().for_each(|o| add(&mut mean, self.row(x, o)));
            let part = T::from_f64(1.0 / n);
            mean.iter_mut().for_each(|m| *m = *m * part);
            block.for_each(|o| deviate(&mean, self.row(x, o), &mut rest, &mut squares));
            for (i, t) in total.iter_mut().enumerate() {
                let rest = rest[i].to_f64();
                let found = [mean[i].to_f64() + rest / n, squares[i].to_f64() - rest * rest / n];
                merge_moments(t, before, &found, n);
            }
            before += n;
        }
        for (out, own) in out.iter_mut().zip(total.chunks_exact(self.c.inner)) {
            *out = own[0];
            (1..own.len()).for_each(|i| merge_moments(out, i as f64 * before, &own[i], before));
        }
    }

    #[inline(always)]
    fn sums<T: Real>(&self, gy: &[T], x: Option<&[T]>, mean: &[T], out: &mut [Pair]) {
        let mean: Vec<T> = mean.iter().flat_map(|&m| std::iter::repeat_n(m, self.c.inner)).collect();
        let (mut sum, mut product) = (self.zeros(), self.zeros());
        out.fill([0.0; 2]);
        for block in self.blocks() {
            sum.fill(T::ZERO);
            product.fill(T::ZERO);
            match x {
                Some(x) => block.for_each(|o| {
                    multiply(self.row(gy, o), self.row(x, o), &mean, &mut sum, &mut product);
                }),
                None => block.for_each(|o| add(&mut sum, self.row(gy, o))),
            }
            for i in 0..self.width {
                let out = &mut out[i / self.c.inner];
                out[0] += sum[i].to_f64();
                out[1] += product[i].to_f64();
            }
        }
    }

    fn zeros<T: Real>(&self) -> Vec<T> {
        vec![T::ZERO; self.width]
    }

    /// The coefficients of each column.
    fn spread<T: Real>(&self, by: &Coefficients<T>) -> Coefficients<T> {
        let all = |v: &[T]| v.iter().flat_map(|&m| std::iter::repeat_n(m, self.c.inner)).collect();
        Coefficients { minus: all(&by.minus), times: all(&by.times), by_x: all(&by.by_x), plus: all(&by.plus) }
    }
}

#[inline(always)]
fn add<T: Real>(to: &mut [T], x: &[T]) {
    to.iter_mut().zip(x).for_each(|(t, &x)| *t += x);
}

#[inline(always)]
fn deviate<T: Real>(mean: &[T], x: &[T], rest: &mut [T], squares: &mut [T]) {
    let n = x.len();
    let (mean, rest, squares) = (&mean[..n], &mut rest[..n], &mut squares[..n]);
    for i in 0..n {
        let d = x[i] - mean[i];
        rest[i] += d;
        squares[i] += d * d;
    }
}

#[inline(always)]
fn multiply<T: Real>(gy: &[T], x: &[T], mean: &[T], sum: &mut [T], product: &mut [T]) {
    let n = x.len();
    let (gy, mean, sum, product) = (&gy[..n], &mean[..n], &mut sum[..n], &mut product[..n]);
    for i in 0..n {
        sum[i] += gy[i];
        product[i] += gy[i] * (x[i] - mean[i]);
    }
}

#[inline(always)]
fn map<T: Real>(a: &[T], x: Option<&[T]>, y: &mut [T], output: Output, by: &Coefficients<T>) {
    let n = y.len();
    let (a, minus, times, by_x, plus) = (&a[..n], &by.minus[..n], &by.times[..n], &by.by_x[..n], &by.plus[..n]);
    match (x, output) {
        (None, Output::Write) => (0..n).for_each(|i| y[i] = (a[i] - minus[i]) * times[i] + plus[i]),
        (None, Output::Accumulate) => (0..n).for_each(|i| y[i] += (a[i] - minus[i]) * times[i] + plus[i]),
        (Some(x), Output::Write) => {
            let x = &x[..n];
            (0..n).for_each(|i| y[i] = a[i] * times[i] + ((x[i] - minus[i]) * by_x[i] + plus[i]))
        }
        (Some(x), Output::Accumulate) => {
            let x = &x[..n];
            (0..n).for_each(|i| y[i] += a[i] * times[i] + ((x[i] - minus[i]) * by_x[i] + plus[i]))
        }
    }
}
