//! `SgdW`: momentum with weight decay beside the gradient.

use super::{Number, Rule, UpdateStep};
use crate::solver;

solver! {
    /// Gradient descent with momentum and decoupled weight decay, `m = momentum m + lr g`, `w = w - m - eta wd w`; eta is
    /// the learning rate as a share of the first one (Loshchilov and Hutter, 2019). `weight_decay(rate)` stands in for `wd`
    /// in the next update.
    SgdW, rate lr, states [m], fused
    args {
        lr: f64 = 0.001, "Learning rate.";
        momentum: f64 = 0.9, "Share of the last step that goes on.";
        wd: f64 = 0.0001, "Weight decay rate, not multiplied by lr."
    }
}

impl Rule<1, 3> for SgdW {
    fn scalars(&self, step: &UpdateStep) -> [f64; 3] {
        let decay = step.learning_rate / self.lr * step.weight_decay.unwrap_or(self.wd);
        [step.learning_rate, self.momentum, decay]
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, [m]: [N; 1], [lr, momentum, decay]: [N; 3]) -> (N, [N; 1]) {
        let m = momentum * m + lr * g;
        (w.clone() - m.clone() - decay * w, [m])
    }
}
