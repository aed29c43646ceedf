//! Elements moved at random, each sample by other distances: crops, flips and shifts; and the reverse. One axis after the other.

mod cpu;
mod cuda;
mod rule;

use super::axis::Axis;
use super::{ops, random};
use crate::array::{Data, Output, Place};
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::random::{DrawPolicy, DrawSource, LastDraw, RandomSeed};
use crate::shape::Shape;
use crate::with_real;
pub use rule::{MoveKind, MoveRule};

/// What is done along one axis of each sample, or with whole samples.
enum MoveStep {
    /// `parts` places of the axes between a sample and this one.
    Axis { at: Axis, parts: usize, rule: MoveRule },
    /// All axes that number the samples, which have `inner` elements.
    Samples { axes: Vec<MoveRule>, inner: usize },
}

/// Moves from arrays of one shape to arrays of another one.
pub struct RandomMoves {
    /// The shape that is moved from.
    pub x: Shape,
    steps: Vec<MoveStep>,
    /// Elements before the first step, between the steps and after the last.
    sizes: Vec<usize>,
    samples: usize,
    /// Random numbers that each sample takes.
    columns: usize,
    /// What stands where no element is moved to.
    constant: f64,
}

impl RandomMoves {
    /// From shape `x` by a rule for each axis; the first `base` axes of the result number the samples.
    pub fn new(x: &Shape, kinds: &[MoveKind], to: &Shape, base: usize, constant: f64) -> RandomMoves {
        let mut columns = 0;
        let rules = kinds.iter().enumerate().map(|(a, &kind)| {
            let column = columns;
            columns += (kind != MoveKind::Stay) as usize;
            MoveRule { kind, n: x[a], to: to[a], column }
        });
        let rules: Vec<MoveRule> = rules.collect();
        let samples = to.size_to(base);
        let (mut steps, mut sizes) = (Vec::new(), vec![x.size()]);
        if rules[..base].iter().any(|r| r.kind != MoveKind::Stay) {
            steps.push(MoveStep::Samples { axes: rules[..base].to_vec(), inner: x.size_from(base) });
            sizes.push(samples * x.size_from(base));
        }
        for (a, &rule) in rules.iter().enumerate().skip(base).filter(|(_, r)| r.kind != MoveKind::Stay) {
            let parts = to[base..a].iter().product::<usize>();
            let at = Axis { outer: samples * parts, n: x[a], inner: x.size_from(a + 1) };
            sizes.push(at.outer * to[a] * at.inner);
            steps.push(MoveStep::Axis { at, parts, rule });
        }
        RandomMoves { x: x.clone(), steps, sizes, samples, columns, constant }
    }

    /// From `x` to `y`, or back, which adds up what was moved from each place.
    fn run(&self, numbers: DrawSource, x: &Data, y: &Data, back: bool) -> Result<()> {
        if y.is_empty() {
            return Ok(());
        }
        if x.is_empty() || self.steps.is_empty() {
            return if x.is_empty() { ops::fill(y, 0.0) } else { ops::put(y, x, Output::Write) };
        }
        let table = random::uniforms(numbers, y.place(), self.samples * self.columns)?;
        let between = if y.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
        let (mut from, count) = (x.clone(), self.steps.len());
        for k in 0..count {
            let step = if back { count - 1 - k } else { k };
            let size = self.sizes[if back { step } else { step + 1 }];
            let to = if k + 1 == count { y.clone() } else { Data::new_at(y.place(), between, size)? };
            self.step(&self.steps[step], &table, &from, &to, back)?;
            from = to;
        }
        Ok(())
    }

    fn step(&self, step: &MoveStep, table: &Data, x: &Data, y: &Data, back: bool) -> Result<()> {
        if y.is_empty() || x.is_empty() {
            return ops::fill(y, 0.0);
        }
        if let Place::Gpu(_) = y.place() {
            return match step {
                MoveStep::Axis { at, parts, rule } => {
                    cuda::axis(self, [at, &Axis { outer: *parts, ..*at }], rule, table, x, y, back)
                }
                MoveStep::Samples { axes, inner } => cuda::samples(self, axes, *inner, table, x, y, back),
            };
        }
        let table = cpu::MoveTable { numbers: table.as_slice(), columns: self.columns, constant: self.constant };
        with_real!(y.dtype(), T => {
            let (x, y) = (x.as_slice::<T>(), y.as_mut_slice::<T>());
            match step {
                MoveStep::Axis { at, parts, rule } => cpu::axis(at, *parts, rule, &table, x, y, back),
                MoveStep::Samples { axes, inner } => cpu::samples(axes, *inner, self.samples, &table, x, y, back),
            }
        });
        Ok(())
    }

    /// Bytes of what lies between the steps.
    fn scratch(&self, dtype: DType) -> [usize; 2] {
        let between = self.sizes.iter().copied().max().unwrap_or(0) * (self.steps.len().saturating_sub(1)).min(2);
        [between.saturating_mul(dtype.size()).saturating_add(8 * self.samples * self.columns), 0]
    }
}

/// Moves elements, others in each run.
pub struct RandomMove {
    /// The function's own, no clone: it has the last draw.
    pub seed: RandomSeed,
    pub moves: RandomMoves,
}

impl Call for RandomMove {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.moves.run(random::next(&self.seed, run)?, &x[0].data, &y[0].data, false)
    }

    fn last_draw(&self) -> Option<LastDraw> {
        Some(self.seed.last())
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        self.moves.scratch(dtype)
    }
}

/// Moves elements as another function did when it last ran; or back.
pub struct MoveAgain {
    pub draw: LastDraw,
    pub moves: RandomMoves,
    pub back: bool,
}

impl Call for MoveAgain {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let numbers = random::numbers(DrawPolicy::Last(self.draw.clone()), run)?;
        self.moves.run(numbers, &x[0].data, &y[0].data, self.back)
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        self.moves.scratch(dtype)
    }
}
