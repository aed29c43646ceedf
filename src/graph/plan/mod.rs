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
pub(crate) use order::collect_before;
pub(crate) use program::AnyProgram;
pub(crate) use recompute::materialize;
pub(crate) use single::{run_arrays, run_single};
pub(crate) use variables::{settle, stand_ins};

use super::variable::{EPOCH, VarRef};
use crate::error::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Options of a forward run.
///
/// `nnrs::ForwardOptions { clear_buffer: true, ..Default::default() }` says what is not as usual.
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
    cached(roots, key, &[], || Forward::new(roots, key))
}

/// As [`forward_plan`], for the functions that are not `closed`; what these left out is computed first.
pub(crate) fn forward_plan_after(roots: &[VarRef], key: build::Key, closed: &Closed) -> Result<Arc<Forward>> {
    let (functions, border) = order::collect_before(roots, |f, _| closed.contains(f.id));
    border.iter().try_for_each(materialize)?;
    let mut ids: Vec<u64> = border.iter().map(|v| v.id).collect();
    ids.sort_unstable();
    ids.dedup();
    cached(roots, key, &ids, || Forward::of(functions, ids.clone(), roots, key))
}

fn cached(
    roots: &[VarRef],
    key: build::Key,
    border: &[u64],
    make: impl FnOnce() -> Result<Forward>,
) -> Result<Arc<Forward>> {
    let ids: Vec<u64> = roots.iter().map(|r| r.id).collect();
    let same = |p: &Arc<Forward>| p.key == key && p.root_ids == ids && p.border == border;
    let found = roots[0].lock().plans.forward.iter().find(|p| same(p)).cloned();
    if let Some(p) = found.filter(|p| p.watch.is_fresh(roots)) {
        p.adopt_again();
        return Ok(p);
    }
    let plan = Arc::new(make()?);
    plan.adopt();
    let mut s = roots[0].lock();
    s.plans.forward.retain(|p| !same(p));
    if s.plans.forward.len() >= KEPT {
        s.plans.forward.remove(0);
    }
    s.plans.forward.push(plan.clone());
    Ok(plan)
}

/// Functions that have run or have been seen, so that a later run or visit leaves them out.
#[derive(Clone, Debug, Default)]
pub struct Closed(std::collections::HashSet<u64>);

impl Closed {
    /// True if the function with this [id](super::FunctionRef::id) is in the set.
    pub fn contains(&self, id: u64) -> bool {
        self.0.contains(&id)
    }

    /// Adds a function by its id; false if it was there.
    pub fn insert(&mut self, id: u64) -> bool {
        self.0.insert(id)
    }

    pub(crate) fn extend(&mut self, ids: impl Iterator<Item = u64>) {
        self.0.extend(ids);
    }

    /// How many functions are in the set.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The functions that a gradient of `root` passes through, in the order of backward.
pub(crate) fn backward_functions(root: &VarRef) -> Result<Vec<Arc<super::FnNode>>> {
    let roots = std::slice::from_ref(root);
    let mut g = order::Graph::new(collect(roots), roots)?;
    g.start_at_root();
    let mut reached = vec![false; g.vars.len()];
    reached[g.roots[0] as usize] = g.var(g.roots[0]).flows;
    let mut functions = Vec::new();
    for node in g.nodes.iter().rev().filter(|n| n.is_active(&g)) {
        if node.y.iter().any(|&y| reached[y as usize]) {
            let wants = node.wants(&g);
            node.x.iter().zip(wants).filter(|(_, w)| *w).for_each(|(&x, _)| reached[x as usize] = true);
            functions.push(node.f.clone());
        }
    }
    Ok(functions)
}

/// The functions behind `roots`, in the order of running.
pub(crate) fn collect(roots: &[VarRef]) -> Vec<Arc<super::FnNode>> {
    order::collect(roots)
}
