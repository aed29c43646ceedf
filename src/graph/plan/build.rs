//! Builds a forward plan: units, what to keep for the backward pass, when to free, which buffers to reuse.

use super::exec;
use super::group::{self, Unit};
use super::order::{Graph, Node, collect};
use super::program::{AnyProgram, Input, UnitBackward, Values, prune};
use super::{ForwardOptions, Watch};
use crate::array::NdArray;
use crate::context::Site;
use crate::cuda::{Gpu, replays::Replays};
use crate::dtype::DType;
use crate::error::Result;
use crate::function::expr::tile::Walk;
use crate::graph::node::FnNode;
use crate::graph::variable::{VarRef, next_id};
use crate::shape::Shape;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, MutexGuard, Weak};

/// What a plan was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) options: ForwardOptions,
    /// Each function on its own, all data visible while it runs.
    pub(crate) hooked: bool,
    pub(crate) fused: bool,
}

/// How often plans have adopted nodes.
static ADOPTIONS: AtomicU64 = AtomicU64::new(0);

/// The plan that ran `f` last, if it is still there.
pub(super) fn last_plan(f: &FnNode) -> Option<Arc<Forward>> {
    plans(f).last()?.upgrade()
}

/// The last plan that ran `f` and is still there.
pub(super) fn living_plan(f: &FnNode) -> Option<Arc<Forward>> {
    plans(f).iter().rev().find_map(Weak::upgrade)
}

/// The plans that ran `f`.
pub(crate) fn plans(f: &FnNode) -> MutexGuard<'_, SmallVec<[Weak<Forward>; 2]>> {
    f.plans.lock().unwrap_or_else(|e| e.into_inner())
}

/// Plans that a function remembers at most.
const REMEMBERED: usize = 4;

/// Notes that `plan` runs `f` now.
fn remember(f: &FnNode, plan: &Arc<Forward>) {
    let mut plans = plans(f);
    plans.retain(|p| p.strong_count() > 0 && p.as_ptr() != Arc::as_ptr(plan));
    if plans.len() == REMEMBERED {
        plans.remove(0);
    }
    plans.push(Arc::downgrade(plan));
}

/// A compiled forward run.
pub(crate) struct Forward {
    pub(crate) id: u64,
    pub(crate) key: Key,
    pub(crate) root_ids: Vec<u64>,
    /// The variables whose functions do not belong to the run: somebody else has run them.
    pub(crate) border: Vec<u64>,
    pub(crate) watch: Watch,
    pub(crate) nodes: Vec<PlanNode>,
    pub(crate) units: Vec<Unit>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) steps: Vec<Step>,
    /// Slots whose data is there after the run.
    pub(crate) kept: Vec<bool>,
    /// Leaf slots, and how often their data had been written at the end of the last run.
    pub(crate) leaves: Vec<(u32, AtomicU64)>,
    /// Of these, which the run itself makes before it reads them: they show what a function of it computes.
    pub(crate) made: Vec<u32>,
    /// Value of [`ADOPTIONS`] when this plan was last known to own its nodes.
    adopted: AtomicU64,
    /// The GPU on which all of it runs, if it can be captured as a CUDA graph.
    pub(crate) replays: Option<(&'static Gpu, Replays)>,
}

/// The GPU on which all these functions run by kernels alone. `made`: which arrays a run makes before it reads them.
pub(crate) fn captured_on<'a>(
    nodes: impl Iterator<Item = &'a FnNode>,
    made: impl FnOnce() -> Vec<bool>,
) -> Option<(&'static Gpu, Replays)> {
    let mut nodes = nodes.peekable();
    let gpu = nodes.peek()?.context.gpu()?;
    let by_kernels = |n: &FnNode| n.function.runs_on_gpu() && n.function.on_variables().is_none();
    let mut double = false;
    let all = nodes.all(|n| {
        double |= n.context.dtype() == DType::F64;
        n.context.gpu() == Some(gpu) && by_kernels(n)
    });
    all.then(|| (gpu, Replays::new(made(), double)))
}

pub(crate) struct PlanNode {
    pub(crate) f: Arc<FnNode>,
    pub(crate) x: SmallVec<[u32; 2]>,
    pub(crate) y: SmallVec<[u32; 1]>,
    /// A backward pass may follow, and read what the function saves.
    pub(crate) keep: bool,
}

