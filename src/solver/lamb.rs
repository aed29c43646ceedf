//! `Lamb`: Adam's steps, each parameter's as long as its weight.

use super::{Number, Rule, UpdateStep};
use crate::solver;

solver! {
    /// Layer-wise adaptive moments, `w = w - eta clip(|w|, gamma_l, gamma_u) / |r| r` with `r = mean / (sqrt(var) + eps) + wd w`,
    /// where `mean` and `var` are Adam's and norms are over the whole parameter (You et al., 2020). Where `|r|` is below eps,
    /// the factor is eta. `weight_decay(rate)` sets `wd` for the next update; else it is 0.
    Lamb, rate eta, states [var, mean], fused
    args {
        eta: f64 = 0.001, "Learning rate.";
        beta1: f64 = 0.9, "Decay of the running mean of the gradient.";
        beta2: f64 = 0.999, "Decay of the running mean of its square.";
        gamma_l: f64 = 0.0, "Lower bound of the weight's norm in the factor.";
        gamma_u: f64 = 10.0, "Upper bound of it.";
        eps: f64 = 1e-6, "Small number that keeps the divisor from 0.";
        bias_correction: bool = false, "Divide `mean` by `1 - beta1^t` and `var` by `1 - beta2^t` in r."
    }
}

/// The direction before it is scaled, and the new means.
#[inline(always)]
fn direction<N: Number>(w: N, g: N, [var, mean]: [N; 2], [_, b1, c1, b2, c2, root, eps, decay]: [N; 8]) -> (N, [N; 2]) {
    let var = b2 * var + c2 * g.square();
    let mean = b1 * mean + c1 * g;
    (mean.clone() / (root * var.sqrt() + eps) + decay * w, [var, mean])
}

impl Rule<2, 8, 2> for Lamb {
    fn scalars(&self, step: &UpdateStep) -> [f64; 8] {
        let (b1, b2, t) = (self.beta1, self.beta2, step.t as f64);
        // mean / k1 / (sqrt(var / k2) + eps) with both of the divisor's terms times k1
        let (k1, k2) = if self.bias_correction { (1.0 - b1.powf(t), 1.0 - b2.powf(t)) } else { (1.0, 1.0) };
        let decay = step.weight_decay.unwrap_or(0.0);
        [step.learning_rate, b1, 1.0 - b1, b2, 1.0 - b2, k1 / k2.sqrt(), k1 * self.eps, decay]
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, states: [N; 2], scalars: [N; 8]) -> (N, [N; 2]) {
        let size = scalars[0].clone();
        let (r, states) = direction(w.clone(), g, states, scalars);
        (w - size * r, states)
    }

    #[inline(always)]
    fn normed<N: Number>(w: N, g: N, states: [N; 2], scalars: [N; 8]) -> [N; 2] {
        [w.clone(), direction(w, g, states, scalars).0]
    }

    fn with_norms(&self, mut scalars: [f64; 8], [weight, r]: [f64; 2]) -> [f64; 8] {
        // As `clamp`, for bounds in any order.
        let length = weight.max(self.gamma_l).min(self.gamma_u);
        scalars[0] *= if r < self.eps { 1.0 } else { length / r };
        scalars
    }
}
