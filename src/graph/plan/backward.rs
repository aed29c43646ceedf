//! Backward plans: from the highest rank down, one step a unit; gradients of a variable add up in that order.

mod build;
mod liveness;
mod on_variables;
mod run;
mod tile;

use super::build::{self as forward, ForwardPlan, PlanNode, PlanSlot, captured_on};
use super::exec::fusion;
use super::group::{self, Unit};
use super::order::{ExecutionOrder, Graph, Node, Var, address, collect};
use super::program::{Input, UnitBackward};
use super::rematerialize;
use super::views::Viewed;
use super::{KEPT, Watch};
use crate::function::Needs;
use crate::graph::grad::check_differentiable;
use crate::graph::variable::{VarNode, VarRef};
use build::BackwardBuilder;
use nnrs_kernels::array::NdArray;
use nnrs_kernels::array::Site;
use nnrs_kernels::cuda::replays::Replays;
use nnrs_kernels::error::Result;
use nnrs_kernels::expr::ssa::MixMap;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::tile::AnyProgram;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

/// What a plan was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BackwardKey {
    pub(crate) clear_buffer: bool,
    pub(crate) hooked: bool,
    pub(crate) fused: bool,
}

/// A compiled backward run.
pub(crate) struct BackwardPlan {
    pub(crate) key: BackwardKey,
    watch: Watch,
    /// The forward run whose data is read; not owned: it may belong to a variable further on.
    forward: Option<(u64, Weak<ForwardPlan>)>,
    pub(crate) nodes: Vec<PlanNode>,
    pub(crate) slots: Vec<PlanSlot>,
    pub(crate) grads: Vec<NdArray>,
    /// Shapes of gradients that are kept without repetitions.
    narrow: Vec<Option<Shape>>,
    /// Variables that are read from another one's memory.
    views: Vec<Option<Box<Viewed>>>,
    pub(crate) steps: Vec<BackwardStep>,
    pub(crate) root: u32,
    /// Variables whose own gradient is where the pass begins.
    given: Vec<u32>,
    /// The gradients of leaves, to which it adds.
    adds: Vec<u32>,
    /// Of variables that a gradient arrives at: whether it is not observed after the run.
    unseen: Vec<Option<bool>>,
    /// Of these, the gradients that the script may write between two runs, and that no run keeps.
    lost: Vec<u32>,
    /// Outputs of the functions that no gradient arrives at: what an earlier run or the script left there is none of this one.
    unreached: Vec<u32>,
    /// What is there before the run and values are computed again from, and the functions that read it.
    read_again: Vec<(u32, u32)>,
    /// What is neither there nor foreseen to be made again, and the functions that read it.
    restored: Vec<(u32, u32)>,
    /// How many arrays had been cleared by hand when what is there was last looked at.
    clears: AtomicU64,
    /// Data that is there before the run, and that nothing but the run writes in its middle.
    is_stored: Vec<bool>,
    /// What forward kept and steps read, in the order in which it was made.
    loaded: Vec<u32>,
    /// Not owned: what is read is owned by its readers, and others may own this plan.
    vars: Vec<Weak<VarNode>>,
    /// The slots of the forward run that hold the same variables.
    pub(crate) forward_slots: Vec<Option<u32>>,
    /// Data that the script may write between runs, and whether it has since the function ran.
    writable: Vec<(u32, bool)>,
    /// When it last told the variables what it keeps.
    adopted: AtomicU64,
    /// When it began to make the data again that it makes now; the greatest number if it makes none.
    made_again: AtomicU64,
    /// Its captured runs, if all of it runs on one GPU.
    pub(crate) replays: Option<Replays>,
}

/// How often backward plans have adopted variables.
static ADOPTIONS: AtomicU64 = AtomicU64::new(0);

