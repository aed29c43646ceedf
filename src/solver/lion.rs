//! `Lion`: steps of one size in the direction of the gradient's sign.

use super::{Number, Rule, UpdateStep};
use crate::solver;

solver! {
    /// Evolved sign momentum, `w = w - lr (sign(beta1 m + (1 - beta1) g) + wd w)`, then `m = beta2 m + (1 - beta2) g` (Chen et
    /// al., 2023). `weight_decay(rate)` sets `wd` for the next update; else it is 0. The sign of NaN is 0.
    Lion, rate lr, states [m], fused
    args {
        lr: f64 = 0.0001, "Step size.";
        beta1: f64 = 0.9, "Share of the running mean in the direction.";
        beta2: f64 = 0.99, "Decay of the running mean of the gradient."
    }
}

impl Rule<1, 6> for Lion {
    fn scalars(&self, step: &UpdateStep) -> [f64; 6] {
        let (b1, b2) = (self.beta1, self.beta2);
        [step.learning_rate, b1, 1.0 - b1, b2, 1.0 - b2, step.weight_decay.unwrap_or(0.0)]
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, [m]: [N; 1], [lr, b1, c1, b2, c2, decay]: [N; 6]) -> (N, [N; 1]) {
        let u = (b1 * m.clone() + c1 * g.clone()).sign();
        (w.clone() - lr * (u + decay * w), [b2 * m + c2 * g])
    }
}
