//! `Adadelta`: steps scaled by the running sizes of past steps and gradients.

use super::{Number, Rule, UpdateStep};
use crate::solver;

solver! {
    /// Adadelta, `w = w - lr d` with `d = g sqrt((e_sqr_delta + eps) / (e_sqr_grad + eps))`, where `e_sqr_grad` is the running
    /// mean of `g^2`, this one's included, and `e_sqr_delta` that of `d^2` before this step (Zeiler, 2012).
    Adadelta, rate lr, states [e_sqr_delta, e_sqr_grad]
    args {
        lr: f64 = 1.0, "Learning rate.";
        decay: f64 = 0.95, "Decay of the two running means.";
        eps: f64 = 1e-6, "Small number that keeps the divisor from 0, and with which steps begin."
    }
}

impl Rule<2, 4> for Adadelta {
    fn scalars(&self, step: &UpdateStep) -> [f64; 4] {
        [step.learning_rate, self.decay, 1.0 - self.decay, self.eps]
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, [delta, grad]: [N; 2], [lr, decay, rest, eps]: [N; 4]) -> (N, [N; 2]) {
        let grad = decay.clone() * grad + rest.clone() * g.square();
        let d = ((delta.clone() + eps.clone()) / (grad.clone() + eps)).sqrt() * g;
        (w - lr * d.clone(), [decay * delta + rest * d.square(), grad])
    }
}