pub(crate) struct BackwardStep {
    pub(crate) what: BackwardAction,
    /// Elements that it reads, about.
    work: usize,
    /// Slots whose gradient ends here.
    pub(crate) free_grads: SmallVec<[u32; 2]>,
    /// Slots whose data ends here.
    pub(crate) free_data: SmallVec<[u32; 2]>,
    /// Slots whose data is read.
    pub(crate) reads: SmallVec<[u32; 4]>,
    /// Of these, which are read in place of what a function would make of them, and that function: they have to be what it read.
    viewed: SmallVec<[(u32, u32); 1]>,
    /// What is computed again before it, and the slots made so whose data ends with it.
    pub(crate) again: Vec<forward::ForwardStep>,
    pub(crate) forget: SmallVec<[u32; 2]>,
}

pub(crate) enum BackwardAction {
    Call(BackwardCall),
    View(u32, GradientTarget),
    Tile(Box<BackwardTile>),
}

impl BackwardAction {
    /// Marks targets that have one memory, or that of a gradient that the function reads.
    fn mark_twice(&mut self, grads: &[NdArray], nodes: &[Node]) {
        let mut seen: MixMap<usize, ()> = MixMap::default();
        let storage = |v: u32| address(&grads[v as usize]);
        if let BackwardAction::Call(c) = self {
            seen.extend(nodes[c.node as usize].y.iter().map(|&y| (storage(y), ())));
        }
        let mut mark = |t: &mut GradientTarget| t.twice = seen.insert(storage(t.slot), ()).is_some();
        match self {
            BackwardAction::Call(c) => c.targets.iter_mut().flatten().for_each(mark),
            BackwardAction::View(_, t) => mark(t),
            BackwardAction::Tile(t) => t.targets.iter_mut().for_each(mark),
        }
    }

    /// Where it puts gradients.
    pub(crate) fn targets(&self) -> SmallVec<[GradientTarget; 4]> {
        match self {
            BackwardAction::Call(c) => c.targets.iter().flatten().copied().collect(),
            BackwardAction::View(_, t) => SmallVec::from_slice(&[*t]),
            BackwardAction::Tile(t) => t.targets.iter().copied().collect(),
        }
    }

    /// It reads what a forward pass saved.
    fn saves(&self) -> bool {
        matches!(self, BackwardAction::Call(c) if c.saves)
    }

    pub(crate) fn node(&self) -> u32 {
        match self {
            BackwardAction::Call(c) => c.node,
            BackwardAction::View(n, _) => *n,
            BackwardAction::Tile(t) => t.node,
        }
    }
}

pub(crate) struct BackwardCall {
    pub(crate) node: u32,
    pub(crate) needs: Option<Needs>,
    /// The function reads what its forward pass saved, in place of inputs.
    saves: bool,
    /// Per output: whether a gradient arrives.
    arrives: SmallVec<[bool; 2]>,
    pub(crate) targets: SmallVec<[Option<GradientTarget>; 4]>,
    /// An input whose gradient may be written over an output's, which ends here; and that output.
    pub(crate) over: Option<(usize, usize)>,
}

pub(crate) struct BackwardTile {
    pub(crate) node: u32,
    unit: UnitBackward,
    /// What it computes values again from, and the function that read it: it has to be what that has read.
    remade: Vec<(u32, u32)>,
    pub(crate) shape: Shape,
    pub(crate) targets: SmallVec<[GradientTarget; 2]>,
    /// Programs by which outputs accumulate.
    programs: Mutex<SmallVec<[(Vec<bool>, AnyProgram, Arc<[Input]>); 2]>>,
    site: Site,
}

/// Where a gradient goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GradientTarget {
    pub(crate) slot: u32,
    pub(crate) how: GradientWrite,
    /// An earlier target of the step has the same memory, or a gradient that it reads.
    pub(crate) twice: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GradientWrite {
    /// The first part of an intermediate gradient.
    Write,
    /// A further part.
    Add,
    /// A leaf's gradient, which keeps what it had.
    Leaf,
    /// Nothing is written: it is what the variable's own gradient holds.
    Own,
}

