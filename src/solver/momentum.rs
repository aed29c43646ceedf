//! `Momentum`: gradient descent with a running sum of the past steps.

use super::{Rule, Scalars, Step, Terms};
use crate::function::expr::Expr;
use crate::solver;
use smallvec::smallvec;

solver! {
    /// Gradient descent with momentum, `m = momentum m + lr g`, `w = w - m` (Polyak, 1964). The learning rate goes into
    /// `m`, so a change of it leaves the past steps as they were.
    Momentum, rate lr, states [m]
    args {
        lr: f64 = 0.001, "Learning rate.";
        momentum: f64 = 0.9, "Share of the last step that goes on."
    }
}

impl Rule for Momentum {
    fn scalars(&self, step: &Step) -> Scalars {
        smallvec![step.learning_rate]
    }

    fn formula(&self, x: &Terms) -> Vec<Expr> {
        let m = &x.states[0] * self.momentum + &x.scalars[0] * x.g;
        vec![x.w - &m, m]
    }
}
