//! `AMSGRAD`: Adam by the largest of the past running means of squares.

use super::adam::AdamCoefficients;
use super::{Number, Rule, UpdateStep};
use crate::solver;

solver! {
    /// AMSGrad, `w = w - alpha m / (sqrt(v_hat) + eps)` with `m = beta1 m + (1 - beta1) g`, `v = beta2 v + (1 - beta2) g^2`,
    /// `v_hat = max(v_hat, v)` (Reddi et al., 2018).
    AMSGRAD, rate alpha, states [v_hat, v, m]
    args {
        alpha: f64 = 0.001, "Step size.";
        beta1: f64 = 0.9, "Decay of the running mean of the gradient.";
        beta2: f64 = 0.999, "Decay of the running mean of its square.";
        eps: f64 = 1e-8, "Small number that keeps the divisor from 0; not in the paper.";
        bias_correction: bool = false, "Adam's factor `sqrt(1 - beta2^t) / (1 - beta1^t)` of the step size; not in the paper."
    }
}

/// The numbers of `advance`: Adam's, with its step size or the plain one.
pub(super) fn coefficients(moments: AdamCoefficients, bias_correction: bool, step: &UpdateStep) -> [f64; 6] {
    let [size, b1, c1, b2, c2, eps] = moments.scalars(step);
    [if bias_correction { size } else { step.learning_rate }, b1, c1, b2, c2, eps]
}

/// The step size of each element, and the new states.
#[inline(always)]
pub(super) fn advance<N: Number>(g: N, states: [N; 3], scalars: [N; 6]) -> (N, [N; 3]) {
    let ([v_hat, v, m], [size, b1, c1, b2, c2, eps]) = (states, scalars);
    let v = b2 * v + c2 * g.square();
    let m = b1 * m + c1 * g;
    let v_hat = v.max(&v_hat);
    (size / (v_hat.sqrt() + eps), [v_hat, v, m])
}

impl Rule<3, 6> for AMSGRAD {
    fn scalars(&self, step: &UpdateStep) -> [f64; 6] {
        let moments = AdamCoefficients { beta1: self.beta1, beta2: self.beta2, eps: self.eps };
        coefficients(moments, self.bias_correction, step)
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, states: [N; 3], scalars: [N; 6]) -> (N, [N; 3]) {
        let (eta, [v_hat, v, m]) = advance(g, states, scalars);
        (w - eta * m.clone(), [v_hat, v, m])
    }
}
