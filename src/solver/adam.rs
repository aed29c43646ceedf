//! `Adam`: steps scaled by running means of the gradient and of its square.

use super::{Rule, Scalars, Step, Terms};
use crate::function::expr::Expr;
use crate::solver;
use smallvec::smallvec;

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

/// The numbers of Adam's rule.
pub(super) struct Moments {
    pub beta1: f64,
    pub beta2: f64,
    pub eps: f64,
}

impl Moments {
    /// The step size with the means' start from zero made up for.
    pub fn step_size(&self, step: &Step) -> f64 {
        let t = step.t as f64;
        step.learning_rate * (1.0 - self.beta2.powf(t)).sqrt() / (1.0 - self.beta1.powf(t))
    }

    /// The change of the weight, new `var`, new `mean`.
    pub fn advance(&self, x: &Terms, step_size: &Expr) -> [Expr; 3] {
        let var = &x.states[0] * self.beta2 + x.g.square() * (1.0 - self.beta2);
        let mean = &x.states[1] * self.beta1 + x.g * (1.0 - self.beta1);
        [step_size * &mean / (var.sqrt() + self.eps), var, mean]
    }
}

impl Adam {
    fn moments(&self) -> Moments {
        Moments { beta1: self.beta1, beta2: self.beta2, eps: self.eps }
    }
}

impl Rule for Adam {
    fn scalars(&self, step: &Step) -> Scalars {
        smallvec![self.moments().step_size(step)]
    }

    fn formula(&self, x: &Terms) -> Vec<Expr> {
        let [change, var, mean] = self.moments().advance(x, &x.scalars[0]);
        vec![x.w - change, var, mean]
    }
}
