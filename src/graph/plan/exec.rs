//! Runs plans: hands data to kernels, converts types, frees what ends, calls hooks.

use super::build::{ForwardAction, ForwardPlan, ForwardStep, PlanNode, PlanSlot};
use super::invoke;
use super::turn::Turn;
use crate::graph::node::FnNode;
use crate::graph::variable::exchanges;
use nnrs_kernels::array::{self, NdArray, alloc};
use nnrs_kernels::cuda;
use nnrs_kernels::cuda::replays::{Circumstances, Replays};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::pool::{self, End};
use nnrs_kernels::switch::Switch;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

static FUSION: Switch = Switch::new("NNRS_FUSION", true);

/// True if element-wise functions run together, and convolutions with what comes after them. Off by `NNRS_FUSION=0` or [`set_fusion`].
pub(crate) fn fusion() -> bool {
    FUSION.get()
}

/// Turns fusion on or off: of element-wise functions, and of convolutions with what comes after them; gives the old setting. Results are
/// the same to the bit, but for sign and payload of a NaN.
///
/// ```
/// let old = nnrs::graph::set_fusion(false);
/// assert!(!nnrs::graph::set_fusion(true)); // it was off
/// nnrs::graph::set_fusion(old);
/// ```
pub fn set_fusion(on: bool) -> bool {
    FUSION.set(on)
}

/// Called with a function before or after it runs; an error stops the run.
pub type NodeHook<'a> = &'a dyn Fn(&Arc<FnNode>) -> Result<()>;

/// The hooks of one run.
#[derive(Clone, Copy, Default)]
pub struct NodeHooks<'a> {
    pub(crate) pre: Option<NodeHook<'a>>,
    pub(crate) post: Option<NodeHook<'a>>,
    /// Backward starts with the root's own gradient: it is not cleared.
    pub(crate) has_own_seed: bool,
}

impl NodeHooks<'_> {
    pub(crate) fn any(&self) -> bool {
        self.pre.is_some() || self.post.is_some()
    }

    /// Before a function of a run on `slots`.
    pub(crate) fn before(&self, f: &Arc<FnNode>, slots: &[PlanSlot]) -> Result<()> {
        self.pre.map_or(Ok(()), |hook| call_hook(hook, f, slots))
    }

    /// After it.
    pub(crate) fn after(&self, f: &Arc<FnNode>, slots: &[PlanSlot]) -> Result<()> {
        self.post.map_or(Ok(()), |hook| call_hook(hook, f, slots))
    }
}

fn call_hook(hook: NodeHook, f: &Arc<FnNode>, slots: &[PlanSlot]) -> Result<()> {
    let before = exchanges();
    pool::unstoppable(|| hook(f))?;
    if before == exchanges() { Ok(()) } else { slots.iter().try_for_each(PlanSlot::check_array) }
}

static INTERRUPT: OnceLock<fn() -> Result<()>> = OnceLock::new();

thread_local! {
    /// The error with which a run is to stop.
    static STOPPED: Cell<Option<Error>> = const { Cell::new(None) };
}

/// Sets what is asked whether to stop (Ctrl-C), between functions and in the middle of long ones: its error ends the run.
/// What was set first stays.
///
/// ```
/// use nnrs::graph::{set_interrupt, ForwardRun, FunctionRef};
/// use nnrs::{functions as f, Error, ErrorKind, Variable};
/// set_interrupt(|| Err(Error::new(ErrorKind::External, "Ctrl-C")));
/// let y = f::sin(&f::exp(&Variable::new([1 << 16]))?)?;
/// let slow = |_: &FunctionRef| Ok(std::thread::sleep(std::time::Duration::from_millis(60)));
/// let error = y.forward_with(ForwardRun { pre: Some(&slow), ..Default::default() }).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::External);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn set_interrupt(f: fn() -> Result<()>) {
    let _ = INTERRUPT.set(f);
}

/// Runs `f`, which ends with an error when it is to stop, or where a kernel gets no memory to work in: `unfinished` is called
/// where that was in the middle of a function, with the error.
pub(crate) fn interruptible(f: impl FnOnce() -> Result<()>, unfinished: impl FnOnce(Error) -> Error) -> Result<()> {
    let asks = INTERRUPT.get().is_some() && !cuda::capture::is_capturing();
    pool::contained(asks.then_some(is_to_stop as fn() -> bool), f).unwrap_or_else(|end| {
        Err(unfinished(match end {
            End::Stopped => STOPPED.take().expect("a stop has its error"),
            End::Refused(e) => e,
        }))
    })
}

