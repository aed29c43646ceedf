//! `Momentum`: gradient descent with a running sum of the past steps.

use super::{Number, Rule, UpdateStep};
use crate::solver;

solver! {
    /// Gradient descent with momentum, `m = momentum m + lr g`, `w = w - m` (Polyak, 1964). The learning rate goes into
    /// `m`, so a change of it leaves the past steps as they were.
    Momentum, rate lr, states [m]
    args {
        lr: f64 = 0.001, "Learning rate.";
        momentum: f64 = 0.9, "Share of the last step that goes on."
    }
}

impl Rule<1, 2> for Momentum {
    fn scalars(&self, step: &UpdateStep) -> [f64; 2] {
        [step.learning_rate, self.momentum]
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, [m]: [N; 1], [lr, momentum]: [N; 2]) -> (N, [N; 1]) {
        let m = momentum * m + lr * g;
        (w - m.clone(), [m])
    }
}
