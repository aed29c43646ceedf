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

use super::node::FnNode;
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

/// The plans whose last root, in the order of running, is this variable: no other root is computed from it, so that a plan,
/// which holds what is behind its roots, never holds the variable that holds the plan.
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
    loose: Vec<Loose>,
    roots: Vec<u64>,
    epoch: AtomicU64,
}

impl Watch {
    /// Watches the variables of a graph. Owned are those that its functions read: a root, or another output of a function,
    /// may own the plan.
    fn new(g: &order::Graph, roots: &[VarRef]) -> Watch {
        g.vars.iter().for_each(|v| v.var.mark_planned());
        let epoch = AtomicU64::new(EPOCH.load(Relaxed));
        let mut read = vec![false; g.vars.len()];
        g.nodes.iter().flat_map(|n| &n.x).for_each(|&x| read[x as usize] = true);
        let owned = g.vars.iter().zip(&read).filter(|(v, read)| **read && !v.root);
        let vars = owned.map(|(v, _)| (v.var.clone(), v.var.version())).collect();
        let outputs = g.nodes.iter().flat_map(|n| n.y.iter().enumerate().map(|(i, &y)| (&n.f, i, y)));
        let others = outputs.filter(|(_, _, y)| !read[*y as usize] && !g.var(*y).root);
        let loose = others.map(|(f, i, _)| Loose::new(f, i)).collect();
        Watch { vars, loose, roots: roots.iter().map(|r| r.version()).collect(), epoch }
    }

    /// The variables that it keeps alive.
    pub(crate) fn owned(&self) -> impl Iterator<Item = &VarRef> {
        self.vars.iter().map(|(v, _)| v)
    }

    fn is_fresh(&self, roots: &[VarRef]) -> bool {
        let now = EPOCH.load(Relaxed);
        if self.epoch.load(Relaxed) == now {
            return true;
        }
        let same = self.vars.iter().all(|(v, n)| v.version() == *n)
            && self.loose.iter().all(|l| l.seen() == l.held)
            && self.roots.len() == roots.len()
            && roots.iter().zip(&self.roots).all(|(r, n)| r.version() == *n);
        if same {
            self.epoch.store(now, Relaxed);
        }
        same
    }
}

/// An output that the functions of a plan do not read.
struct Loose {
    f: Arc<FnNode>,
    i: usize,
    /// Its version, if somebody held it.
    held: Option<u64>,
}

impl Loose {
    fn new(f: &Arc<FnNode>, i: usize) -> Loose {
        let mut loose = Loose { f: f.clone(), i, held: None };
        loose.held = loose.seen();
        loose
    }

    fn seen(&self) -> Option<u64> {
        self.f.living_output(self.i).filter(|v| order::is_held(v)).map(|v| v.version())
    }
}

/// The forward plan for `roots`, from the cache if it is still right.
pub(crate) fn forward_plan(roots: &[VarRef], key: build::Key) -> Result<Arc<Forward>> {
    let ids: Vec<u64> = roots.iter().map(|r| r.id).collect();
    let same = |p: &&Arc<Forward>| p.key == key && p.root_ids == ids;
    let found = roots.iter().find_map(|r| r.lock().plans.forward.iter().find(same).cloned());
    if let Some(p) = found.filter(|p| p.watch.is_fresh(roots)) {
        p.adopt_again();
        return Ok(p);
    }
    let plan = Arc::new(Forward::new(roots, key)?);
    plan.adopt();
    roots.iter().for_each(|r| r.lock().plans.forward.retain(|p| !same(&p)));
    let mut s = last(roots).lock();
    if s.plans.forward.len() >= KEPT {
        s.plans.forward.remove(0);
    }
    s.plans.forward.push(plan.clone());
    Ok(plan)
}

/// The root that runs last; ranks are up to date once a plan was made.
fn last(roots: &[VarRef]) -> &VarRef {
    let rank = |r: &VarRef| r.parent().map_or(0, |f| f.rank() + 1);
    roots.iter().rev().max_by_key(|r| rank(r)).unwrap_or(&roots[0])
}

/// The functions behind `roots`, in the order of running.
pub(crate) fn collect(roots: &[VarRef]) -> Vec<Arc<super::FnNode>> {
    order::collect(roots)
}
