//! `Adamax`: Adam by the largest of the past gradients instead of their squares.

use super::{Number, Rule, UpdateStep};
use crate::solver;

solver! {
    /// Adamax, `w = w - alpha / (1 - beta1^t) m / (u + eps)` with `m = beta1 m + (1 - beta1) g`, `u = max(beta2 u, |g|)`
    /// (Kingma and Ba, 2015).
    Adamax, rate alpha, states [u, m]
    args {
        alpha: f64 = 0.002, "Step size.";
        beta1: f64 = 0.9, "Decay of the running mean of the gradient.";
        beta2: f64 = 0.999, "Decay of the largest gradient.";
        eps: f64 = 1e-8, "Small number that keeps the divisor from 0."
    }
}

impl Rule<2, 5> for Adamax {
    fn scalars(&self, step: &UpdateStep) -> [f64; 5] {
        let size = step.learning_rate / (1.0 - self.beta1.powf(step.t as f64));
        [size, self.beta1, 1.0 - self.beta1, self.beta2, self.eps]
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, [u, m]: [N; 2], [size, b1, c1, b2, eps]: [N; 5]) -> (N, [N; 2]) {
        let u = g.abs().max(&(b2 * u));
        let m = b1 * m + c1 * g;
        (w - size * m.clone() / (u.clone() + eps), [u, m])
    }
}
