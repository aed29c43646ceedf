//! Builds a forward plan: units, what to keep for the backward pass, when to free, which buffers to reuse.

use super::changes::Changes;
use super::exec;
use super::finish::{self, FinishedCall};
use super::group::{self, Unit};
use super::order::{ExecutionOrder, Graph, Node, Var, collect};
use super::program::{UnitBackward, forward_program};
use super::recompute::{node, note_made};
use super::{ForwardOptions, Watch};
use crate::function::Setup;
use crate::graph::node::{FnNode, maker};
use crate::graph::variable::{VarNode, VarRef, next_id};
use nnrs_kernels::array::Site;
use nnrs_kernels::array::{Maker, NdArray, Strided};
use nnrs_kernels::cuda::replays::Replays;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::expr::ssa::MixMap;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::tile::{AnyProgram, Walk};
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// What a plan was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForwardKey {
    pub(crate) options: ForwardOptions,
    /// Each function on its own, all data visible while it runs.
    pub(crate) hooked: bool,
    pub(crate) fused: bool,
}

/// How often plans have adopted nodes.
static ADOPTIONS: AtomicU64 = AtomicU64::new(0);

/// A compiled forward run.
pub(crate) struct ForwardPlan {
    pub(crate) id: u64,
    pub(crate) key: ForwardKey,
    pub(crate) root_ids: Vec<u64>,
    /// The variables whose functions do not belong to the run: an earlier run has made them.
    pub(crate) border: Vec<u64>,
    pub(crate) watch: Watch,
    pub(crate) nodes: Vec<PlanNode>,
    pub(crate) units: Vec<Unit>,
    pub(crate) slots: Vec<PlanSlot>,
    pub(crate) steps: Vec<ForwardStep>,
    /// Slots whose data is there after the run.
    pub(crate) kept: Vec<bool>,
    /// Leaves that functions read.
    pub(crate) leaves: Vec<u32>,
    /// What is left out is made of these slots, so they are watched for changes.
    watched: Vec<u32>,
    /// Leaves that functions read, and what they make, where a view or handle may show it, and write it unnoticed.
    pub(crate) marked: Vec<u32>,
    /// Of these, which the run itself makes before it reads them: they show what a function of it computes.
    pub(crate) made: Vec<u32>,
    /// What no step makes, though the script may write it meanwhile: it is dropped in each run.
    unmade: Vec<u32>,
    pub(super) changes: Changes,
    /// Value of [`ADOPTIONS`] when this plan was last known to own its nodes.
    adopted: AtomicU64,
    /// What it keeps has been there since its last run.
    pub(super) is_whole: AtomicBool,
    /// Its captured runs, if all of it runs on one GPU.
    pub(crate) replays: Option<Replays>,
}

/// The captured runs of a plan of these functions, if all run on one GPU by kernels alone. `made`: which arrays a run makes before it reads them.
pub(crate) fn captured_on<'a>(
    nodes: impl Iterator<Item = &'a FnNode>,
    made: impl FnOnce() -> Vec<bool>,
) -> Option<Replays> {
    let mut nodes = nodes.peekable();
    let gpu = nodes.peek()?.context.gpu()?;
    let by_kernels =
        |n: &FnNode| n.function.runs_on_gpu() && n.function.on_variables().is_none() && !n.function.counts_runs();
    let mut double = false;
    let all = nodes.all(|n| {
        double |= n.context.dtype() == DType::F64;
        n.context.gpu() == Some(gpu) && by_kernels(n)
    });
    all.then(|| Replays::new(gpu, made(), double))
}

pub(crate) struct PlanNode {
    pub(crate) f: Arc<FnNode>,
    /// Its name, at hand for the report of memory.
    pub(crate) name: &'static str,
    pub(crate) x: SmallVec<[u32; 2]>,
    pub(crate) y: SmallVec<[u32; 1]>,
    /// The variables whose memory its inputs are read from, and where they lie there if these are others.
    pub(crate) reads: SmallVec<[u32; 2]>,
    pub(crate) views: Option<Box<[Option<Strided>]>>,
    /// The function over the shapes of these.
    pub(crate) setup: Arc<Setup>,
    /// A backward pass may follow, and read what the function saves.
    pub(crate) keep: bool,
}

