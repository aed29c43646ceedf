//! `AMSBound`: AMSGrad whose step sizes are held between bounds.

use super::adam::AdamCoefficients;
use super::amsgrad::{advance, coefficients};
use super::{Number, Rule, UpdateStep};
use crate::solver;

solver! {
    /// AMSGrad with bounds, `w = w - clip(alpha / (sqrt(v_hat) + eps), lower, upper) m`, where `v_hat` and `m` are AMSGrad's,
    /// `lower = f (1 - 1 / (gamma t + 1))` and `upper = f (1 + t / gamma)`; f is `final_lr` times the learning rate as a share
    /// of the first one. The upper bound is NNabla's; in the paper it is `f (1 + 1 / (gamma t))`, as in `AdaBound` (Luo et
    /// al., 2019).
    AMSBound, rate alpha, states [v_hat, v, m]
    args {
        alpha: f64 = 0.001, "Step size.";
        beta1: f64 = 0.9, "Decay of the running mean of the gradient.";
        beta2: f64 = 0.999, "Decay of the running mean of its square.";
        eps: f64 = 1e-8, "Small number that keeps the divisor from 0; not in the paper.";
        final_lr: f64 = 0.1, "What the lower bound goes to.";
        gamma: f64 = 0.001, "How fast it does.";
        bias_correction: bool = false, "Adam's factor `sqrt(1 - beta2^t) / (1 - beta1^t)` of the step size; not in the paper."
    }
}

impl Rule<3, 8> for AMSBound {
    fn scalars(&self, step: &UpdateStep) -> [f64; 8] {
        let moments = AdamCoefficients { beta1: self.beta1, beta2: self.beta2, eps: self.eps };
        let [size, b1, c1, b2, c2, eps] = coefficients(moments, self.bias_correction, step);
        let (end, t) = (self.final_lr * step.learning_rate / self.alpha, step.t as f64);
        [size, b1, c1, b2, c2, eps, end * (1.0 - 1.0 / (self.gamma * t + 1.0)), end * (1.0 + t / self.gamma)]
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, states: [N; 3], scalars: [N; 8]) -> (N, [N; 3]) {
        let [size, b1, c1, b2, c2, eps, lower, upper] = scalars;
        let (eta, [v_hat, v, m]) = advance(g, states, [size, b1, c1, b2, c2, eps]);
        (w - eta.max(&lower).min(&upper) * m.clone(), [v_hat, v, m])
    }
}
