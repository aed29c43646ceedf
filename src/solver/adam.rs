//! `Adam`: steps scaled by running means of the gradient and of its square.

use super::{Number, Rule, UpdateStep};
use crate::solver;

solver! {
    /// Adam, `w = w - a_t mean / (sqrt(var) + eps)` with `mean = beta1 mean + (1 - beta1) g`,
    /// `var = beta2 var + (1 - beta2) g^2`, `a_t = alpha sqrt(1 - beta2^t) / (1 - beta1^t)` (Kingma and Ba, 2015).
    Adam, rate alpha, states [var, mean]
    args {
        alpha: f64 = 0.001, "Step size.";
        beta1: f64 = 0.9, "Decay of the running mean of the gradient.";
        beta2: f64 = 0.999, "Decay of the running mean of its square.";
        eps: f64 = 1e-8, "Small number that keeps the divisor from 0."
    }
}

/// Decay of the two means, and the number that keeps the divisor from 0.
pub(super) struct AdamCoefficients {
    pub beta1: f64,
    pub beta2: f64,
    pub eps: f64,
}

impl AdamCoefficients {
    /// The numbers of `advance`. The step size makes up for the means' start from zero.
    pub fn scalars(&self, step: &UpdateStep) -> [f64; 6] {
        let (b1, b2, t) = (self.beta1, self.beta2, step.t as f64);
        let size = step.learning_rate * (1.0 - b2.powf(t)).sqrt() / (1.0 - b1.powf(t));
        [size, b1, 1.0 - b1, b2, 1.0 - b2, self.eps]
    }
}

/// The change of the weight, and the new means.
#[inline(always)]
pub(super) fn advance<N: Number>(g: N, [var, mean]: [N; 2], [size, b1, c1, b2, c2, eps]: [N; 6]) -> (N, [N; 2]) {
    let var = b2 * var + c2 * g.square();
    let mean = b1 * mean + c1 * g;
    (size * mean.clone() / (var.sqrt() + eps), [var, mean])
}

impl Rule<2, 6> for Adam {
    fn scalars(&self, step: &UpdateStep) -> [f64; 6] {
        AdamCoefficients { beta1: self.beta1, beta2: self.beta2, eps: self.eps }.scalars(step)
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, states: [N; 2], scalars: [N; 6]) -> (N, [N; 2]) {
        let (change, states) = advance(g, states, scalars);
        (w - change, states)
    }
}