/// The backward plan for `root`, from the cache if it is still right.
pub(crate) fn backward_plan(root: &VarRef, clear_buffer: bool, hooked: bool) -> Result<Arc<BackwardPlan>> {
    let key = BackwardKey { clear_buffer, hooked, fused: fusion() };
    let forward = last_forward(root);
    let id = forward.as_ref().map(|f| f.id);
    let same = |a: &Option<(u64, Weak<ForwardPlan>)>| a.as_ref().map(|f| f.0) == id;
    let roots = std::slice::from_ref(root);
    let found = root.lock().plans.backward.iter().find(|p| p.key == key && same(&p.forward)).cloned();
    if let Some(p) = found.filter(|p| p.watch.is_fresh(roots) && p.reads_what_is_there()) {
        p.adopt_again();
        return Ok(p);
    }
    let order = collect(roots);
    let forward = forward.filter(|f| f.has_run(&order.functions));
    let plan = Arc::new(BackwardPlan::new(order, root, key, forward)?);
    plan.adopt();
    let mut s = root.lock();
    s.plans.backward.retain(|p| p.key != key);
    if s.plans.backward.len() >= KEPT {
        s.plans.backward.remove(0);
    }
    s.plans.backward.push(plan.clone());
    Ok(plan)
}

fn last_forward(root: &VarRef) -> Option<Arc<ForwardPlan>> {
    root.parent()?.plan()
}

impl BackwardPlan {
    /// `order`: the functions behind `root`. `forward`: the run whose data will be read, which was the last of all of them.
    pub(crate) fn new(
        order: ExecutionOrder,
        root: &VarRef,
        key: BackwardKey,
        forward: Option<Arc<ForwardPlan>>,
    ) -> Result<BackwardPlan> {
        let roots = std::slice::from_ref(root);
        order.check_memory(1152)?;
        let mut g = Graph::new(order, roots)?;
        g.start_at_root();
        let watch = Watch::new(&g, roots);
        let units = units(&g, forward.as_deref());
        let units = if key.hooked || !key.fused { group::split(units) } else { units };
        let units = g.backward_order().map_or(units, |order| group::in_order(&g, order));
        let forward_slots = same_slots(&g, forward.as_deref());
        let stored = build::stored(&g, forward.as_deref().zip(Some(&forward_slots[..])));
        if key.fused && !key.hooked {
            g.find_views();
            g.views.iter_mut().zip(&stored).filter(|(_, stored)| **stored).for_each(|(view, _)| *view = None);
        }
        let b = BackwardBuilder::new(&g, key, stored);
        let writable = writable(&g);
        b.check_labels()?;
        if root.need_grad() {
            check_differentiable(root)?;
        }
        let in_run = key.hooked || g.has_user_code();
        let mut steps = b.steps(&units);
        keep_written(&g, &mut steps);
        rematerialize::schedule(&g, &units, b.stored(), &mut steps);
        if !key.hooked {
            liveness::bring_forward(&g, &mut steps);
        }
        let read_again = read_again(&g, b.stored(), &steps);
        let restored = restored(&g, b.stored(), &steps);
        let is_stored = b.stored().iter().map(|stored| *stored && !in_run).collect();
        let loaded = loaded(&g, b.stored(), &steps);
        let narrow = if key.hooked { vec![None; g.vars.len()] } else { liveness::narrow(&g, key.clear_buffer, &steps) };
        let slot = |(i, v): (usize, &Var)| PlanSlot::new(&g, v, in_run, b.is_cleared(i as u32) || v.recompute);
        let slots: Vec<PlanSlot> = g.vars.iter().enumerate().map(slot).collect();
        let replays = captured_on(g.nodes.iter().map(|n| &*n.f), || made(&g, &steps));
        let targets = |how: &[GradientWrite]| {
            let all = steps.iter().flat_map(|s| s.what.targets()).filter(|t| how.contains(&t.how));
            all.map(|t| t.slot).collect::<Vec<u32>>()
        };
        let (given, adds) = (targets(&[GradientWrite::Own]), targets(&[GradientWrite::Leaf]));
        let grad = |v: u32| match given.contains(&v) {
            true => g.var(v).var.grad(),
            false => grad_array(g.var(v), narrow[v as usize].as_ref(), key),
        };
        let grads: Vec<NdArray> = (0..g.vars.len() as u32).map(grad).collect();
        steps.iter_mut().for_each(|s| s.what.mark_twice(&grads, &g.nodes));
        keep_shared(&slots, &grads, &mut steps);
        let unseen = unseen(&g, key);
        let is_lost = |v: &u32| unseen[*v as usize] == Some(true) && g.var(*v).observed.grad && !given.contains(v);
        let unreached = unreached(&g, &steps);
        let lost = (0..g.vars.len() as u32).filter(|v| key.clear_buffer && *v != g.roots[0]).filter(is_lost).collect();
        Ok(BackwardPlan {
            key,
            replays,
            watch,
            forward: forward.map(|f| (f.id, Arc::downgrade(&f))),
            slots,
            grads,
            narrow,
            steps,
            writable,
            forward_slots,
            adopted: AtomicU64::new(0),
            made_again: AtomicU64::new(0),
            root: g.roots[0],
            given,
            adds,
            lost,
            read_again,
            restored,
            clears: AtomicU64::new(0),
            is_stored,
            loaded,
            unreached,
            unseen,
            vars: g.vars.iter().map(|v| Arc::downgrade(&v.var)).collect(),
            views: std::mem::take(&mut g.views),
            nodes: PlanNode::all(g, |_| false),
        })
    }
}

