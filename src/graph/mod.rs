//! The computation graph: variables, function nodes, and how they run.
//!
//! [`Variable`] is where to begin. The members of NNabla's `CgVariable`, and what they are called here, are in
//! `docs/rust.md`.

mod callbacks;
mod direct;
mod function_ref;
mod grad;
pub mod hooks;
pub mod mode;
mod names;
mod node;
mod operators;
#[cfg(feature = "python")]
mod owners;
mod plan;
mod reap;
mod rewire;
mod rules;
mod run;
mod variable;
mod visit;

/// The locks of what graphs share, for the time of a fork.
pub(crate) fn hold() -> impl Sized {
    (hooks::hold(), rules::hold(), plan::hold(), names::hold())
}

pub use crate::context::Context;
pub use callbacks::CommunicatorBackwardCallback;
pub use function_ref::FunctionRef;
pub use grad::grad;
pub(crate) use node::FnNode;
#[cfg(feature = "python")]
pub(crate) use node::describe_inputs;
pub use node::{apply, apply_into, live_functions};
#[cfg(feature = "python")]
pub(crate) use owners::{Root, owned_by};
pub(crate) use plan::AnyProgram;
///
/// ```
/// use nnrs::{functions as f, graph::{memory_fit, memory_plan}, ForwardOptions, Variable};
/// let mut y = Variable::new([64, 64]).with_need_grad(true);
/// for _ in 0..8 {
///     y = f::sin(&f::affine(&y, &Variable::new([64, 64]).with_need_grad(true), None, f::Affine::default())?)?;
/// }
/// let budget = memory_plan(&y, ForwardOptions::default(), true)?.peak * 9 / 10;
/// let fit = memory_fit(&y, budget, ForwardOptions::default(), true)?;
/// assert!(fit.peak <= budget && !fit.chosen.is_empty());
/// # Ok::<(), nnrs::Error>(())
/// ```
pub use plan::memory_fit;
///
/// ```
/// use nnrs::{functions as f, graph::memory_plan, ForwardOptions, Variable};
/// let x = Variable::new([1000]).with_need_grad(true);
/// let report = memory_plan(&f::sin(&x)?, ForwardOptions::default(), false)?;
/// assert!(report.leaves >= 8000 && report.peak >= report.leaves); // data and gradient of x, at least
/// # Ok::<(), nnrs::Error>(())
/// ```
pub use plan::memory_plan;
pub use plan::{Closed, Fit, ForwardOptions, Report, set_fusion, set_interrupt};
pub use rules::{GradientRule, register_gradient, unregister_gradient};
pub use run::{BackwardOptions, BackwardRun, ForwardRun, RunHook, Seed, forward_all};
pub use variable::{Variable, live_variables};