/// A variable's place in a plan.
pub(crate) struct Slot {
    pub(crate) data: NdArray,
    pub(crate) shape: Shape,
    pub(crate) var_id: u64,
    pub(crate) recompute: bool,
    /// Its elements may change while the graph runs, other than by its producer.
    pub(crate) twin: bool,
}

impl Slot {
    pub(crate) fn new(v: &super::order::Var) -> Slot {
        Slot { data: v.var.data(), shape: v.shape.clone(), var_id: v.var.id, recompute: v.recompute, twin: v.twin }
    }
}

/// One step of a run.
pub(crate) struct Step {
    pub(crate) what: What,
    /// Slots that nobody reads any more.
    pub(crate) free: SmallVec<[u32; 2]>,
}

pub(crate) enum What {
    /// An opaque function.
    Call(u32),
    /// An output that is its input's memory.
    View(u32),
    /// A unit of element-wise functions.
    Tile(Box<Tile>),
}

pub(crate) struct Tile {
    pub(crate) node: u32,
    pub(crate) program: AnyProgram,
    pub(crate) n: usize,
    pub(crate) sources: Vec<(u32, Walk)>,
    pub(crate) sinks: Vec<u32>,
    pub(crate) site: Site,
    /// Sinks that may take over the memory of a source that ends here.
    pub(crate) steal: SmallVec<[(u32, u32); 1]>,
}

impl Forward {
    pub(crate) fn new(roots: &[VarRef], key: Key) -> Result<Forward> {
        Forward::of(collect(roots), Vec::new(), roots, key)
    }

    /// The plan that runs `functions`, sorted, which begin behind `border`.
    pub(crate) fn of(functions: Vec<Arc<FnNode>>, border: Vec<u64>, roots: &[VarRef], key: Key) -> Result<Forward> {
        let g = Graph::new(functions, roots)?;
        let mut units = group::units(&g);
        if key.hooked || !key.fused {
            units = group::split(units);
        }
        let watch = Watch::new(&g, roots);
        let ranked = key.hooked.then(|| group::ranked(&units));
        let mut b = Builder::new(&g, ranked.as_ref().unwrap_or(&units), key);
        b.keep_for_backward();
        let steps = b.steps();
        let kept = (0..g.vars.len() as u32).map(|v| b.stays(v)).collect();
        let slots = g.vars.iter().map(Slot::new).collect();
        let keep = |n: &Node| !key.options.clear_buffer && !n.f.no_grad && n.is_active(&g);
        let keep: Vec<bool> = g.nodes.iter().map(keep).collect();
        let leaves = (0..g.vars.len() as u32).filter(|&v| g.var(v).producer.is_none()).map(|v| (v, AtomicU64::new(0)));
        let made = g.made_in_time();
        Ok(Forward {
            id: next_id(),
            replays: captured_on(g.nodes.iter().map(|n| &*n.f), || {
                g.vars.iter().map(|v| v.producer.is_some() && !v.twin).collect()
            }),
            key,
            root_ids: roots.iter().map(|r| r.id).collect(),
            border,
            watch,
            leaves: leaves.collect(),
            made,
            nodes: g.nodes.into_iter().zip(keep).map(|(n, keep)| PlanNode { f: n.f, x: n.x, y: n.y, keep }).collect(),
            units,
            slots,
            steps,
            kept,
            adopted: AtomicU64::new(0),
        })
    }

    /// True if this plan was the last to run each function behind `root`.
    pub(crate) fn has_run(&self, root: &VarRef) -> bool {
        collect(std::slice::from_ref(root)).iter().all(|f| last_plan(f).is_some_and(|p| p.id == self.id))
    }

    /// Adopts the nodes again if another plan has run some of them since.
    pub(crate) fn adopt_again(self: &Arc<Forward>) {
        let now = ADOPTIONS.load(Relaxed);
        if self.adopted.swap(now, Relaxed) == now {
            return;
        }
        let other = |n: &PlanNode| last_plan(&n.f).is_none_or(|p| p.id != self.id);
        if self.nodes.iter().any(other) {
            self.adopt();
        }
    }

