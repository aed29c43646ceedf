//! `rand`, `randn` and `randint`: arrays of random numbers.

use crate::function;
use crate::function::array::List;
use crate::function::{Function, Resolved};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::random::{self as kernel, Kind};
use nnrs_kernels::random::RandomSeed;
use nnrs_kernels::shape::Shape;

/// An array of the given shape.
pub(super) fn resolve(shape: &List, seed: &RandomSeed, kind: Kind) -> Result<Resolved> {
    if let Some(d) = shape.iter().find(|d| **d < 0) {
        return Err(Error::arg("shape", "sizes of 0 or more").actual(d));
    }
    let y: Shape = shape.iter().map(|&d| d as usize).collect();
    Ok(Resolved::one(y, kernel::Rand { kind, seed: seed.twin() }))
}

fn above(ordered: bool, high: impl std::fmt::Display) -> Result<()> {
    if ordered { Ok(()) } else { Err(Error::arg("high", "a number larger than `low`").actual(high)) }
}

/// Whole numbers are int32, as in NNabla.
fn in_int32(argument: &str, bound: i64) -> Result<()> {
    match i32::try_from(bound) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::arg(argument, format!("a number of int32, {} to {}", i32::MIN, i32::MAX)).actual(bound)),
    }
}

fn nonzero(sigma: f64) -> Result<()> {
    if sigma != 0.0 { Ok(()) } else { Err(Error::arg("sigma", "a number other than 0").actual(sigma)) }
}

function! {
    /// Uniform random numbers, at least `low` and less than `high`.
    Rand rand in Random, any_device
    inputs { }
    args {
        low: f64 = 0.0, "The lower bound.";
        high: f64 = 1.0, "The upper bound.";
        shape: List = List::default(), "Shape of the result.";
        seed: RandomSeed = RandomSeed::default(), "Seed of this function; -1: the global random stream."
    }
    outputs { y: "Random numbers of the given shape." }
}

impl Function for Rand {
    fn resolve(&self, _x: &[Shape]) -> Result<Resolved> {
        above(self.low < self.high, self.high)?;
        resolve(&self.shape, &self.seed, Kind::Uniform { low: self.low, high: self.high })
    }

    fn has_state(&self) -> bool {
        true
    }
}

function! {
    /// Normal random numbers.
    Randn randn in Random, any_device
    inputs { }
    args {
        mu: f64 = 0.0, "The mean.";
        sigma: f64 = 1.0, "The standard deviation.";
        shape: List = List::default(), "Shape of the result.";
        seed: RandomSeed = RandomSeed::default(), "Seed of this function; -1: the global random stream."
    }
    outputs { y: "Random numbers of the given shape." }
}

impl Function for Randn {
    fn resolve(&self, _x: &[Shape]) -> Result<Resolved> {
        nonzero(self.sigma)?;
        resolve(&self.shape, &self.seed, Kind::Normal { mu: self.mu, sigma: self.sigma })
    }

    fn has_state(&self) -> bool {
        true
    }
}

function! {
    /// Random integers of int32, at least `low` and less than `high`.
    Randint randint in Random, any_device
    inputs { }
    args {
        low: i64 = 0, "The lower bound, -2^31 or more.";
        high: i64 = 1, "The upper bound, at most 2^31 - 1.";
        shape: List = List::default(), "Shape of the result.";
        seed: RandomSeed = RandomSeed::default(), "Seed of this function; -1: the global random stream."
    }
    outputs { y: "Random numbers of the given shape." }
}

impl Function for Randint {
    fn resolve(&self, _x: &[Shape]) -> Result<Resolved> {
        in_int32("low", self.low)?;
        in_int32("high", self.high)?;
        above(self.low < self.high, self.high)?;
        resolve(&self.shape, &self.seed, Kind::Integers { low: self.low, high: self.high })
    }

    fn output_dtype(&self, _i: usize) -> Option<DType> {
        Some(DType::I32)
    }

    fn has_state(&self) -> bool {
        true
    }
}