impl PlanNode {
    /// The nodes of a graph, in its order. `keep`: for each whether a backward pass may follow.
    pub(super) fn all(mut g: Graph, keep: impl Fn(usize) -> bool) -> Vec<PlanNode> {
        let nodes = std::mem::take(&mut g.nodes);
        nodes.into_iter().enumerate().map(|(i, n)| PlanNode::new(&g, n, keep(i))).collect()
    }

    fn new(g: &Graph, n: Node, keep: bool) -> PlanNode {
        let (reads, how) = (n.reads(g), |v: &u32| g.view(*v).map(|w| w.how.clone()));
        let views = (reads != n.x).then(|| n.x.iter().map(how).collect());
        PlanNode { name: n.f.name(), f: n.f, x: n.x, y: n.y, reads, views, setup: n.setup, keep }
    }

    /// Where input `i` lies in the memory that is read for it, if that is another variable's.
    pub(super) fn view(&self, i: usize) -> Option<&Strided> {
        self.views.as_ref()?[i].as_ref()
    }
}

/// A variable's place in a plan.
pub(crate) struct PlanSlot {
    pub(crate) data: NdArray,
    pub(crate) shape: Shape,
    pub(crate) var_id: u64,
    pub(crate) recompute: bool,
    /// Who makes the data again when it was dropped; nothing for a leaf.
    pub(super) maker: Option<Weak<dyn Maker>>,
    /// The variable, where the script may have written its data, or got hold of it, when the data ends.
    script: Option<Weak<VarNode>>,
    /// The clear flags drop its data, though handles hold it.
    is_cleared: bool,
}

impl PlanSlot {
    /// `in_run`: the script is at work in the middle of the run. `is_cleared`: the clear flags drop its data.
    pub(crate) fn new(g: &Graph, v: &Var, in_run: bool, is_cleared: bool) -> PlanSlot {
        let maker = v.producer.map(|n| maker(&g.nodes[n as usize].f));
        let is_the_scripts = in_run || (v.producer.is_some() && (v.observed.data || v.keeps_data));
        let script = is_the_scripts.then(|| Arc::downgrade(&v.var));
        PlanSlot {
            data: v.var.data(),
            shape: v.shape.clone(),
            var_id: v.var.id,
            recompute: v.recompute,
            maker,
            script,
            is_cleared,
        }
    }

    /// As [`PlanSlot::drop_data`], where nothing has failed. What the script has written stays, since no function could make it again,
    /// and so does what it got hold of.
    pub(crate) fn end(&self, clear: bool) {
        let is_held = |v: &VarNode| !self.is_cleared && v.observed().data;
        let is_kept = |v: Arc<VarNode>| v.is_overwritten() || v.lock().keeps_data() || is_held(&v);
        // A gradient may have taken its memory: then it is gone, and says so.
        if !self.script.as_ref().and_then(Weak::upgrade).is_some_and(is_kept) || self.data.is_empty() {
            self.drop_data(clear);
        }
    }

    /// An error if a hook has given the variable another array than the run has.
    pub(crate) fn check_array(&self) -> Result<()> {
        match self.script.as_ref().and_then(Weak::upgrade) {
            Some(v) if self.maker.is_some() && !v.data().is(&self.data) => Err(Error::graph(
                "a hook has given a variable another data array while its graph runs with the one that it had",
            )
            .hint("write into the array (v.d = .., v.data.copy_from(..)), or exchange it between the runs")),
            _ => Ok(()),
        }
    }

    /// Drops data that no step reads any more; a later reader has it made again. `clear`: the array says that it
    /// was cleared. Data of which the script got a handle in the middle of the run stays, unless it is to be cleared.
    pub(crate) fn drop_data(&self, clear: bool) {
        match &self.maker {
            _ if !clear && self.data.is_kept_by_user_code() => {}
            Some(maker) => self.data.lose(maker, clear),
            None if clear => self.data.storage().clear(),
            None => drop(self.data.release()),
        }
    }
}

