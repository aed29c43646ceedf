//! Elements picked at random from rows, by weights.

mod cpu;
mod cuda;

use super::gather::Picks;
use super::{ops, random};
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::random::{DrawPolicy, DrawSource, LastDraw, RandomSeed};
use crate::with_real;

/// How many are picked from each of `rows` rows of `n` elements.
#[derive(Clone, Copy)]
pub struct Choice {
    pub rows: usize,
    pub n: usize,
    pub picks: usize,
    /// An element may be picked again.
    pub replace: bool,
}

impl Choice {
    /// The elements' numbers. Weights that cannot be are an error on the host; a GPU gives numbers of no element.
    ///
    /// With replacement, a number for each pick falls into the sums of the weights. Without, a number for each element gives it an
    /// exponential key, and the least keys win: as if picked one after the other (Efraimidis and Spirakis, 2006).
    fn indices(&self, numbers: DrawSource, w: &Data, indices: &Data) -> Result<()> {
        if indices.is_empty() {
            return Ok(());
        }
        let count = self.rows * if self.replace { self.picks } else { self.n };
        let table = random::uniforms(numbers, w.place(), count)?;
        match w.place() {
            Place::Gpu(_) => cuda::indices(self, &table, w, indices),
            Place::Host => with_real!(w.dtype(), T => {
                cpu::indices(self, table.as_slice(), w.as_slice::<T>(), indices.as_mut_slice())
            }),
        }
    }

    fn scratch(&self) -> [usize; 2] {
        let counts = self.rows.saturating_mul(self.n.saturating_add(2 * self.picks.max(self.n)));
        [counts.saturating_mul(8), 0]
    }
}

/// Picks elements of the first input by the weights of the second.
pub struct RandomChoice {
    /// The function's own, no clone: it has the last draw.
    pub seed: RandomSeed,
    pub choice: Choice,
}

/// The elements' numbers of a forward pass.
struct ChosenElements(Data);

impl Call for RandomChoice {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let Choice { rows, n, picks, .. } = self.choice;
        let indices = Data::new_at(y[0].data.place(), DType::I64, rows * picks)?;
        self.choice.indices(random::next_beside(&self.seed, run)?, &x[1].data, &indices)?;
        if !indices.is_empty() {
            Picks { batch: rows, outer: 1, n, inner: 1, picks }.pick(&x[0].data, &indices, &y[0].data)?;
        }
        if run.keep {
            run.save(ChosenElements(indices));
        } else if !run.again && indices.place() == Place::Host {
            run.saved.clear(); // the draw is no picks
        }
        Ok(())
    }

    fn scratch(&self, _dtype: DType) -> [usize; 2] {
        self.choice.scratch()
    }

    fn last_draw(&self) -> Option<LastDraw> {
        Some(self.seed.last())
    }

    fn saves(&self, _dtype: DType) -> Option<usize> {
        Some(self.choice.rows.saturating_mul(self.choice.picks).saturating_mul(DType::I64.size()))
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    /// Both inputs have the same gradient. On the host, since a GPU keeps no numbers.
    fn backward(&self, run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let Some(gy) = &gy[0] else {
            let mut written = gx.iter().flatten().filter(|gx| gx.output == Output::Write);
            return written.try_for_each(|gx| ops::fill(&gx.data, 0.0));
        };
        let chosen = run.saved::<ChosenElements>().ok_or_else(|| {
            Error::graph("the picks of the forward pass are missing").hint("call forward() before backward()")
        })?;
        let Some(dtype) = gx.iter().flatten().map(|gx| gx.data.dtype()).next() else { return Ok(()) };
        with_real!(dtype, T => {
            let to = gx.iter().flatten().map(|gx| (gx.data.as_mut_slice::<T>(), gx.output));
            cpu::put_back(&self.choice, chosen.0.as_slice(), gy.data.as_slice(), to)
        });
        Ok(())
    }
}

/// Which elements another function picked when it last ran, from the same weights.
pub struct ChosenIndices {
    pub draw: LastDraw,
    pub choice: Choice,
}

impl Call for ChosenIndices {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let numbers = random::numbers(DrawPolicy::Last(self.draw.clone()), run)?;
        self.choice.indices(numbers, &x[0].data, &y[0].data)
    }

    fn scratch(&self, _dtype: DType) -> [usize; 2] {
        self.choice.scratch()
    }
}
