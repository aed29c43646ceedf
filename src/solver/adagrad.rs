//! `Adagrad`: steps scaled by all past gradients.

use super::{Number, Rule, UpdateStep};
use crate::solver;

solver! {
    /// Adagrad, `v = v + g^2`, `w = w - lr g / (sqrt(v) + eps)` (Duchi et al., 2011).
    Adagrad, rate lr, states [v]
    args {
        lr: f64 = 0.01, "Learning rate.";
        eps: f64 = 1e-8, "Small number that keeps the divisor from 0."
    }
}

impl Rule<1, 2> for Adagrad {
    fn scalars(&self, step: &UpdateStep) -> [f64; 2] {
        [step.learning_rate, self.eps]
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, [v]: [N; 1], [lr, eps]: [N; 2]) -> (N, [N; 1]) {
        let v = v + g.square();
        (w - lr * g / (v.sqrt() + eps), [v])
    }
}
