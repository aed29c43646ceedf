//! Arrays of random numbers.

use super::{cuda, next};
use crate::array::Place;
use crate::call::{Call, Run, View, ViewMut};
use crate::error::Result;
use crate::random::philox;
use crate::random::philox::Distribution;
use crate::random::{LastDraw, RandomSeed};
use crate::with_real;

/// How numbers are distributed.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Uniform { low: f64, high: f64 },
    Normal { mu: f64, sigma: f64 },
    Integers { low: i64, high: i64 },
    Shaped(Distribution),
}

/// An array of random numbers.
pub struct Rand {
    pub kind: Kind,
    /// The function's own, no clone: it has the last draw.
    pub seed: RandomSeed,
}

impl Call for Rand {
    fn forward(&self, run: &Run, _x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (numbers, y) = (next(&self.seed, run)?, &mut y[0]);
        if let Place::Gpu(_) = y.data.place() {
            return match self.kind {
                Kind::Uniform { low, high } => cuda::uniform(numbers, &y.data, low, high),
                Kind::Normal { mu, sigma } => cuda::normal(numbers, &y.data, mu, sigma),
                Kind::Integers { low, high } => cuda::integers(numbers, &y.data, low, high),
                Kind::Shaped(distribution) => cuda::shaped(numbers, &y.data, distribution),
            };
        }
        let draw = numbers.known()?;
        match self.kind {
            Kind::Uniform { low, high } => with_real!(run.dtype, T => philox::uniform(draw, y.slice::<T>(), low, high)),
            Kind::Normal { mu, sigma } => with_real!(run.dtype, T => philox::normal(draw, y.slice::<T>(), mu, sigma)),
            Kind::Integers { low, high } => philox::integers(draw, y.slice::<i32>(), low, high),
            Kind::Shaped(distribution) => {
                with_real!(run.dtype, T => philox::shaped(draw, y.slice::<T>(), distribution))
            }
        }
        Ok(())
    }

    fn last_draw(&self) -> Option<LastDraw> {
        Some(self.seed.last())
    }
}
