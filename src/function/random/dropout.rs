//! `dropout`: elements are dropped at random.

use crate::function;
use crate::function::{Function, Grad, Resolved, call_one};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::random as kernel;
use nnrs_kernels::random::{LastDraw, RandomSeed};
use nnrs_kernels::shape::Shape;

function! {
    /// Drops elements with probability p and divides the others by 1 - p (Srivastava et al., 2014).
    ///
    /// Each run drops other elements; its backward pass drops the same ones.
    Dropout dropout in Random, any_device
    inputs { x: "N-D array." }
    args {
        p: f64 = 0.5, "Probability of an element to be dropped, at least 0 and less than 1.";
        seed: RandomSeed = RandomSeed::default(), "Seed of this function; -1: the global random stream."
    }
    outputs { y: "N-D array of x's shape." }
}

/// Checks the share of elements that are dropped: 1 less it must not vanish in the narrowest type that computes.
pub(crate) fn check_dropout(argument: &str, p: f64) -> Result<()> {
    if !(0.0..1.0).contains(&p) || p as f32 >= 1.0 {
        return Err(Error::arg(argument, "a number of at least 0 and less than 1").actual(p));
    }
    Ok(())
}

impl Function for Dropout {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        check_dropout("p", self.p)?;
        Ok(Resolved::one(x[0].clone(), kernel::Dropout { p: self.p, n: x[0].size(), seed: self.seed.twin() }))
    }

    fn has_state(&self) -> bool {
        true
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let again = DropoutAgain { p: self.p, draw: self.seed.last() };
        Ok(vec![Some(call_one(again, &[&g.gy[0], &g.y[0]])?)])
    }
}

function! {
    /// Drops the elements that a dropout dropped when it last ran: its derivative.
    DropoutAgain dropout_again in Special, forward_on_any_device
    inputs { x: "N-D array.", after: "The dropout's output: it runs first." }
    args {
        p: f64 = 0.5, "As of `dropout`.";
        draw: LastDraw, "What was dropped."
    }
    outputs { y: "N-D array of x's shape." }
}

impl Function for DropoutAgain {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        Ok(Resolved::one(x[0].clone(), kernel::DropoutAgain { p: self.p, draw: self.draw.clone() }))
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(call_one(self.clone(), &[&g.gy[0], &g.x[1]])?), None])
    }
}
