//! Plans: a graph's run, compiled once and run again until something in the graph changes.

mod again;
mod backward;
mod build;
mod exec;
mod fit;
mod group;
mod memory;
mod order;
mod program;
mod recompute;
mod single;
mod variables;

pub(crate) use backward::{Backward, backward_plan};
pub(crate) use build::{Forward, key};
pub(crate) use exec::{Hooks, Turn, read_input};
pub use exec::{set_fusion, set_interrupt};
pub use fit::{Fit, fit as memory_fit};
pub use memory::{Report, plan as memory_plan};
pub(crate) use program::AnyProgram;
pub(crate) use recompute::materialize;
pub(crate) use single::{run_arrays, run_single};
pub(crate) use variables::{settle, stand_ins};

use super::variable::{EPOCH, VarRef};
use crate::error::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Options of a forward run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardOptions {
    /// Drop all data between the leaves and the roots as soon as it is used.
    pub clear_buffer: bool,
    /// Drop all data that the backward pass does not read.
    pub clear_no_need_grad: bool,
}

/// The plans whose first root is this variable.
#[derive(Default)]
pub(crate) struct Cache {
    pub(crate) forward: Vec<Arc<Forward>>,
    pub(crate) backward: Vec<Arc<Backward>>,
}

/// Plans kept per root (different flags, with hooks and without).
const KEPT: usize = 4;

/// Tells whether the variables of a plan are as they were when it was made.
pub(crate) struct Watch {
    vars: Vec<(VarRef, u64)>,
    roots: Vec<u64>,
    epoch: AtomicU64,
}

impl Watch {
    /// Watches the variables of a graph; roots are not owned, or a plan would keep its own root alive.
    fn new(g: &order::Graph, roots: &[VarRef]) -> Watch {
        g.vars.iter().for_each(|v| v.var.mark_planned());
        let epoch = EPOCH.load(Relaxed);
        let is_root = |v: &VarRef| roots.iter().any(|r| Arc::ptr_eq(r, v));
        let vars = g.vars.iter().filter(|v| !is_root(&v.var)).map(|v| (v.var.clone(), v.var.version())).collect();
        Watch { vars, roots: roots.iter().map(|r| r.version()).collect(), epoch: AtomicU64::new(epoch) }
    }

    /// The variables that it keeps alive.
    #[cfg(feature = "python")]
    pub(crate) fn owned(&self) -> impl Iterator<Item = &VarRef> {
        self.vars.iter().map(|(v, _)| v)
    }

    fn is_fresh(&self, roots: &[VarRef]) -> bool {
        let now = EPOCH.load(Relaxed);
        if self.epoch.load(Relaxed) == now {
            return true;
        }
        let same = self.vars.iter().all(|(v, n)| v.version() == *n)
            && self.roots.len() == roots.len()
            && roots.iter().zip(&self.roots).all(|(r, n)| r.version() == *n);
        if same {
            self.epoch.store(now, Relaxed);
        }
        same
    }
}

/// The forward plan for `roots`, from the cache if it is still right.
pub(crate) fn forward_plan(roots: &[VarRef], key: build::Key) -> Result<Arc<Forward>> {
    let ids: Vec<u64> = roots.iter().map(|r| r.id).collect();
    let found = {
        let s = roots[0].lock();
        s.plans.forward.iter().find(|p| p.key == key && p.root_ids == ids).cloned()
    };
    if let Some(p) = found.filter(|p| p.watch.is_fresh(roots)) {
        p.adopt_again();
        return Ok(p);
    }
    let plan = Arc::new(Forward::new(roots, key)?);
    plan.adopt();
    let mut s = roots[0].lock();
    s.plans.forward.retain(|p| !(p.key == key && p.root_ids == ids));
    if s.plans.forward.len() >= KEPT {
        s.plans.forward.remove(0);
    }
    s.plans.forward.push(plan.clone());
    Ok(plan)
}

/// The functions behind `roots`, in the order of running.
pub(crate) fn collect(roots: &[VarRef]) -> Vec<Arc<super::FnNode>> {
    order::collect(roots)
}
