//! Sequences of several lengths, padded or packed: a packed row for each step of each sequence, steps first.

mod cpu;
mod cuda;

use super::ops;
use crate::array::scratch::counted;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::gather::Picks;
use crate::kernel::gather::cuda::{self as gather, OutOfRange};
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
    /// Bytes of where steps begin; where there are no elements, nobody asks.
    fn scratch(&self) -> [usize; 2] {
        if self.batch == 0 || self.width == 0 {
            return [0; 2];
        }
        [counted(self.steps.saturating_add(1).saturating_mul(size_of::<usize>())); 2]
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
        let size = |t: usize| sizes[t] as usize;
        with_real!(run.dtype, T => cpu::pack(c, size, x[0].slice::<T>(), y[0].data.as_mut_slice(), Output::Write));
        Ok(())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 0b10, y: 0 })
    }

    /// On the host.
    fn backward(&self, run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(lengths), Some(gy), Some(gx)) = (&x[1], &gy[0], &mut gx[0]) else { return Ok(()) };
        let (c, lengths, output) = (&self.0, lengths.data.as_slice::<i64>(), gx.output);
        check(lengths, "lengths", c.steps, c.rows)?;
        let size = |t: usize| lengths.partition_point(|n| *n > t as i64);
        with_real!(run.dtype, T => cpu::pad(c, size, gy.slice::<T>(), gx.slice(), output, 0.0));
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

impl PadRows {
    /// The sequences that have a step, as given.
    fn size<'a>(&self, sizes: &'a Data) -> impl Fn(usize) -> usize + 'a {
        let sizes = sizes.as_slice::<i64>();
        |t| sizes.get(t).map_or(0, |n| *n as usize)
    }
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
        greater(sizes, &y[1].data)?;
        let (size, value) = (self.size(sizes), self.value);
        with_real!(run.dtype, T => cpu::pad(c, size, x[0].slice::<T>(), y[0].slice(), Output::Write, value));
        Ok(())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 0b10, y: 0 })
    }

    /// On the host.
    fn backward(&self, run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(sizes), Some(gy), Some(gx)) = (&x[1], &gy[0], &mut gx[0]) else { return Ok(()) };
        let (c, output) = (&self.sequences, gx.output);
        check(sizes.data.as_slice(), "batch_sizes", c.batch, c.rows)?;
        let size = self.size(&sizes.data);
        with_real!(run.dtype, T => cpu::pack(c, size, gy.slice::<T>(), gx.slice(), output));
        Ok(())
    }

    fn scratch(&self, _dtype: DType) -> [usize; 2] {
        self.sequences.scratch()
    }
}
