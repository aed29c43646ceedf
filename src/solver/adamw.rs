//! `AdamW`: Adam with weight decay beside the gradient.

use super::adam::Moments;
use super::{Rule, Scalars, Step, Terms};
use crate::function::expr::Expr;
use crate::solver;
use smallvec::smallvec;

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

impl AdamW {
    fn moments(&self) -> Moments {
        Moments { beta1: self.beta1, beta2: self.beta2, eps: self.eps }
    }
}

impl Rule for AdamW {
    fn scalars(&self, step: &Step) -> Scalars {
        let decay = step.weight_decay.unwrap_or(self.wd);
        smallvec![self.moments().step_size(step), step.learning_rate / self.alpha * decay]
    }

    fn formula(&self, x: &Terms) -> Vec<Expr> {
        let [change, var, mean] = self.moments().advance(x, &x.scalars[0]);
        vec![x.w - change - &x.scalars[1] * x.w, var, mean]
    }
}