    /// Tells nodes and variables of their plan.
    pub(crate) fn adopt(self: &Arc<Forward>) {
        self.adopted.store(ADOPTIONS.fetch_add(1, Relaxed) + 1, Relaxed);
        for n in &self.nodes {
            remember(&n.f, self);
            for (v, &slot) in n.f.outputs().iter().zip(&n.y) {
                let kept = self.kept[slot as usize];
                if !kept {
                    self.drop_data(slot);
                }
                v.sheds.store(false, Relaxed); // from now on plans decide
                v.set_elided((!kept).then(|| Arc::downgrade(self)));
            }
        }
    }
}

struct Builder<'a> {
    g: &'a Graph,
    units: &'a [Unit],
    key: Key,
    /// Unit that makes a variable.
    unit_of: Vec<Option<u32>>,
    /// Last unit that reads a variable; `u32::MAX` if none.
    last_read: Vec<Option<u32>>,
    /// Read outside the unit that makes it.
    outside: Vec<bool>,
    /// The backward pass reads it.
    backward: Vec<bool>,
}

impl<'a> Builder<'a> {
    fn new(g: &'a Graph, units: &'a [Unit], key: Key) -> Builder<'a> {
        let n = g.vars.len();
        let mut b = Builder {
            g,
            units,
            key,
            unit_of: vec![None; n],
            last_read: vec![None; n],
            outside: vec![false; n],
            backward: vec![false; n],
        };
        for (u, unit) in units.iter().enumerate() {
            for &node in &unit.nodes {
                let node = &g.nodes[node as usize];
                node.y.iter().for_each(|&y| b.unit_of[y as usize] = Some(u as u32));
                for &x in &node.x {
                    b.last_read[x as usize] = Some(u as u32);
                    if b.unit_of[x as usize] != Some(u as u32) {
                        b.outside[x as usize] = true;
                    }
                }
            }
        }
        b
    }

    /// Somebody may look at it after the run.
    fn visible(&self, v: u32) -> bool {
        let (var, o) = (self.g.var(v), self.key.options);
        let cleared = o.clear_buffer || (o.clear_no_need_grad && !self.backward[v as usize]);
        var.root || var.keeps_data || var.visible(cleared || var.recompute)
    }

    /// Its data is there after the run.
    fn stays(&self, v: u32) -> bool {
        let dropped = self.key.options.clear_buffer || self.g.var(v).recompute;
        self.visible(v) || (self.backward[v as usize] && !dropped)
    }

    /// It has memory of its own at some time.
    fn exists(&self, v: u32) -> bool {
        self.outside[v as usize] || self.stays(v)
    }

    /// Decides what the backward pass will load: first what opaque functions need, then units from the last to the first,
    /// which prefer what is kept anyway.
    fn keep_for_backward(&mut self) {
        let wanted = |n: &u32| {
            let node = &self.g.nodes[*n as usize];
            !node.f.no_grad && node.is_active(self.g)
        };
        let active: Vec<bool> = self.units.iter().map(|u| u.nodes.iter().any(wanted)).collect();
        for (unit, _) in self.units.iter().zip(&active).filter(|(unit, active)| **active && !unit.elementwise) {
            let reads = self.g.nodes[unit.nodes[0] as usize].backward_reads(self.g);
            reads.iter().for_each(|&v| self.backward[v as usize] = true);
        }
        for u in (0..self.units.len()).rev().filter(|&u| active[u] && self.units[u].elementwise) {
            let unit = &self.units[u];
            self.loads(unit).into_iter().for_each(|v| self.backward[v as usize] = true);
        }
    }

    /// What the backward pass of an element-wise unit will load. A function on its own may load its output, as in NNabla,
    /// rather than compute it again, unless that keeps more memory.
    fn loads(&self, unit: &Unit) -> Vec<u32> {
        let arrives = |v: u32| self.outside[v as usize] || self.g.var(v).root || self.g.var(v).held;
        let stored = |v: u32| self.stays(v) || self.backward[v as usize];
        let seen = |v: u32| self.g.var(v).visible(false);
        let with = |output: Option<u32>| {
            UnitBackward::new(self.g, unit, arrives, |v| stored(v) || output == Some(v), seen).loads()
        };
        // First what has changed by then, then what keeps more memory.
        let more = |loads: &[u32]| -> (usize, usize) {
            let changing = loads.iter().filter(|&&v| self.g.var(v).twin).count();
            let kept = loads.iter().map(|&v| (v, self.g.var(v))).filter(|(v, var)| !stored(*v) && !var.recompute);
            (changing, kept.map(|(_, var)| var.shape.size()).sum())
        };
        let again = with(None);
        match unit.nodes[..] {
            [n] if !again.is_empty() => {
                let y = self.g.nodes[n as usize].y[0];
                let own = with(Some(y));
                let (new, old) = (more(&own), more(&again));
                if new < old || (new == old && own == [y]) { own } else { again }
            }
            _ => again,
        }
    }

    fn steps(&self) -> Vec<Step> {
        let ends = self.ends();
        let step = |(unit, free): (&Unit, _)| {
            let made = unit.nodes.iter().flat_map(|&n| self.g.nodes[n as usize].y.iter().copied());
            let sinks = made.filter(|&y| self.exists(y)).collect();
            let mut step = Step::new(self.g, what(self.g, unit, |_| false, sinks), free);
            if self.key.hooked {
                step.give_back();
            }
            step
        };
        self.units.iter().zip(ends).map(step).collect()
    }

    /// For each unit the variables that end with it.
    fn ends(&self) -> Vec<SmallVec<[u32; 2]>> {
        let mut ends: Vec<SmallVec<[u32; 2]>> = vec![SmallVec::new(); self.units.len()];
        for v in (0..self.g.vars.len() as u32).filter(|&v| !self.stays(v)) {
            let made = self.unit_of[v as usize];
            if let Some(u) = self.last_read[v as usize].max(made) {
                ends[u as usize].push(v);
            }
        }
        ends
    }
}

