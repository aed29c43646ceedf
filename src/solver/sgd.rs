//! `Sgd`: plain stochastic gradient descent.

use super::{Rule, Scalars, Step, Terms};
use crate::function::expr::Expr;
use crate::solver;
use smallvec::smallvec;

solver! {
    /// Stochastic gradient descent, `w = w - lr g`.
    Sgd, rate lr, states []
    args { lr: f64 = 0.001, "Learning rate." }
}

impl Rule for Sgd {
    fn scalars(&self, step: &Step) -> Scalars {
        smallvec![step.learning_rate]
    }

    fn formula(&self, x: &Terms) -> Vec<Expr> {
        vec![x.w - &x.scalars[0] * x.g]
    }
}
