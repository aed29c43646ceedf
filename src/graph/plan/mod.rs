//! Plans: a graph's run, compiled once and run again until something in the graph changes.

mod auto_forward;
mod backward;
mod build;
mod changes;
mod exec;
mod finish;
mod group;
mod invoke;
mod memory;
mod memory_fit;
mod on_variables;
mod order;
mod program;
mod recompute;
mod rematerialize;
mod turn;
mod views;

pub(crate) use auto_forward::run_single;
pub(crate) use backward::{BackwardPlan, backward_plan};
pub(crate) use build::{ForwardPlan, key};
pub(crate) use exec::NodeHooks;
pub(crate) use exec::ask;
#[cfg(feature = "python")]
pub(crate) use exec::{MANY, interruptible};
pub use exec::{set_fusion, set_interrupt};
pub(crate) use invoke::{ForwardMode, backward as run_backward, run_arrays};
pub use memory::{Report, plan as memory_plan};
pub use memory_fit::{Fit, fit as memory_fit};
pub(crate) use on_variables::{settle, stand_ins};
pub(crate) use order::collect_before;
pub(crate) use turn::Turn;

use super::node::FnNode;
use super::variable::{EPOCH, VarNode, VarRef};
use nnrs_kernels::cuda::replays::Replays;
use nnrs_kernels::error::Result;
use nnrs_kernels::fork::at_fork;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

/// Options of a forward run; `..Default::default()` stands for what is as usual.
///
/// ```
/// use nnrs::{functions as f, ForwardOptions, Variable};
/// let h = f::exp(&Variable::from_slice(&[0.0f32], [1].into())?)?;
/// let y = f::sin(&h)?;
/// y.forward_with(ForwardOptions { clear_buffer: true, ..Default::default() })?;
/// assert!(h.raw_data().storage().is_empty());
/// assert_eq!(y.to_vec::<f32>()?, [1.0f32.sin()]);
/// # Ok::<(), nnrs::Error>(())
/// ```
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
    pub(crate) forward: Vec<Arc<ForwardPlan>>,
    pub(crate) backward: Vec<Arc<BackwardPlan>>,
}

impl Cache {
    /// What became of the plans' runs as CUDA graphs, in words.
    pub(crate) fn cuda_graphs(&self) -> Vec<String> {
        const NO: &str = "not captured: not all of it runs on one GPU by kernels, or a function counts its runs";
        let told = |replays: &Option<Replays>| replays.as_ref().map_or(NO.into(), Replays::report);
        let forward = self.forward.iter().map(|p| format!("forward: {}", told(&p.replays)));
        forward.chain(self.backward.iter().map(|p| format!("backward: {}", told(&p.replays)))).collect()
    }
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
    #[cfg(feature = "python")]
    pub(crate) fn owned(&self) -> impl Iterator<Item = &VarRef> {
        self.vars.iter().map(|(v, _)| v)
    }

    /// The functions that it keeps alive, as often as it has them.
    #[cfg(feature = "python")]
    pub(crate) fn functions(&self) -> impl Iterator<Item = &Arc<FnNode>> {
        self.loose.iter().map(|l| &l.f)
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
    /// Its version, if it was observed.
    held: Option<u64>,
}

impl Loose {
    fn new(f: &Arc<FnNode>, i: usize) -> Loose {
        let mut loose = Loose { f: f.clone(), i, held: None };
        loose.held = loose.seen();
        loose
    }