/// Things after which is asked anew where each is quickly made.
pub(crate) const MANY: usize = 1 << 14;

/// Asks whether to stop, after each [`MANY`] of them.
pub(crate) fn ask(i: usize) -> Result<()> {
    let due = INTERRUPT.get().filter(|_| i % MANY == MANY - 1 && !cuda::capture::is_capturing());
    due.map_or(Ok(()), |ask| ask())
}

fn is_to_stop() -> bool {
    let error = INTERRUPT.get().and_then(|ask| ask().err());
    let is_to_stop = error.is_some();
    STOPPED.set(error);
    is_to_stop
}

/// Asks between the steps of a run whether to stop.
#[derive(Default)]
pub(crate) struct Interrupt {
    steps: u32,
}

impl Interrupt {
    /// After a step that made `n` elements.
    pub(crate) fn check(&mut self, n: usize) -> Result<()> {
        self.steps += 1;
        let is_due = n >= 1 << 16 || self.steps.is_multiple_of(64);
        if is_due && pool::is_to_stop() { Err(STOPPED.take().expect("a stop has its error")) } else { Ok(()) }
    }
}

impl ForwardPlan {
    /// Runs the plan.
    pub(crate) fn run(&self, hooks: &NodeHooks) -> Result<()> {
        let _turn = Turn::take(self.nodes.iter().map(|n| &*n.f))?;
        self.fetch_leaves()?;
        self.mark(&self.marked); // what views write while it runs shows in the marks after it
        self.note_changes();
        let done = match self.replays.as_ref().filter(|_| !hooks.any()) {
            Some(replays) => self.run_captured(replays),
            None => self.compute(hooks),
        };
        self.mark(&self.marked);
        self.note_what_was_written();
        done?;
        self.is_whole.store(true, Relaxed);
        self.changes.note_end();
        self.drop_unmade();
        self.drop_remade();
        Ok(())
    }

    fn compute(&self, hooks: &NodeHooks) -> Result<()> {
        let (mut interrupt, at) = (Interrupt::default(), Cell::new(0));
        let run = || {
            self.steps.iter().enumerate().try_for_each(|(i, step)| {
                at.set(i);
                self.step(i, step, hooks)?;
                interrupt.check(step.work)
            })
        };
        interruptible(run, |e| {
            let step = &self.steps[at.get()];
            let node = &self.nodes[step.what.node() as usize];
            let made = step.what.makes(&node.y).iter();
            made.filter(|v| !self.slots[**v as usize].data.storage().is_exported()).for_each(|&v| self.drop_data(v));
            step.free.iter().for_each(|&v| self.drop_data(v)); // an output may have taken its memory
            node.f.explain(e)
        })
    }

    fn mark(&self, slots: &[u32]) {
        slots.iter().for_each(|&v| self.slots[v as usize].data.mark());
    }

    /// The functions of step `i` have run: what was written since is asked from now on.
    fn note_ran(&self, i: usize) {
        let now = array::now();
        let ran = |n: u32| self.nodes[n as usize].f.set_ran(now);
        self.steps[i].finishes.iter().for_each(|f| [Some(f.node), f.scaling].into_iter().flatten().for_each(ran));
        match &self.steps[i].what {
            ForwardAction::Tile(_) if !self.key.hooked => self.units[i].nodes.iter().for_each(|&n| ran(n)),
            what => ran(what.node()),
        }
    }

    /// Runs as a CUDA graph, once there is one.
    fn run_captured(&self, replays: &Replays) -> Result<()> {
        let arrays: Vec<&NdArray> = self.slots.iter().map(|s| &s.data).collect();
        let saved: Vec<_> = self.nodes.iter().map(|n| &n.f.saved).collect();
        let c = Circumstances { gpu: replays.gpu(), arrays: &arrays, saved: &saved, reads_saved: false };
        let finish = &mut || self.steps.iter().flat_map(|s| &s.free).for_each(|&v| self.drop_data(v));
        replays.run(&c, &mut || self.compute(&NodeHooks::default()), finish)?;
        (0..self.steps.len()).for_each(|i| self.note_ran(i));
        self.note_varying(); // when they read what others write is not known
        Ok(())
    }