/// Data that the script may write between runs, and whether it has since the function ran.
fn writable(g: &Graph) -> Vec<(u32, bool)> {
    let made = g.vars.iter().enumerate().filter(|(_, v)| v.producer.is_some());
    let found = made.map(|(i, v)| (i as u32, v.observed.data, v.var.is_overwritten()));
    found.filter(|(_, held, written)| *held || *written).map(|(i, _, written)| (i, written)).collect()
}

impl BackwardPlan {
    /// The plan was made for what the script has written, and for nothing else.
    fn reads_what_is_there(&self) -> bool {
        let is_written = |v: u32| self.vars[v as usize].upgrade().is_some_and(|v| v.is_overwritten());
        self.writable.iter().all(|&(v, written)| is_written(v) == written)
    }

    /// The shape that a gradient is kept in.
    pub(crate) fn grad_shape(&self, v: u32) -> &Shape {
        self.narrow[v as usize].as_ref().unwrap_or(&self.slots[v as usize].shape)
    }

    /// Before a run.
    fn clear_unreached(&self) -> Result<()> {
        let gradient = |v: &u32| self.vars[*v as usize].upgrade()?.existing_grad();
        self.unreached.iter().filter_map(gradient).filter(|g| !g.is_empty()).try_for_each(|g| g.zero())
    }

    /// Adopts the variables again if another plan has adopted some since. What the script has written to gradients that it
    /// does not keep is no gradient of the run to come.
    fn adopt_again(&self) {
        if self.adopted.load(Relaxed) != ADOPTIONS.load(Relaxed) {
            return self.adopt();
        }
        let gradient = |v: &u32| self.vars[*v as usize].upgrade()?.existing_grad();
        let written = self.lost.iter().filter_map(gradient).filter(|g| !g.is_empty());
        written.for_each(|g| g.storage().lose_gradient());
    }

    /// Tells the variables whether they will have a gradient after the run.
    fn adopt(&self) {
        self.adopted.store(ADOPTIONS.fetch_add(1, Relaxed) + 1, Relaxed);
        let given = |v: u32| v == self.root || self.given.contains(&v);
        let others = self.vars.iter().zip(&self.unseen).enumerate().filter(|(i, _)| !given(*i as u32));
        for (v, unseen) in others.filter_map(|(_, (v, u))| Some((v.upgrade()?, (*u)?))) {
            match (v.note_elided(unseen), self.key.clear_buffer) {
                (Some((Some(old), _)), true) => old.storage().lose_gradient(),
                (Some((None, true)), true) => v.grad().storage().lose_gradient(),
                (Some((Some(old), false)), false) => drop(old.release()),
                _ => {}
            }
        }
    }
}

