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
    fn expression(&self) -> Formula;
    /// Does the jobs of `update`, which is of the expression, by the loop where the arrays allow.
    fn run(&self, update: &Update, jobs: &[TensorUpdate]) -> Result<()>;
}

/// A rule with its counts of states and numbers.
pub(super) struct Counted<R, const S: usize, const K: usize>(pub R);

impl<R: Rule<S, K>, const S: usize, const K: usize> AnyRule for Counted<R, S, K> {
    fn declared(&self) -> &dyn Declared {
        &self.0
    }

    fn scalars(&self, step: &UpdateStep) -> Scalars {
        Scalars::from_slice(&self.0.scalars(step))
    }

    fn expression(&self) -> Formula {
        Formula::with_scalars(2 + S, K, |x, k| {
            let states: [Expr; S] = std::array::from_fn(|i| x[2 + i].clone());
            let numbers: [Expr; K] = std::array::from_fn(|i| k[i].clone());
            let (w, states) = R::formula(x[0].clone(), x[1].clone(), states, numbers);
            std::iter::once(w).chain(states).map(Some).collect()
        })
    }

    fn run(&self, update: &Update, jobs: &[TensorUpdate]) -> Result<()> {
        update.run_fused::<Self, S, K>(jobs)
    }
}

impl<R: Rule<S, K>, const S: usize, const K: usize> Loop<S, K> for Counted<R, S, K> {
    #[inline(always)]
    fn formula<N: Number>(w: N, g: N, states: [N; S], scalars: [N; K]) -> (N, [N; S]) {
        R::formula(w, g, states, scalars)
    }
}