    /// Leaves that another graph computed, or this one before it was cut, may have data that was not kept.
    fn fetch_leaves(&self) -> Result<()> {
        let mut leaves = self.leaves.iter().filter(|slot| !self.made.contains(slot));
        leaves.try_for_each(|&slot| self.slots[slot as usize].data.fetch())
    }

    /// Drops a slot's data; where the user asked for clearing, the array says so.
    pub(crate) fn drop_data(&self, slot: u32) {
        self.slots[slot as usize].drop_data(self.is_to_clear(slot));
    }

    /// The same at the end of its life, if the script has nothing to do with it.
    pub(crate) fn end(&self, slot: u32) {
        self.slots[slot as usize].end(self.is_to_clear(slot));
    }

    fn is_to_clear(&self, slot: u32) -> bool {
        self.slots[slot as usize].recompute || self.key.options != super::ForwardOptions::default()
    }

    /// Calls a hook, which may write, also by views of the slots `near`.
    fn hook(&self, near: &[u32], call: impl FnOnce() -> Result<()>) -> Result<()> {
        let clock = array::now();
        let done = call();
        self.mark(near);
        if array::now() != clock {
            self.note_written();
        }
        done
    }

    fn step(&self, i: usize, step: &ForwardStep, hooks: &NodeHooks) -> Result<()> {
        if step.is_later {
            return Ok(());
        }
        let node = &self.nodes[step.what.node() as usize];
        if hooks.any() {
            self.hook(&node.x, || hooks.before(&node.f, &self.slots))?;
        }
        let _label = alloc::label("output of", node.name);
        let (clock, made) = (array::now(), step.what.makes(&node.y));
        match &step.finishes {
            Some(finished) => self.finish(step, finished)?,
            None => step.what.run(node, &self.slots, false)?,
        }
        if array::now() != clock + made.len() as u64 || array::is_any_shown() {
            made.iter().for_each(|&v| self.slots[v as usize].data.note_whole()); // another thread may have read some of it
        }
        made.iter().for_each(|&v| self.slots[v as usize].data.mark_watched()); // a view may end before the run
        self.note_ran(i);
        if hooks.any() {
            self.mark(made);
            self.hook(made, || hooks.after(&node.f, &self.slots))?;
        }
        step.free.iter().for_each(|&v| self.end(v));
        Ok(())
    }
}

impl ForwardAction {
    /// Runs on `slots`; `again` where the same values were made before.
    pub(crate) fn run(&self, node: &PlanNode, slots: &[PlanSlot], again: bool) -> Result<()> {
        let done = match self {
            ForwardAction::Call(_) => invoke::call(node, slots, again),
            ForwardAction::View(_) => slots[node.y[0] as usize].data.share_content(&slots[node.x[0] as usize].data),
            ForwardAction::Viewed(_) => Ok(()),
            ForwardAction::Tile(t) => invoke::tile(t, slots),
        };
        done.map_err(|e| node.f.explain(e))?;
        if again {
            self.makes(&node.y).iter().for_each(|&v| slots[v as usize].note_made());
        }
        Ok(())
    }

    /// The slots that it writes, where its function writes `y`.
    pub(crate) fn makes<'a>(&'a self, y: &'a [u32]) -> &'a [u32] {
        match self {
            ForwardAction::Tile(t) => &t.sinks,
            ForwardAction::Viewed(_) => &[],
            ForwardAction::Call(_) | ForwardAction::View(_) => y,
        }
    }

    /// The slots that it reads, where its function reads `x`.
    pub(crate) fn reads(&self, x: &[u32]) -> SmallVec<[u32; 4]> {
        match self {
            ForwardAction::Tile(t) => t.sources.iter().map(|(v, _)| *v).collect(),
            ForwardAction::Viewed(_) => SmallVec::new(),
            ForwardAction::Call(_) | ForwardAction::View(_) => x.iter().copied().collect(),
        }
    }

    pub(crate) fn node(&self) -> u32 {
        match self {
            ForwardAction::Call(n) | ForwardAction::View(n) | ForwardAction::Viewed(n) => *n,
            ForwardAction::Tile(t) => t.node,
        }
    }
}