impl PlanSlot {
    /// It was not written since its function ran; or it is not there.
    pub(super) fn is_as_made(&self) -> bool {
        let storage = self.data.storage();
        storage.is_empty() || self.maker.as_ref().and_then(node).is_none_or(|f| storage.is_as_at(f.ran()))
    }

    /// The script may write the data.
    pub(super) fn is_the_scripts(&self) -> bool {
        self.script.is_some()
    }

    /// The data was made again, and is what it was.
    pub(super) fn note_made(&self) {
        if let Some(maker) = &self.maker {
            note_made(maker, &self.data);
        }
    }
}

/// One step of a run.
pub(crate) struct ForwardStep {
    pub(crate) what: ForwardAction,
    /// Elements that it makes.
    pub(super) work: usize,
    /// Slots that no later step reads.
    pub(crate) free: SmallVec<[u32; 2]>,
    /// A later step does it.
    pub(super) is_later: bool,
    /// What it does besides.
    pub(super) finishes: Option<Box<FinishedCall>>,
}

pub(crate) enum ForwardAction {
    /// An opaque function.
    Call(u32),
    /// An output that is its input's memory.
    View(u32),
    /// An output that is never made: its readers read the input's memory.
    Viewed(u32),
    /// A unit of element-wise functions.
    Tile(Box<ForwardTile>),
}

pub(crate) struct ForwardTile {
    pub(crate) node: u32,
    pub(crate) program: AnyProgram,
    pub(crate) n: usize,
    pub(crate) sources: Vec<(u32, Walk)>,
    pub(crate) sinks: Vec<u32>,
    pub(crate) site: Site,
    /// Sinks that may take over the memory of a source that ends here.
    pub(crate) steal: SmallVec<[(u32, u32); 1]>,
}

impl ForwardPlan {
    pub(crate) fn new(roots: &[VarRef], key: ForwardKey) -> Result<ForwardPlan> {
        ForwardPlan::of(collect(roots), Vec::new(), roots, key)
    }

    /// The plan that runs some functions, which begin behind `border`.
    pub(crate) fn of(
        order: ExecutionOrder,
        border: Vec<u64>,
        roots: &[VarRef],
        key: ForwardKey,
    ) -> Result<ForwardPlan> {
        order.check_memory(512)?;
        let mut g = Graph::new(order, roots)?;
        if key.fused && !key.hooked {
            g.find_views();
        }
        let mut units = group::units(&g);
        if key.hooked || !key.fused {
            units = group::split(units);
        }
        let made = g.vars.iter().filter(|v| v.producer.is_some());
        made.for_each(|v| v.var.sheds.store(false, Relaxed)); // from now on plans decide
        let watch = Watch::new(&g, roots);
        let ranked = key.hooked.then(|| group::ranked(&units));
        let mut b = ForwardBuilder::new(&g, ranked.as_ref().unwrap_or(&units), key);
        b.keep_for_backward();
        let mut steps = b.steps();
        let kept: Vec<bool> = (0..g.vars.len() as u32).map(|v| b.stays(v)).collect();
        let unmade = (0..g.vars.len() as u32).filter(|&v| g.var(v).observed.data && !b.exists(v)).collect();
        let slot = |(i, v)| PlanSlot::new(&g, v, b.in_run, b.is_cleared(i as u32));
        let slots = g.vars.iter().enumerate().map(slot).collect();
        let watched = g.read(); // what is made of it may be left out, by this run or by another one
        let keep = |n: &Node| !key.options.clear_buffer && !n.f.no_grad && n.is_active(&g);
        if key.fused && !b.in_run {
            finish::join(&g, &mut steps);
        }
        let keep: Vec<bool> = g.nodes.iter().map(keep).collect();
        let made = g.made_in_time();
        let leaves: Vec<u32> = watched.iter().copied().filter(|&v| g.var(v).producer.is_none()).collect();
        let is_open = |v: u32| g.var(v).producer.is_some() && kept[v as usize] && g.var(v).observed.data;
        let once = g.written_once();
        let varying = (0..g.nodes.len() as u32).filter(|&n| g.nodes[n as usize].varies(&g, &once)).collect();
        let open = (0..g.vars.len() as u32).filter(|&v| is_open(v));
        let marked: Vec<u32> = leaves.iter().copied().chain(open).collect();
        let changes = Changes::new(&marked, varying, g.has_user_code());
        Ok(ForwardPlan {
            id: next_id(),
            replays: captured_on(g.nodes.iter().map(|n| &*n.f), || {
                g.vars.iter().map(|v| v.producer.is_some() && !v.twin).collect()
            }),
            key,
            root_ids: roots.iter().map(|r| r.id).collect(),
            border,
            watch,
            leaves,
            watched,
            marked,
            unmade,
            made,
            nodes: PlanNode::all(g, |n| keep[n]),
            units,
            slots,
            steps,
            kept,
            changes,
            adopted: AtomicU64::new(0),
            is_whole: AtomicBool::new(false),
        })
    }

