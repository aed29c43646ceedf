//! Rectangles of images, at random places, replaced by random numbers.

mod cpu;
mod cuda;
mod patch;

use super::random;
use crate::array::{Data, Place};
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::random::{DrawPolicy, DrawSource, LastDraw, RandomSeed};
use crate::with_real;
use patch::Patch;

/// Random numbers that a patch takes: whether it is there, area, aspect, place.
const NUMBERS: usize = 5;

/// Sizes of the images, and how patches are chosen.
#[derive(Clone, Copy)]
pub struct Erasure {
    pub samples: usize,
    pub channels: usize,
    /// Height and width.
    pub size: [usize; 2],
    pub channel_last: bool,
    /// Patches at most.
    pub patches: usize,
    /// All channels of a sample have the same ones.
    pub share: bool,
    pub prob: f64,
    /// The least and the largest part of the area.
    pub area: [f64; 2],
    /// The least and the largest ratio of height to width.
    pub aspect: [f64; 2],
    /// What replaces elements: numbers from the first to the second.
    pub replacements: [f64; 2],
}

/// What becomes of the elements in patches.
#[derive(Clone, Copy, PartialEq)]
enum Erased {
    /// Random numbers.
    Replaced,
    Zero,
}

impl Erasure {
    fn elements(&self) -> usize {
        self.samples * self.channels * self.size[0] * self.size[1]
    }

    /// Rows of patches: one for each sample, or for each channel of it.
    fn rows(&self) -> usize {
        self.samples * if self.share { 1 } else { self.channels }
    }

    fn table(&self) -> usize {
        self.rows() * self.patches * NUMBERS
    }

    fn run(&self, numbers: DrawSource, x: &Data, y: &Data, erased: Erased) -> Result<()> {
        if y.is_empty() {
            return Ok(());
        }
        let (place, dtype) = (y.place(), if y.dtype() == DType::F64 { DType::F64 } else { DType::F32 });
        let table = random::uniforms(numbers, place, self.table())?;
        let (count, replaced) = (self.table(), erased == Erased::Replaced);
        if let Place::Gpu(_) = place {
            let values = || random::numbers_behind(numbers, place, dtype, count, y.len(), false);
            return cuda::erase(self, &table, replaced.then(values).transpose()?.as_ref(), x, y);
        }
        let draw = if replaced { Some(numbers.known()?) } else { None };
        let patches: Vec<Patch> = table.as_slice().chunks(NUMBERS).map(|u| Patch::new(self, u)).collect();
        with_real!(dtype, T => {
            let (x, y) = (x.as_slice::<T>(), y.as_mut_slice());
            cpu::erase(self, &patches, draw, random::behind(count, dtype), x, y)
        });
        Ok(())
    }

    fn scratch(&self, dtype: DType, values: bool) -> [usize; 2] {
        let values = if values { self.elements().saturating_mul(dtype.size()) } else { 0 };
        [values.saturating_add(self.table().saturating_mul(16)), 0]
    }
}

/// Erases patches, others in each run.
pub struct RandomErase {
    /// The function's own, no clone: it has the last draw.
    pub seed: RandomSeed,
    pub erasure: Erasure,
}

impl Call for RandomErase {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.erasure.run(random::next(&self.seed, run)?, &x[0].data, &y[0].data, Erased::Replaced)
    }

    fn last_draw(&self) -> Option<LastDraw> {
        Some(self.seed.last())
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        self.erasure.scratch(dtype, true)
    }
}

/// Zero where another function erased when it last ran.
pub struct EraseAgain {
    pub draw: LastDraw,
    pub erasure: Erasure,
}

impl Call for EraseAgain {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let numbers = random::numbers(DrawPolicy::Last(self.draw.clone()), run)?;
        self.erasure.run(numbers, &x[0].data, &y[0].data, Erased::Zero)
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        self.erasure.scratch(dtype, false)
    }
}
