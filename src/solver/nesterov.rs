//! `Nesterov`: momentum that looks one step ahead.

use super::{Rule, Scalars, Step, Terms};
use crate::function::expr::Expr;
use crate::solver;
use smallvec::smallvec;

solver! {
    /// Nesterov's accelerated gradient, `m' = momentum m - lr g`, `w = w + (1 + momentum) m' - momentum m` (Nesterov, 1983).
    Nesterov, rate lr, states [m]
    args {
        lr: f64 = 0.001, "Learning rate.";
        momentum: f64 = 0.9, "Share of the last step that goes on."
    }
}

impl Rule for Nesterov {
    fn scalars(&self, step: &Step) -> Scalars {
        smallvec![step.learning_rate]
    }

    fn formula(&self, x: &Terms) -> Vec<Expr> {
        let past = &x.states[0] * self.momentum;
        let m = &past - &x.scalars[0] * x.g;
        vec![x.w + (&m * (1.0 + self.momentum) - past), m]
    }
}
