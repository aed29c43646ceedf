//! `Lars`: momentum with a rate for each parameter, by the norms of weight and gradient.

use super::{Number, Rule, UpdateStep};
use crate::solver;

solver! {
    /// Layer-wise adaptive rates with momentum, `v = momentum v + lr k (g + wd w)`, `w = w - v` with
    /// `k = coefficient |w| / (|g| + wd |w|)`, norms over the whole parameter (You et al., 2017). Where `|w|` is below eps, k is
    /// 1; to a divisor below eps, eps is added. `weight_decay(rate)` sets `wd` for the next update; else it is 0.
    Lars, rate lr, states [v], fused
    args {
        lr: f64 = 0.001, "Learning rate.";
        momentum: f64 = 0.9, "Share of the last step that goes on.";
        coefficient: f64 = 0.001, "Trust coefficient: the length of a step as a share of the weight's.";
        eps: f64 = 1e-6, "Norms below it count as zero."
    }
}

impl Rule<1, 3, 2> for Lars {
    fn scalars(&self, step: &UpdateStep) -> [f64; 3] {
        [step.learning_rate, self.momentum, step.weight_decay.unwrap_or(0.0)]
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, [v]: [N; 1], [rate, momentum, decay]: [N; 3]) -> (N, [N; 1]) {
        let v = momentum * v + rate * (g + decay * w.clone());
        (w - v.clone(), [v])
    }

    #[inline(always)]
    fn normed<N: Number>(w: N, g: N, _: [N; 1], _: [N; 3]) -> [N; 2] {
        [w, g]
    }

    fn with_norms(&self, [rate, momentum, decay]: [f64; 3], [weight, gradient]: [f64; 2]) -> [f64; 3] {
        let divisor = gradient + decay * weight;
        let divisor = if divisor < self.eps { divisor + self.eps } else { divisor };
        let trust = if weight < self.eps { 1.0 } else { self.coefficient * weight / divisor };
        [rate * trust, momentum, decay]
    }
}
