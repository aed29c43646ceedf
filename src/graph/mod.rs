//! The computation graph: variables, function nodes, and how they run.
//!
//! [`Variable`] is where to begin. The members of NNabla's `CgVariable`, and what they are called here, are in
//! `docs/rust.md`.

mod callbacks;
mod deferred_drop;
mod direct;
mod function_ref;
mod grad;
mod gradient_registry;
pub mod hooks;
pub mod mode;
mod names;
mod node;
mod observe;
mod operators;
#[cfg(feature = "python")]
mod owners;
mod plan;
mod rewire;
mod run;
mod variable;
mod visit;

pub use callbacks::CommunicatorBackwardCallback;
#[cfg(feature = "python")]
pub(crate) use callbacks::fail_backward;
pub use function_ref::FunctionRef;
#[cfg(feature = "python")]
pub(crate) use grad::by_own_rule;
pub use grad::grad;
pub use gradient_registry::{GradientRule, register_gradient, unregister_gradient};
pub use nnrs_kernels::context::Context;
pub(crate) use node::FnNode;
#[cfg(feature = "python")]
pub(crate) use node::describe_inputs;
pub use node::{apply, apply_into, live_functions};
#[cfg(feature = "python")]
pub(crate) use owners::{HistoryNode, Root, owned_by};
pub use plan::memory_fit;
pub use plan::memory_plan;
pub use plan::{Closed, Fit, ForwardOptions, Report, set_fusion, set_interrupt};
#[cfg(feature = "python")]
pub(crate) use plan::{MANY, interruptible};
pub use run::{BackwardOptions, BackwardRun, ForwardRun, RunHook, Seed, forward_all};
pub use variable::{Info, Variable, live_variables};
