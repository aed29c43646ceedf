//! `rand_binomial`, `rand_beta` and `rand_gamma`: random numbers of other distributions.

use super::rand::resolve;
use crate::function;
use crate::function::array::List;
use crate::function::{Function, Resolved};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::random::Kind;
use nnrs_kernels::random::RandomSeed;
use nnrs_kernels::random::philox::Distribution;
use nnrs_kernels::shape::Shape;

/// Trials at most: all whole numbers up to it are doubles.
const MOST: i64 = 1 << 53;

fn positive(name: &str, v: f64) -> Result<()> {
    if v > 0.0 && v.is_finite() { Ok(()) } else { Err(Error::arg(name, "a finite number above 0").actual(v)) }
}

function! {
    /// Binomial random numbers: how many of `n` trials succeed, each with probability `p`.
    RandBinomial rand_binomial in Random, any_device
    inputs { }
    args {
        n: i64 = 1, "The number of trials, 1 or more.";
        p: f64 = 0.5, "The probability of success, more than 0 and less than 1.";
        shape: List = List::default(), "Shape of the result.";
        seed: RandomSeed = RandomSeed::default(), "Seed of this function; -1: the global random stream."
    }
    outputs { y: "Random numbers of the given shape." }
}

impl Function for RandBinomial {
    fn resolve(&self, _x: &[Shape]) -> Result<Resolved> {
        if !(1..=MOST).contains(&self.n) {
            return Err(Error::arg("n", "1 or more trials, 2^53 at most").actual(self.n));
        }
        if !(self.p > 0.0 && self.p < 1.0) {
            return Err(Error::arg("p", "a number above 0 and below 1").actual(self.p));
        }
        resolve(&self.shape, &self.seed, Kind::Shaped(Distribution::Binomial { n: self.n as f64, p: self.p }))
    }

    fn has_state(&self) -> bool {
        true
    }
}

function! {
    /// Beta random numbers, of density `x^(alpha - 1) (1 - x)^(beta - 1)` up to a factor.
    RandBeta rand_beta in Random, any_device
    inputs { }
    args {
        alpha: f64 = 0.5, "The first shape, more than 0.";
        beta: f64 = 0.5, "The second shape, more than 0.";
        shape: List = List::default(), "Shape of the result.";
        seed: RandomSeed = RandomSeed::default(), "Seed of this function; -1: the global random stream."
    }
    outputs { y: "Random numbers of the given shape." }
}

impl Function for RandBeta {
    fn resolve(&self, _x: &[Shape]) -> Result<Resolved> {
        positive("alpha", self.alpha)?;
        positive("beta", self.beta)?;
        resolve(&self.shape, &self.seed, Kind::Shaped(Distribution::Beta { alpha: self.alpha, beta: self.beta }))
    }

    fn has_state(&self) -> bool {
        true
    }
}

function! {
    /// Gamma random numbers, of density `x^(k - 1) exp(-x / theta)` up to a factor.
    RandGamma rand_gamma in Random, any_device
    inputs { }
    args {
        k: f64 = 0.5, "The shape of the distribution, more than 0.";
        theta: f64 = 1.0, "Its scale, more than 0.";
        shape: List = List::default(), "Shape of the result.";
        seed: RandomSeed = RandomSeed::default(), "Seed of this function; -1: the global random stream."
    }
    outputs { y: "Random numbers of the given shape." }
}

impl Function for RandGamma {
    fn resolve(&self, _x: &[Shape]) -> Result<Resolved> {
        positive("k", self.k)?;
        positive("theta", self.theta)?;
        resolve(&self.shape, &self.seed, Kind::Shaped(Distribution::Gamma { k: self.k, theta: self.theta }))
    }

    fn has_state(&self) -> bool {
        true
    }
}