/// Leaves those gradients alone that are never arrays of their own, in the middle of a unit: there is nothing to free.
fn keep_written(g: &Graph, steps: &mut [BackwardStep]) {
    let mut written = vec![false; g.vars.len()];
    steps.iter().flat_map(|s| s.what.targets()).for_each(|t| written[t.slot as usize] = true);
    steps.iter_mut().for_each(|s| s.free_grads.retain(|v| written[*v as usize]));
}

/// Leaves those arrays alone that are the data of one variable and the gradient of another (`bind_grad_output`): what ends in
/// one of its parts does not in the other.
fn keep_shared(slots: &[PlanSlot], grads: &[NdArray], steps: &mut [BackwardStep]) {
    let shared = slots.iter().map(|s| &s.data).filter(|a| a.is_shared());
    let shared: MixMap<usize, ()> = shared.map(|a| (address(a), ())).collect();
    if shared.is_empty() {
        return;
    }
    let both: MixMap<usize, ()> =
        grads.iter().map(|a| (address(a), ())).filter(|(at, _)| shared.contains_key(at)).collect();
    let data_ends = |v: &u32| !both.contains_key(&address(&slots[*v as usize].data));
    for s in steps.iter_mut().filter(|_| !both.is_empty()) {
        s.free_grads.retain(|v| !both.contains_key(&address(&grads[*v as usize])));
        s.free_data.retain(|v| data_ends(v));
        s.forget.retain(|v| data_ends(v));
        s.again.iter_mut().for_each(|a| a.free.retain(|v| data_ends(v)));
    }
}

/// Outputs that no gradient arrives at, of functions of which another output has one; but those of the function that made the
/// root.
fn unreached(g: &Graph, steps: &[BackwardStep]) -> Vec<u32> {
    let calls = steps.iter().filter_map(|s| if let BackwardAction::Call(c) = &s.what { Some(c) } else { None });
    let others =
        calls.flat_map(|c| g.nodes[c.node as usize].y.iter().zip(&c.arrives).map(|(&v, &arrives)| (v, arrives)));
    let maker = g.var(g.roots[0]).producer;
    others.filter(|(v, arrives)| !arrives && g.var(*v).producer != maker).map(|(v, _)| v).collect()
}

/// What values are computed again from that is `stored`, and the functions that read it.
fn read_again(g: &Graph, stored: &[bool], steps: &[BackwardStep]) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    for step in steps {
        for again in &step.again {
            let n = again.what.node();
            let reads = again.what.reads(&g.nodes[n as usize].reads(g));
            found.extend(reads.into_iter().map(|v| (v, n)));
        }
        if let BackwardAction::Tile(t) = &step.what {
            found.extend(&t.remade);
        }
        found.extend(&step.viewed);
    }
    let mut seen: MixMap<(u32, u32), ()> = MixMap::default();
    found.retain(|pair| stored[pair.0 as usize] && seen.insert(*pair, ()).is_none());
    found
}

/// What steps read that is not `stored`, and that no step before has made again; and the functions that read it.
fn restored(g: &Graph, stored: &[bool], steps: &[BackwardStep]) -> Vec<(u32, u32)> {
    let mut is_there = stored.to_vec();
    let mut found = Vec::new();
    for step in steps {
        for again in &step.again {
            let n = again.what.node();
            let node = &g.nodes[n as usize];
            let missing = again.what.reads(&node.reads(g)).into_iter().filter(|&v| !is_there[v as usize]);
            found.extend(missing.map(|v| (v, n)));
            again.what.makes(&node.y).iter().for_each(|&v| is_there[v as usize] = true);
            again.free.iter().for_each(|&v| is_there[v as usize] = false);
        }
        let missing = step.reads.iter().filter(|&&v| !is_there[v as usize]);
        found.extend(missing.map(|&v| (v, step.what.node())));
        step.forget.iter().for_each(|&v| is_there[v as usize] = stored[v as usize]);
    }
    found
}