    fn seen(&self) -> Option<u64> {
        self.f.living_output(self.i).filter(|v| v.observed().any()).map(|v| v.version())
    }
}

/// The forward plan for `roots`, from the cache if it is still right.
pub(crate) fn forward_plan(roots: &[VarRef], key: build::ForwardKey) -> Result<Arc<ForwardPlan>> {
    cached(roots, key, &[], || ForwardPlan::new(roots, key))
}

/// As [`forward_plan`], for the functions that are not `closed`; what these left out is computed first.
pub(crate) fn forward_plan_after(
    roots: &[VarRef],
    key: build::ForwardKey,
    closed: &Closed,
) -> Result<Arc<ForwardPlan>> {
    let order = order::collect_before(roots, |f, _| closed.contains(f.id));
    order.border.iter().try_for_each(|v| v.data().fetch())?;
    let mut ids: Vec<u64> = order.border.iter().map(|v| v.id).collect();
    ids.sort_unstable();
    ids.dedup();
    cached(roots, key, &ids, || ForwardPlan::of(order, ids.clone(), roots, key))
}

fn cached(
    roots: &[VarRef],
    key: build::ForwardKey,
    border: &[u64],
    make: impl FnOnce() -> Result<ForwardPlan>,
) -> Result<Arc<ForwardPlan>> {
    let ids: Vec<u64> = roots.iter().map(|r| r.id).collect();
    let same = |p: &&Arc<ForwardPlan>| p.key == key && p.root_ids == ids && p.border == border;
    let found = roots.iter().find_map(|r| r.lock().plans.forward.iter().find(same).cloned());
    if let Some(p) = found.filter(|p| p.watch.is_fresh(roots)) {
        p.adopt_again();
        return Ok(p);
    }
    let plan = Arc::new(make()?);
    plan.adopt();
    roots.iter().for_each(|r| r.lock().plans.forward.retain(|p| !same(&p)));
    if roots.len() > 1 {
        note_joint(last(roots));
    }
    let mut s = last(roots).lock();
    if s.plans.forward.len() >= KEPT {
        s.plans.forward.remove(0);
    }
    s.plans.forward.push(plan.clone());
    Ok(plan)
}

/// Roots whose plans run other roots too.
static JOINT: Mutex<Vec<Weak<VarNode>>> = Mutex::new(Vec::new());

at_fork!(Hold, JOINT.lock().unwrap_or_else(|e| e.into_inner()));

fn note_joint(root: &VarRef) {
    let mut roots = JOINT.lock().unwrap_or_else(|e| e.into_inner());
    roots.retain(|r| r.strong_count() > 0 && !std::ptr::eq(r.as_ptr(), Arc::as_ptr(root)));
    roots.push(Arc::downgrade(root));
}

/// Gives up all plans of several roots, to be freed by the caller: surgery may have made one root part of what another
/// one's plan owns.
pub(crate) fn take_joint_plans() -> Vec<Arc<ForwardPlan>> {
    let roots = std::mem::take(&mut *JOINT.lock().unwrap_or_else(|e| e.into_inner()));
    let is_joint = |p: &mut Arc<ForwardPlan>| p.root_ids.len() > 1;
    let of = |r: VarRef| r.lock().plans.forward.extract_if(.., is_joint).collect::<Vec<_>>();
    roots.iter().filter_map(Weak::upgrade).flat_map(of).collect()
}

/// Functions that have run or have been seen, so that a later run or visit leaves them out: see
/// [`Variable::forward_with`](super::Variable::forward_with) and
/// [`Variable::visit_function_recursive`](super::Variable::visit_function_recursive).
///
/// ```
/// let mut closed = nnrs::graph::Closed::default();
/// assert!(closed.insert(7) && !closed.insert(7) && closed.contains(7) && closed.len() == 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Closed(std::collections::HashSet<u64>);

impl Closed {
    /// True if the function with this [id](super::FunctionRef::id) is in the set.
    ///
    /// ```
    /// let mut closed = nnrs::graph::Closed::default();
    /// closed.insert(7);
    /// assert!(closed.contains(7) && !closed.contains(8));
    /// ```
    pub fn contains(&self, id: u64) -> bool {
        self.0.contains(&id)
    }

    /// Adds a function by its id; false if it was there.
    ///
    /// ```
    /// let mut closed = nnrs::graph::Closed::default();
    /// assert!(closed.insert(7) && !closed.insert(7));
    /// ```
    pub fn insert(&mut self, id: u64) -> bool {
        self.0.insert(id)
    }

    pub(crate) fn extend(&mut self, ids: impl Iterator<Item = u64>) {
        self.0.extend(ids);
    }

    /// How many functions are in the set.
    ///
    /// ```
    /// let mut closed = nnrs::graph::Closed::default();
    /// [7, 8, 7].map(|id| closed.insert(id));
    /// assert_eq!(closed.len(), 2);
    /// ```
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if no function is in the set.
    ///
    /// ```
    /// let mut closed = nnrs::graph::Closed::default();
    /// assert!(closed.is_empty() && closed.insert(7) && !closed.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The functions that a gradient of `root` passes through, in the order of backward.
pub(crate) fn backward_functions(root: &VarRef) -> Result<Vec<Arc<super::FnNode>>> {
    let roots = std::slice::from_ref(root);
    let mut g = order::Graph::new(order::collect(roots), roots)?;
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

/// The root that runs last; ranks are up to date once a plan was made.
fn last(roots: &[VarRef]) -> &VarRef {
    let rank = |r: &VarRef| r.parent().map_or(0, |f| f.rank() + 1);
    roots.iter().rev().max_by_key(|r| rank(r)).unwrap_or(&roots[0])
}

/// The functions behind `roots`, in the order of running.
pub(crate) fn collect(roots: &[VarRef]) -> Vec<Arc<super::FnNode>> {
    order::collect(roots).functions
}

/// The functions behind `root` that are not `closed`, nor behind such a one, as NNabla's visits meet them: depth first.
pub(crate) fn visited(root: &VarRef, closed: impl Fn(&FnNode, &VarNode) -> bool) -> Vec<Arc<super::FnNode>> {
    let mut functions = order::collect_before(std::slice::from_ref(root), closed).functions;
    order::depth_first(root, &mut functions);
    functions
}
