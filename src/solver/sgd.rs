//! `Sgd`: plain stochastic gradient descent.

use super::{Number, Rule, UpdateStep};
use crate::solver;

solver! {
    /// Stochastic gradient descent, `w = w - lr g`.
    Sgd, rate lr, states []
    args { lr: f64 = 0.001, "Learning rate." }
}

impl Rule<0, 1> for Sgd {
    fn scalars(&self, step: &UpdateStep) -> [f64; 1] {
        [step.learning_rate]
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, []: [N; 0], [lr]: [N; 1]) -> (N, [N; 0]) {
        (w - lr * g, [])
    }
}
