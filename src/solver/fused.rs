//! A rule as the engine holds it: its formula as an expression, and compiled into one loop over all of its arrays.

use super::rule::{Declared, Rule, Scalars, UpdateStep};
use nnrs_kernels::error::Result;
use nnrs_kernels::expr::{Expr, Formula};
use nnrs_kernels::kernel::update::{Loop, TensorUpdate, Update};
use nnrs_kernels::simd::Number;

/// A rule without its type.
pub(super) trait AnyRule: Send + Sync {
    fn declared(&self) -> &dyn Declared;
    fn scalars(&self, step: &UpdateStep) -> Scalars;
    /// Inputs weight, gradient, states; outputs weight, states.
    fn update(&self) -> Update;
    /// Does the jobs of `update`, which is this rule's, by the loop where the arrays allow.
    fn run(&self, update: &Update, jobs: &mut [TensorUpdate]) -> Result<()>;
}

/// A rule with its counts of states, numbers and norms.
pub(super) struct Counted<R, const S: usize, const K: usize, const M: usize>(pub R);

impl<R: Rule<S, K, M>, const S: usize, const K: usize, const M: usize> Counted<R, S, K, M> {
    fn formula(f: impl FnOnce(Expr, Expr, [Expr; S], [Expr; K]) -> Vec<Expr>) -> Formula {
        Formula::with_scalars(2 + S, K, |x, k| {
            let states: [Expr; S] = std::array::from_fn(|i| x[2 + i].clone());
            let numbers: [Expr; K] = std::array::from_fn(|i| k[i].clone());
            f(x[0].clone(), x[1].clone(), states, numbers).into_iter().map(Some).collect()
        })
    }
}

impl<R: Rule<S, K, M>, const S: usize, const K: usize, const M: usize> AnyRule for Counted<R, S, K, M> {
    fn declared(&self) -> &dyn Declared {
        &self.0
    }

    fn scalars(&self, step: &UpdateStep) -> Scalars {
        Scalars::from_slice(&self.0.scalars(step))
    }

    fn update(&self) -> Update {
        let step = Self::formula(|w, g, states, numbers| {
            let (w, states) = R::formula(w, g, states, numbers);
            std::iter::once(w).chain(states).collect()
        });
        match M {
            0 => Update::new(step),
            _ => Update::with_norms(step, Self::formula(|w, g, s, k| R::normed(w, g, s, k).into())),
        }
    }

    fn run(&self, update: &Update, jobs: &mut [TensorUpdate]) -> Result<()> {
        update.run_fused::<Self, S, K, M>(jobs, &|scalars, norms| self.0.with_norms(scalars, norms))
    }
}

impl<R: Rule<S, K, M>, const S: usize, const K: usize, const M: usize> Loop<S, K, M> for Counted<R, S, K, M> {
    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, states: [N; S], scalars: [N; K]) -> (N, [N; S]) {
        R::formula(w, g, states, scalars)
    }

    #[inline(always)]
    fn normed<N: Number>(w: N, g: N, states: [N; S], scalars: [N; K]) -> [N; M] {
        R::normed(w, g, states, scalars)
    }
}
