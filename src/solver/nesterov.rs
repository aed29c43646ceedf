//! `Nesterov`: momentum that looks one step ahead.

use super::{Number, Rule, UpdateStep};
use crate::solver;

solver! {
    /// Nesterov's accelerated gradient, `m' = momentum m - lr g`, `w = w + (1 + momentum) m' - momentum m` (Nesterov, 1983).
    Nesterov, rate lr, states [m]
    args {
        lr: f64 = 0.001, "Learning rate.";
        momentum: f64 = 0.9, "Share of the last step that goes on."
    }
}

impl Rule<1, 3> for Nesterov {
    fn scalars(&self, step: &UpdateStep) -> [f64; 3] {
        [step.learning_rate, self.momentum, 1.0 + self.momentum]
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, [m]: [N; 1], [lr, momentum, ahead]: [N; 3]) -> (N, [N; 1]) {
        let past = momentum * m;
        let m = past.clone() - lr * g;
        (w + (ahead * m.clone() - past), [m])
    }
}
