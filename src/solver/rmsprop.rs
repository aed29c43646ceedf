//! `RMSprop`: steps scaled by the running size of the gradient.

use super::{Number, Rule, UpdateStep};
use crate::solver;

solver! {
    /// RMSprop, `v = decay v + (1 - decay) g^2`, `w = w - lr g / (sqrt(v) + eps)` (Hinton, 2012).
    RMSprop, rate lr, states [v]
    args {
        lr: f64 = 0.001, "Learning rate.";
        decay: f64 = 0.9, "Decay of the running mean of the gradient's square.";
        eps: f64 = 1e-8, "Small number that keeps the divisor from 0."
    }
}

impl Rule<1, 4> for RMSprop {
    fn scalars(&self, step: &UpdateStep) -> [f64; 4] {
        [step.learning_rate, self.decay, 1.0 - self.decay, self.eps]
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, [v]: [N; 1], [lr, decay, rest, eps]: [N; 4]) -> (N, [N; 1]) {
        let v = decay * v + rest * g.square();
        (w - lr * g / (v.sqrt() + eps), [v])
    }
}
