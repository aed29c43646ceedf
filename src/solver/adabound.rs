//! `AdaBound`: Adam whose step sizes are held between bounds that come together.

use super::adam::AdamCoefficients;
use super::{Number, Rule, UpdateStep};
use crate::solver;

solver! {
    /// Adam with bounds, `w = w - clip(a_t / (sqrt(var) + eps), lower, upper) mean`, where `var`, `mean` and `a_t` are Adam's,
    /// `lower = f (1 - 1 / (gamma t + 1))` and `upper = f (1 + 1 / (gamma t))`; f is `final_lr` times the learning rate as a
    /// share of the first one (Luo et al., 2019).
    AdaBound, rate alpha, states [var, mean]
    args {
        alpha: f64 = 0.001, "Step size.";
        beta1: f64 = 0.9, "Decay of the running mean of the gradient.";
        beta2: f64 = 0.999, "Decay of the running mean of its square.";
        eps: f64 = 1e-8, "Small number that keeps the divisor from 0.";
        final_lr: f64 = 0.1, "What both bounds go to.";
        gamma: f64 = 0.001, "How fast they do."
    }
}

impl Rule<2, 8> for AdaBound {
    fn scalars(&self, step: &UpdateStep) -> [f64; 8] {
        let moments = AdamCoefficients { beta1: self.beta1, beta2: self.beta2, eps: self.eps };
        let [size, b1, c1, b2, c2, eps] = moments.scalars(step);
        let (end, t) = (self.final_lr * step.learning_rate / self.alpha, self.gamma * step.t as f64);
        [size, b1, c1, b2, c2, eps, end * (1.0 - 1.0 / (t + 1.0)), end * (1.0 + 1.0 / t)]
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, [var, mean]: [N; 2], scalars: [N; 8]) -> (N, [N; 2]) {
        let [size, b1, c1, b2, c2, eps, lower, upper] = scalars;
        let var = b2 * var + c2 * g.square();
        let mean = b1 * mean + c1 * g;
        let eta = (size / (var.sqrt() + eps)).max(&lower).min(&upper);
        (w - eta * mean.clone(), [var, mean])
    }
}