    /// True if this plan was the last to run each of these functions.
    pub(crate) fn has_run(&self, functions: &[Arc<FnNode>]) -> bool {
        functions.iter().all(|f| self.owns(f))
    }

    /// True if this plan was the last to run `f`.
    pub(super) fn owns(&self, f: &FnNode) -> bool {
        std::ptr::eq(f.lock_plan().as_ptr(), self)
    }

    /// Adopts the nodes again if another plan has run some of them since, or something was made again.
    pub(crate) fn adopt_again(self: &Arc<ForwardPlan>) {
        let now = ADOPTIONS.load(Relaxed);
        if self.adopted.swap(now, Relaxed) == now {
            return;
        }
        if self.nodes.iter().any(|n| n.f.is_remade.load(Relaxed) || !self.owns(&n.f)) {
            self.adopt();
        }
    }

    /// Drops what was made in the middle of the run for its reader then.
    pub(crate) fn drop_remade(&self) {
        if self.is_last() {
            return;
        }
        self.nodes
            .iter()
            .filter(|n| n.f.is_remade.swap(false, Relaxed))
            .flat_map(|n| self.unkept(n))
            .for_each(|v| self.end(v));
    }

    /// No other plan has run nodes, and nothing was made again, since this plan was last known to own its nodes.
    pub(super) fn is_last(&self) -> bool {
        ADOPTIONS.load(Relaxed) == self.adopted.load(Relaxed)
    }

    /// All that it keeps is there: no other plan has run its functions since, and no backward run has cleared any of it.
    pub(super) fn is_there(&self) -> bool {
        self.is_whole.load(Relaxed) && self.is_last()
    }

    fn unkept(&self, n: &PlanNode) -> impl Iterator<Item = u32> {
        n.y.iter().copied().filter(|&v| !self.kept[v as usize])
    }

    /// Drops what no step makes.
    pub(crate) fn drop_unmade(&self) {
        self.unmade.iter().for_each(|&v| self.drop_data(v));
    }

    /// Tells nodes of their plan, and drops what it does not keep.
    pub(crate) fn adopt(self: &Arc<ForwardPlan>) {
        self.adopted.store(ADOPTIONS.fetch_add(1, Relaxed) + 1, Relaxed);
        self.settle_others();
        self.changes.begin_anew();
        for n in &self.nodes {
            let old = std::mem::replace(&mut *n.f.lock_plan(), Arc::downgrade(self));
            drop(old);
            n.f.is_remade.store(false, Relaxed);
            for v in self.unkept(n) {
                let slot = &self.slots[v as usize];
                if slot.is_the_scripts() && !slot.is_as_made() {
                    n.f.note_change(); // what the script wrote is not what the function makes
                }
                self.drop_data(v);
            }
        }
        let watched = self.watched.iter().chain(&self.marked);
        watched.for_each(|&v| self.slots[v as usize].data.watch());
    }
}

/// Something was made again that plans do not keep: they look before they run.
pub(crate) fn note_remade(f: &FnNode) {
    f.is_remade.store(true, Relaxed);
    ADOPTIONS.fetch_add(1, Relaxed);
}