/// What runs a unit forward so that `sinks` are made; members of the unit that are `stored` are loaded.
pub(crate) fn what(g: &Graph, unit: &Unit, stored: impl Fn(u32) -> bool, sinks: Vec<u32>) -> What {
    let n = unit.nodes[0];
    match unit.elementwise {
        true => What::Tile(Box::new(tile(g, unit, stored, sinks))),
        false if g.nodes[n as usize].f.function.is_view() => What::View(n),
        false => What::Call(n),
    }
}

fn tile(g: &Graph, unit: &Unit, stored: impl Fn(u32) -> bool, sinks: Vec<u32>) -> Tile {
    let mut values = Values::new(g, unit);
    values.forward(unit, stored);
    let outs = sinks.iter().map(|&y| values.value(y)).collect();
    let (ssa, inputs, outs) = prune(values.ssa, values.inputs, outs);
    let node = *unit.nodes.last().expect("units have nodes");
    let last = &g.nodes[node as usize];
    let shape = &g.var(last.y[0]).shape;
    let data = |i: &Input| match *i {
        Input::Data(v) | Input::Grad(v) => (v, Walk::new(&g.var(v).shape, shape)),
    };
    let site = last.f.context.site();
    let sources: Vec<(u32, Walk)> = inputs.iter().map(data).collect();
    let program = AnyProgram::compile(site, &ssa, sources.len(), &outs);
    Tile { node, program, n: shape.size(), sources, sinks, site, steal: SmallVec::new() }
}

impl Step {
    /// A step after which `free` ends; what a loop writes may take over memory that ends with it.
    pub(crate) fn new(g: &Graph, mut what: What, free: SmallVec<[u32; 2]>) -> Step {
        if let What::Tile(t) = &mut what {
            let dies = |(v, w): &&(u32, Walk)| free.contains(v) && *w == Walk::Dense && g.var(*v).producer.is_some();
            let dying = t.sources.iter().filter(dies).map(|(v, _)| *v).rev();
            t.steal = t.sinks.iter().copied().zip(dying).collect();
        }
        Step { what, free }
    }

    /// Nothing takes over memory: a hook after the step may look at what was read.
    fn give_back(&mut self) {
        if let What::Tile(t) = &mut self.what {
            t.steal.clear();
        }
    }
}

/// The key of a plain run.
pub(crate) fn key(options: ForwardOptions, hooked: bool) -> Key {
    Key { options, hooked, fused: exec::fusion() }
}