/// What steps read that functions made, and that is `stored`, in the order in which it was made.
fn loaded(g: &Graph, stored: &[bool], steps: &[BackwardStep]) -> Vec<u32> {
    let mut is_read = vec![false; g.vars.len()];
    for step in steps {
        let again = step.again.iter().flat_map(|a| a.what.reads(&g.nodes[a.what.node() as usize].reads(g)));
        step.reads.iter().copied().chain(again).for_each(|v| is_read[v as usize] = stored[v as usize]);
    }
    g.nodes.iter().flat_map(|n| &n.y).copied().filter(|&v| is_read[v as usize]).collect()
}

/// Of the data, the gradients and the root's gradient, which a run makes before it reads them.
fn made(g: &Graph, steps: &[BackwardStep]) -> Vec<bool> {
    let n = g.vars.len();
    let mut made: Vec<bool> = (0..=2 * n).map(|i| (n..2 * n).contains(&i) && !g.vars[i - n].twin).collect();
    made[n + g.roots[0] as usize] = false;
    let targets = steps.iter().flat_map(|s| s.what.targets());
    targets
        .filter(|t| matches!(t.how, GradientWrite::Leaf | GradientWrite::Own))
        .for_each(|t| made[n + t.slot as usize] = false);
    made
}

/// For each variable that a gradient arrives at, whether it is not observed after the run.
fn unseen(g: &Graph, key: BackwardKey) -> Vec<Option<bool>> {
    let mut arrives = vec![false; g.vars.len()];
    let root = g.var(g.roots[0]);
    arrives[g.roots[0] as usize] = root.flows || root.needs_grad;
    for node in g.nodes.iter().rev() {
        if node.y.iter().any(|&y| arrives[y as usize]) {
            node.reaches(g).for_each(|x| arrives[x as usize] = true);
        }
    }
    let is_unseen = |v: &Var| v.leads_nowhere() || !v.grad_is_visible(key.clear_buffer);
    g.vars.iter().zip(arrives).map(|(v, arrives)| arrives.then(|| is_unseen(v))).collect()
}

/// For each variable of `g` its slot in the forward run.
fn same_slots(g: &Graph, forward: Option<&ForwardPlan>) -> Vec<Option<u32>> {
    let slots = forward.map_or(&[][..], |f| &f.slots);
    let number: MixMap<u64, u32> = slots.iter().enumerate().map(|(i, s)| (s.var_id, i as u32)).collect();
    g.vars.iter().map(|v| number.get(&v.var.id).copied()).collect()
}

/// The array for a variable's gradient: the variable's own if it is observed.
fn grad_array(v: &Var, narrow: Option<&Shape>, key: BackwardKey) -> NdArray {
    match v.grad_is_visible(key.clear_buffer) || key.hooked {
        true => v.var.grad(),
        false => NdArray::of_engine(narrow.unwrap_or(&v.shape).clone()),
    }
}

/// The units of the forward run, as far as they belong to `g`; each function on its own if there was none.
fn units(g: &Graph, forward: Option<&ForwardPlan>) -> Vec<Unit> {
    let Some(f) = forward else {
        return group::in_order(g, (0..g.nodes.len() as u32).collect());
    };
    let number: MixMap<usize, u32> =
        g.nodes.iter().enumerate().map(|(i, n)| (Arc::as_ptr(&n.f) as usize, i as u32)).collect();
    let ours = |&n: &u32| number.get(&(Arc::as_ptr(&f.nodes[n as usize].f) as usize)).copied();
    let translate = |u: &Unit| {
        let nodes: Vec<u32> = u.nodes.iter().filter_map(ours).collect();
        (!nodes.is_empty()).then_some(Unit { nodes, elementwise: u.elementwise })
    };
    f.units.iter().filter_map(translate).collect()
}
