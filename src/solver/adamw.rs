//! `AdamW`: Adam with weight decay beside the gradient.

use super::adam::{AdamCoefficients, advance};
use super::{Number, Rule, UpdateStep};
use crate::solver;

solver! {
    /// Adam with decoupled weight decay, Adam's step and `- eta wd w` at once; eta is the learning rate as a share of the
    /// first one (Loshchilov and Hutter, 2019). `weight_decay(rate)` stands in for `wd` in the next update.
    AdamW, rate alpha, states [var, mean], fused
    args {
        alpha: f64 = 0.001, "Step size.";
        beta1: f64 = 0.9, "Decay of the running mean of the gradient.";
        beta2: f64 = 0.999, "Decay of the running mean of its square.";
        eps: f64 = 1e-8, "Small number that keeps the divisor from 0.";
        wd: f64 = 0.0001, "Weight decay rate, not multiplied by alpha."
    }
}

impl Rule<2, 7> for AdamW {
    fn scalars(&self, step: &UpdateStep) -> [f64; 7] {
        let moments = AdamCoefficients { beta1: self.beta1, beta2: self.beta2, eps: self.eps };
        let [size, b1, c1, b2, c2, eps] = moments.scalars(step);
        let decay = step.learning_rate / self.alpha * step.weight_decay.unwrap_or(self.wd);
        [size, b1, c1, b2, c2, eps, decay]
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, states: [N; 2], scalars: [N; 7]) -> (N, [N; 2]) {
        let [size, b1, c1, b2, c2, eps, decay] = scalars;
        let (change, states) = advance(g, states, [size, b1, c1, b2, c2, eps]);
        (w.clone() - change - decay * w, states)
    }
}
