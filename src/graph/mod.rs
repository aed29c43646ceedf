//! The computation graph: variables, function nodes, and how they run.

mod callbacks;
mod direct;
mod function_ref;
mod grad;
pub mod hooks;
pub mod mode;
mod names;
mod node;
#[cfg(feature = "python")]
mod owners;
mod plan;
mod reap;
mod rewire;
mod rules;
mod run;
mod variable;
mod visit;

pub use crate::context::Context;
pub use callbacks::CommunicatorBackwardCallback;
pub use function_ref::FunctionRef;
pub use grad::grad;
pub(crate) use node::FnNode;
#[cfg(feature = "python")]
pub(crate) use node::describe_inputs;
pub use node::{apply, apply_into, live_functions};
#[cfg(feature = "python")]
pub(crate) use owners::{Root, owned_functions};
pub(crate) use plan::AnyProgram;
pub use plan::{Closed, Fit, ForwardOptions, Report, memory_fit, memory_plan, set_fusion, set_interrupt};
pub use rules::{GradientRule, register_gradient, unregister_gradient};
pub use run::{BackwardOptions, BackwardRun, ForwardRun, RunHook, Seed, forward_all};
pub use variable::{Variable, live_variables};