struct ForwardBuilder<'a> {
    g: &'a Graph,
    units: &'a [Unit],
    key: ForwardKey,
    /// The script is at work in the middle of the run.
    in_run: bool,
    /// Unit that makes a variable.
    unit_of: Vec<Option<u32>>,
    /// Last unit that reads a variable; `u32::MAX` if none.
    last_read: Vec<Option<u32>>,
    /// Read outside the unit that makes it.
    outside: Vec<bool>,
    /// The backward pass reads it.
    backward: Vec<bool>,
    /// The backward pass of some function, run on its own, would read it: `clear_no_need_grad` leaves it.
    named: Vec<bool>,
    /// The functions of the run, by their numbers.
    functions: OnceCell<MixMap<u64, ()>>,
}

impl<'a> ForwardBuilder<'a> {
    fn new(g: &'a Graph, units: &'a [Unit], key: ForwardKey) -> ForwardBuilder<'a> {
        let n = g.vars.len();
        let mut b = ForwardBuilder {
            g,
            units,
            key,
            in_run: key.hooked || g.has_user_code(),
            unit_of: vec![None; n],
            last_read: vec![None; n],
            outside: vec![false; n],
            backward: vec![false; n],
            named: if key.options.clear_no_need_grad { named(g) } else { vec![false; n] },
            functions: OnceCell::new(),
        };
        for (u, unit) in units.iter().enumerate() {
            for &node in &unit.nodes {
                let node = &g.nodes[node as usize];
                node.y.iter().for_each(|&y| b.unit_of[y as usize] = Some(u as u32));
                for x in node.x.iter().filter(|_| !is_viewed(g, node)).map(|&x| g.memory(x)) {
                    b.last_read[x as usize] = Some(u as u32);
                    if b.unit_of[x as usize] != Some(u as u32) {
                        b.outside[x as usize] = true;
                    }
                }
            }
        }
        b
    }

    /// It is observed after the run.
    fn visible(&self, v: u32) -> bool {
        let (var, o) = (self.g.var(v), self.key.options);
        let is_plain = o == super::ForwardOptions::default() && !var.recompute;
        var.root || var.keeps_data || (var.of_user_code && is_plain) || var.data_is_visible(self.is_cleared(v))
    }

    /// The flags ask for its data to be dropped, which is no part of another array.
    fn is_cleared(&self, v: u32) -> bool {
        let (var, o) = (self.g.var(v), self.key.options);
        let is_wanted = || var.needs_grad || self.backward[v as usize] || self.named[v as usize];
        let is_idle = || o.clear_no_need_grad && !is_wanted() && !self.is_read_elsewhere(v);
        let is_used = self.last_read[v as usize].is_some();
        is_used && (o.clear_buffer || var.recompute || is_idle()) && var.var.data().is_whole()
    }

    /// A function that is no part of the run reads it.
    fn is_read_elsewhere(&self, v: u32) -> bool {
        let functions = self.functions.get_or_init(|| self.g.nodes.iter().map(|n| (n.f.id, ())).collect());
        let consumers = self.g.var(v).var.lock().consumers.clone();
        consumers.iter().filter_map(Weak::upgrade).any(|f| !functions.contains_key(&f.id))
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
        let arrives = |v: u32| self.outside[v as usize] || self.g.var(v).root || self.g.var(v).observed.any();
        let stored = |v: u32| self.stays(v) || self.backward[v as usize];
        let seen = |v: u32| self.g.var(v).grad_is_visible(false);
        let with = |output: Option<u32>| {
            UnitBackward::new(self.g, unit, arrives, |v| stored(v) || output == Some(v), seen).reads(self.g)
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

    fn steps(&self) -> Vec<ForwardStep> {
        let step = |(unit, free): (&Unit, _)| {
            let made = unit.nodes.iter().flat_map(|&n| self.g.nodes[n as usize].y.iter().copied());
            let sinks = made.filter(|&y| self.exists(y)).collect();
            let mut step = ForwardStep::new(self.g, what(self.g, unit, |_| false, sinks), free);
            if self.in_run {
                step.give_back();
            }
            step
        };
        self.units.iter().zip(self.ends()).map(step).collect()
    }

    /// For each unit the variables that end with it.
    fn ends(&self) -> Vec<SmallVec<[u32; 2]>> {
        let mut ends: Vec<SmallVec<[u32; 2]>> = vec![SmallVec::new(); self.units.len()];
        for v in (0..self.g.vars.len() as u32).filter(|&v| !self.stays(v)) {
            let made = self.unit_of[v as usize];
            let is_inner = made.is_some_and(|u| self.units[u as usize].elementwise) && !self.exists(v);
            if is_inner || self.g.view(v).is_some() {
                continue; // it is never an array of its own
            }
            if let Some(u) = self.last_read[v as usize].max(made) {
                ends[u as usize].push(v);
            }
        }
        ends
    }
}

/// What the backward passes of functions read, each on its own, as NNabla runs them.
fn named(g: &Graph) -> Vec<bool> {
    let mut named = vec![false; g.vars.len()];
    for node in g.nodes.iter().filter(|n| !n.f.no_grad && n.is_active(g)) {
        node.own_backward_reads(g).iter().for_each(|&v| named[v as usize] = true);
    }
    named
}

/// What runs a unit forward so that `sinks` are made; members of the unit that are `stored` are loaded.
pub(crate) fn what(g: &Graph, unit: &Unit, stored: impl Fn(u32) -> bool, sinks: Vec<u32>) -> ForwardAction {
    let n = unit.nodes[0];
    match unit.elementwise {
        true => ForwardAction::Tile(Box::new(tile(g, unit, stored, sinks))),
        false if g.nodes[n as usize].f.function.is_view() => ForwardAction::View(n),
        false if is_viewed(g, &g.nodes[n as usize]) => ForwardAction::Viewed(n),
        false => ForwardAction::Call(n),
    }
}

/// None of its outputs is made.
fn is_viewed(g: &Graph, node: &Node) -> bool {
    node.y.iter().all(|&y| g.view(y).is_some())
}

fn tile(g: &Graph, unit: &Unit, stored: impl Fn(u32) -> bool, sinks: Vec<u32>) -> ForwardTile {
    let (program, inputs) = forward_program(g, unit, stored, &sinks);
    let node = *unit.nodes.last().expect("units have nodes");
    let last = &g.nodes[node as usize];
    let shape = &g.var(last.y[0]).shape;
    let site = last.f.context.site();
    let source = |v: u32| match g.view(v) {
        Some(w) => (w.source, Walk::over(&w.how, shape)),
        None => (v, Walk::new(&g.var(v).shape, shape)),
    };
    let sources = inputs.into_iter().map(source).collect();
    ForwardTile { node, program, n: shape.size(), sources, sinks, site, steal: SmallVec::new() }
}

impl ForwardStep {
    /// A step after which `free` ends; what a loop writes may take over memory that ends with it.
    pub(crate) fn new(g: &Graph, mut what: ForwardAction, free: SmallVec<[u32; 2]>) -> ForwardStep {
        if let ForwardAction::Tile(t) = &mut what {
            let once = |v: &u32| t.sources.iter().filter(|(other, _)| other == v).count() == 1;
            let dies = |(v, w): &&(u32, Walk)| {
                free.contains(v) && *w == Walk::Dense && g.var(*v).producer.is_some() && once(v)
            };
            let dying = t.sources.iter().filter(dies).map(|(v, _)| *v).rev();
            t.steal = t.sinks.iter().copied().zip(dying).collect();
        }
        let work = match &what {
            ForwardAction::Tile(t) => t.n,
            ForwardAction::Call(n) | ForwardAction::View(n) => g.var(g.nodes[*n as usize].y[0]).shape.size(),
            ForwardAction::Viewed(_) => 1,
        };
        ForwardStep { what, work, free, is_later: false, finishes: None }
    }

    /// Nothing takes over memory: the script may look at what was read, or have written it.
    fn give_back(&mut self) {
        if let ForwardAction::Tile(t) = &mut self.what {
            t.steal.clear();
        }
    }
}

/// The key of a plain run.
pub(crate) fn key(options: ForwardOptions, hooked: bool) -> ForwardKey {
    ForwardKey { options, hooked, fused: exec::fusion() }
}
