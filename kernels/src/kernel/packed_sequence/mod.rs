//! Sequences of several lengths, padded or packed: a packed row for each step of each sequence, steps first.

mod cuda;

use super::ops;
use crate::array::scratch::{Scratch, counted};
use crate::array::{Data, Output, Place};
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::gather::Picks;
use crate::kernel::gather::cuda::{self as gather, OutOfRange};
use crate::kernel::gather::rows;
use crate::with_real;

/// Sizes of both forms.
pub struct Sequences {
    pub batch: usize,
    pub steps: usize,
    /// Packed rows.
    pub rows: usize,
    /// Elements of a row.
    pub width: usize,
    pub batch_first: bool,
}

impl Sequences {
    /// The padded row of a step.
    fn padded(&self, step: usize, sequence: usize) -> usize {
        if self.batch_first { sequence * self.steps + step } else { step * self.batch + sequence }
    }

    /// Offsets of the padded rows, in the order of the packed ones: step `t` has the first `size(t)` sequences.
    fn offsets(&self, size: impl Fn(usize) -> usize) -> Scratch<usize> {
        let mut at = Scratch::filled(self.rows, 0);
        let places = (0..self.steps).flat_map(|t| (0..size(t)).map(move |b| (t, b)));
        at.iter_mut().zip(places).for_each(|(at, (t, b))| *at = self.padded(t, b) * self.width);
        at
    }

    /// Bytes of the offsets.
    fn scratch(&self) -> [usize; 2] {
        [counted(self.rows.saturating_mul(size_of::<usize>())), 0]
    }
}

/// How many of `counts` are greater than each of the numbers from 0 on: sizes of steps from lengths, and the reverse.
fn greater(counts: &Data, y: &Data) -> Result<()> {
    if y.is_empty() {
        return Ok(());
    }
    if let Place::Gpu(_) = y.place() {
        return cuda::greater(counts, y);
    }
    let counts = counts.as_slice::<i64>();
    let greater = |i: usize| counts.iter().filter(|c| **c > i as i64).count() as i32;
    y.as_mut_slice::<i32>().iter_mut().enumerate().for_each(|(i, y)| *y = greater(i));
    Ok(())
}

/// From the largest down, none below 0 or above `most`, `total` together.
fn check(counts: &[i64], name: &str, most: usize, total: usize) -> Result<()> {
    if let Some(c) = counts.iter().find(|c| !(0..=most as i64).contains(*c)) {
        return Err(Error::arg(name, format!("numbers from 0 to {most}")).actual_index(*c));
    }
    if let Some(pair) = counts.windows(2).find(|pair| pair[0] < pair[1]) {
        let e = Error::arg(name, "numbers from the largest down").actual(format!("{} before {}", pair[0], pair[1]));
        return Err(e.hint("nnrs.utils.rnn sorts sequences with enforce_sorted=False"));
    }
    let sum = counts.iter().sum::<i64>();
    if sum == total as i64 {
        return Ok(());
    }
    let e = Error::arg(name, format!("{total} steps in all")).actual(sum);
    Err(e.hint("steps are counted when the function is called: for other lengths, call it again"))
}

/// Takes the steps of sequences whose lengths are given.
pub struct PackRows(pub Sequences);

impl Call for PackRows {
    /// The host checks the lengths; on a GPU, where that would make it wait, rows without a step are NaN.
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (c, lengths) = (&self.0, &x[1].data);
        if let Place::Gpu(_) = y[0].data.place() {
            let numbers = cuda::numbers(c, lengths, true)?;
            let picks = Picks::rows(c.batch * c.steps, c.width, c.rows);
            gather::gather(&picks, &numbers, &x[0].data, &y[0].data, OutOfRange::Nan)?;
            return greater(lengths, &y[1].data);
        }
        check(lengths.as_slice(), "lengths", c.steps, c.rows)?;
        greater(lengths, &y[1].data)?;
        let sizes = y[1].data.as_slice::<i32>();
        let at = c.offsets(|t| sizes[t] as usize);
        with_real!(run.dtype, T => rows::gather(x[0].slice::<T>(), &at, c.width, y[0].slice(), Output::Write));
        Ok(())
    }

    fn scratch(&self, _dtype: DType) -> [usize; 2] {
        self.0.scratch()
    }
}

/// Puts packed rows where the sizes of the steps say, `value` elsewhere.
pub struct PadRows {
    pub sequences: Sequences,
    /// Steps whose sizes are given.
    pub given: usize,
    pub value: f64,
}

impl Call for PadRows {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (c, sizes) = (&self.sequences, &x[1].data);
        if let Place::Gpu(_) = y[0].data.place() {
            ops::fill(&y[0].data, self.value)?;
            gather::put(&cuda::numbers(c, sizes, false)?, Some(&x[0].data), c.width, &y[0].data)?;
            return greater(sizes, &y[1].data);
        }
        check(sizes.as_slice(), "batch_sizes", c.batch, c.rows)?;
        ops::fill(&y[0].data, self.value)?;
        greater(sizes, &y[1].data)?;
        let sizes = sizes.as_slice::<i64>();
        let at = c.offsets(|t| sizes.get(t).map_or(0, |n| *n as usize));
        with_real!(run.dtype, T => rows::scatter(x[0].slice::<T>(), &at, c.width, y[0].slice(), Output::Write));
        Ok(())
    }

    fn scratch(&self, _dtype: DType) -> [usize; 2] {
        self.sequences.scratch()
    }
}
