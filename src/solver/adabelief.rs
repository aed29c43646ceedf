//! `AdaBelief`: steps scaled by how far the gradient is from its running mean.

use super::{Declared, Number, Rule, Solver, SolverDef, UpdateStep};
use crate::function::ArgValue;
use crate::solver;

solver! {
    /// AdaBelief, `w = w - alpha / (1 - beta1^t) mean / (sqrt(var / (1 - beta2^t)) + eps)` with
    /// `mean = beta1 mean + (1 - beta1) g`, `var = beta2 var + (1 - beta2) (g - mean)^2 + eps` (Zhuang et al., 2020, and the
    /// authors' program). With `amsgrad`, var has no eps in it, and `s_max = max(s_max, var) + eps` is in its place in the step;
    /// s_max is a state too.
    AdaBelief, rate alpha, states [var, mean]
    args {
        alpha: f64 = 0.001, "Step size.";
        beta1: f64 = 0.9, "Decay of the running mean of the gradient.";
        beta2: f64 = 0.999, "Decay of the running mean of its distance's square.";
        eps: f64 = 1e-8, "Small number that keeps the divisor from 0.";
        wd: f64 = 0.0, "Weight decay rate with weight_decouple; `weight_decay(rate)` stands in for it in the next update.";
        amsgrad: bool = false, "Divide by the largest of the past var.";
        weight_decouple: bool = false, "Decay weights beside the gradient, as AdamW: `w = w - alpha wd w` before the step.";
        fixed_decay: bool = false, "With weight_decouple: `w = w - wd w`, whatever alpha.";
        rectify: bool = false, "RAdam's factor of the step, and `w = w - alpha mean` in the first steps, where there is none."
    }
    made by chosen
}

/// The rule, with or without `amsgrad`.
struct Belief<const AMSGRAD: bool>(AdaBelief);

fn chosen(belief: AdaBelief) -> Solver {
    if belief.amsgrad { Solver::new(Belief::<true>(belief)) } else { Solver::new(Belief::<false>(belief)) }
}

impl<const AMSGRAD: bool> Declared for Belief<AMSGRAD> {
    fn def(&self) -> &'static SolverDef {
        AdaBelief::DEF
    }
    fn arguments(&self) -> Vec<(&'static str, ArgValue)> {
        self.0.arguments()
    }
    fn round_to_float(&mut self) {
        self.0.round_to_float();
    }
    fn states(&self) -> &'static [&'static str] {
        if AMSGRAD { &["s_max", "mean", "var"] } else { AdaBelief::DEF.states }
    }
    fn fuses_weight_decay(&self) -> bool {
        self.0.weight_decouple
    }
}

impl AdaBelief {
    /// What is left of the weight, the step size, and in `root sqrt(var) + shift` the divisor; then the decays and eps.
    fn numbers(&self, step: &UpdateStep) -> [f64; 9] {
        let (b1, b2, t) = (self.beta1, self.beta2, step.t as f64);
        let rate = if self.fixed_decay { 1.0 } else { step.learning_rate };
        let decay = if self.weight_decouple { rate * step.weight_decay.unwrap_or(self.wd) } else { 0.0 };
        let size = step.learning_rate / (1.0 - b1.powf(t));
        let root = 1.0 / (1.0 - b2.powf(t)).sqrt();
        let [size, root, shift] = match self.rectification(t) {
            Some(factor) => [size * factor, root, self.eps],
            None => [step.learning_rate, 0.0, 1.0],
        };
        [1.0 - decay, size, root, shift, b1, 1.0 - b1, b2, 1.0 - b2, self.eps]
    }

    /// RAdam's factor; none while the variance of the step is not defined (Liu et al., 2020).
    fn rectification(&self, t: f64) -> Option<f64> {
        if !self.rectify {
            return Some(1.0);
        }
        let (all, power) = (2.0 / (1.0 - self.beta2) - 1.0, self.beta2.powf(t));
        let now = all - 2.0 * t * power / (1.0 - power);
        let squared = (now - 4.0) * (now - 2.0) * all / ((all - 4.0) * (all - 2.0) * now);
        (now > 4.0).then(|| squared.sqrt())
    }
}

/// The new mean, and the new var without eps.
#[inline(always)]
fn moments<N: Number>(g: N, mean: N, var: N, [_, _, _, _, b1, c1, b2, c2, _]: [N; 9]) -> (N, N) {
    let mean = b1 * mean + c1 * g.clone();
    let var = b2 * var + c2 * (g - mean.clone()).square();
    (mean, var)
}

#[inline(always)]
fn stepped<N: Number>(w: N, mean: N, var: N, [keep, size, root, shift, ..]: [N; 9]) -> N {
    keep * w - size * mean / (root * var.sqrt() + shift)
}

impl Rule<2, 9> for Belief<false> {
    fn scalars(&self, step: &UpdateStep) -> [f64; 9] {
        self.0.numbers(step)
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, [var, mean]: [N; 2], scalars: [N; 9]) -> (N, [N; 2]) {
        let (mean, var) = moments(g, mean, var, scalars.clone());
        let var = var + scalars[8].clone();
        (stepped(w, mean.clone(), var.clone(), scalars), [var, mean])
    }
}

impl Rule<3, 9> for Belief<true> {
    fn scalars(&self, step: &UpdateStep) -> [f64; 9] {
        self.0.numbers(step)
    }

    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, [s_max, mean, var]: [N; 3], scalars: [N; 9]) -> (N, [N; 3]) {
        let (mean, var) = moments(g, mean, var, scalars.clone());
        let s_max = var.max(&s_max) + scalars[8].clone();
        (stepped(w, mean.clone(), s_max.clone(), scalars), [s_max, mean, var])
    }
}
