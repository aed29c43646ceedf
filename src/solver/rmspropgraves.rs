//! `RMSpropGraves`: steps scaled by the running deviation of the gradient, with momentum.

use super::{Number, Rule, UpdateStep};
use crate::solver;

solver! {
    /// RMSprop in Graves' form: `n` and `g` are the running means of the gradient's square and of the gradient,
    /// `d = momentum d - lr gradient / sqrt(n - g^2 + eps)`, `w = w + d` (Graves, 2013).
    RMSpropGraves, rate lr, states [g, d, n]
    args {
        lr: f64 = 0.0001, "Learning rate.";
        decay: f64 = 0.95, "Decay of the two running means.";
        momentum: f64 = 0.9, "Share of the last step that goes on.";
        eps: f64 = 0.0001, "Small number that keeps the root's argument above 0."
    }
}

impl Rule<3, 5> for RMSpropGraves {
    fn scalars(&self, step: &UpdateStep) -> [f64; 5] {
        [step.learning_rate, self.decay, 1.0 - self.decay, self.momentum, self.eps]
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, e: N, [g, d, n]: [N; 3], [lr, decay, rest, momentum, eps]: [N; 5]) -> (N, [N; 3]) {
        let n = decay.clone() * n + rest.clone() * e.square();
        let g = decay * g + rest * e.clone();
        let d = momentum * d - lr * e / (n.clone() - g.square() + eps).sqrt();
        (w + d.clone(), [g, d, n])
    }
}
