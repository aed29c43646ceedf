//! Runs plans: hands data to kernels, converts types, frees what ends, calls hooks.

use super::build::{Forward, PlanNode, Slot, Step, Tile, What};
use super::turn::Turn;
use crate::function::{GradMut, Gradients, InputKind, Needs, Run, Setup, View, ViewMut};
use crate::graph::node::FnNode;
use crate::graph::variable::exchanges;
use nnrs_kernels::array::{self, Data, Found, NdArray, Place, alloc};
use nnrs_kernels::context::Site;
use nnrs_kernels::cpu::pool::{self, End};
use nnrs_kernels::cuda::replays::{Circumstances, Replays};
use nnrs_kernels::cuda::{self, Gpu};
use nnrs_kernels::dtype::{DType, Element};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use nnrs_kernels::switch::Switch;
use nnrs_kernels::tile::{Sink, Source, Walk};
use nnrs_kernels::with_dtype;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

static FUSION: Switch = Switch::new("NNRS_FUSION", true);

/// True if element-wise functions run together. Off by `NNRS_FUSION=0` or [`set_fusion`].
pub(crate) fn fusion() -> bool {
    FUSION.get()
}

/// Turns fusion of element-wise functions on or off; gives the old setting. Results are the same to the bit.
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
pub type Hook<'a> = &'a dyn Fn(&Arc<FnNode>) -> Result<()>;

/// The hooks of one run.
#[derive(Clone, Copy, Default)]
pub struct Hooks<'a> {
    pub(crate) pre: Option<Hook<'a>>,
    pub(crate) post: Option<Hook<'a>>,
    /// Backward starts with the root's own gradient: it is not cleared.
    pub(crate) has_own_seed: bool,
}

impl Hooks<'_> {
    pub(crate) fn any(&self) -> bool {
        self.pre.is_some() || self.post.is_some()
    }

    /// Before a function of a run on `slots`.
    pub(crate) fn before(&self, f: &Arc<FnNode>, slots: &[Slot]) -> Result<()> {
        self.pre.map_or(Ok(()), |hook| call_hook(hook, f, slots))
    }

    /// After it.
    pub(crate) fn after(&self, f: &Arc<FnNode>, slots: &[Slot]) -> Result<()> {
        self.post.map_or(Ok(()), |hook| call_hook(hook, f, slots))
    }
}

fn call_hook(hook: Hook, f: &Arc<FnNode>, slots: &[Slot]) -> Result<()> {
    let before = exchanges();
    pool::unstoppable(|| hook(f))?;
    if before == exchanges() { Ok(()) } else { slots.iter().try_for_each(Slot::check_array) }
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
            End::Stopped => STOPPED.take().expect("who stops says why"),
            End::Refused(e) => e,
        }))
    })
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
        if is_due && pool::is_to_stop() { Err(STOPPED.take().expect("who stops says why")) } else { Ok(()) }
    }
}

impl Forward {
    /// Runs the plan.
    pub(crate) fn run(&self, hooks: &Hooks) -> Result<()> {
        let _turn = Turn::take(self.nodes.iter().map(|n| &*n.f))?;
        self.fetch_leaves()?;
        self.note_changes();
        self.mark(&self.marked); // what views write while it runs shows in the marks after it
        let done = match self.replays.as_ref().filter(|_| !hooks.any()) {
            Some((gpu, replays)) => self.run_captured(gpu, replays),
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

    fn compute(&self, hooks: &Hooks) -> Result<()> {
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
            let made = step.what.makes(node).iter();
            made.filter(|v| !self.slots[**v as usize].data.storage().is_exported()).for_each(|&v| self.drop_data(v));
            step.free.iter().for_each(|&v| self.drop_data(v)); // an output may have taken its memory
            node.f.explain(e)
        })
    }

    fn mark(&self, slots: &[u32]) {
        slots.iter().for_each(|&v| self.slots[v as usize].data.mark());
    }

    /// The functions of step `i` have run: who asks what was written since asks from now on.
    fn note_ran(&self, i: usize) {
        let now = array::now();
        let ran = |n: u32| self.nodes[n as usize].f.set_ran(now);
        match &self.steps[i].what {
            What::Tile(_) if !self.key.hooked => self.units[i].nodes.iter().for_each(|&n| ran(n)),
            what => ran(what.node()),
        }
    }

    /// Runs as a CUDA graph, once there is one.
    fn run_captured(&self, gpu: &'static Gpu, replays: &Replays) -> Result<()> {
        let arrays: Vec<&NdArray> = self.slots.iter().map(|s| &s.data).collect();
        let saved: Vec<_> = self.nodes.iter().map(|n| &n.f.saved).collect();
        let c = Circumstances { gpu, arrays: &arrays, saved: &saved, reads_saved: false };
        let finish = &mut || self.steps.iter().flat_map(|s| &s.free).for_each(|&v| self.drop_data(v));
        replays.run(&c, &mut || self.compute(&Hooks::default()), finish)?;
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

    fn step(&self, i: usize, step: &Step, hooks: &Hooks) -> Result<()> {
        let node = &self.nodes[step.what.node() as usize];
        if hooks.any() {
            self.hook(&node.x, || hooks.before(&node.f, &self.slots))?;
        }
        let _label = alloc::label("output of", node.name);
        step.what.run(node, &self.slots, false)?;
        self.note_ran(i);
        if hooks.any() {
            let made = step.what.makes(node);
            self.mark(made);
            self.hook(made, || hooks.after(&node.f, &self.slots))?;
        }
        step.free.iter().for_each(|&v| self.end(v));
        Ok(())
    }
}

impl What {
    /// Runs on `slots`; `again` where the same values were made before.
    pub(crate) fn run(&self, node: &PlanNode, slots: &[Slot], again: bool) -> Result<()> {
        let done = match self {
            What::Call(_) => call(node, slots, again),
            What::View(_) => view(node, slots),
            What::Tile(t) => tile(t, slots),
        };
        done.map_err(|e| node.f.explain(e))?;
        if again {
            self.makes(node).iter().for_each(|&v| slots[v as usize].note_made());
        }
        Ok(())
    }

    /// The slots that it writes.
    fn makes<'a>(&'a self, node: &'a PlanNode) -> &'a [u32] {
        match self {
            What::Tile(t) => &t.sinks,
            What::Call(_) | What::View(_) => &node.y,
        }
    }

    /// The slots that it reads, where the inputs of its function are `x`.
    pub(crate) fn reads(&self, x: &[u32]) -> SmallVec<[u32; 4]> {
        match self {
            What::Tile(t) => t.sources.iter().map(|(v, _)| *v).collect(),
            What::Call(_) | What::View(_) => x.iter().copied().collect(),
        }
    }

    pub(crate) fn node(&self) -> u32 {
        match self {
            What::Call(n) | What::View(n) => *n,
            What::Tile(t) => t.node,
        }
    }
}

impl How {
    pub(crate) const AGAIN: How = How { again: true, keep: false };
}

/// Runs an opaque function.
fn call(node: &PlanNode, slots: &[Slot], again: bool) -> Result<()> {
    let arrays: SmallVec<[&NdArray; 4]> = node.x.iter().map(|&x| &slots[x as usize].data).collect();
    let outputs: SmallVec<[&NdArray; 2]> = node.y.iter().map(|&y| &slots[y as usize].data).collect();
    let how = How { again, keep: node.keep && !again };
    call_function(&node.f, &node.setup, &arrays, &outputs, how)
}

/// How a function runs forward.
#[derive(Clone, Copy)]
pub(crate) struct How {
    /// For values that were there before: no side effects.
    pub(crate) again: bool,
    /// A backward pass may follow.
    pub(crate) keep: bool,
}

/// Input `i` of `f` in the type in which its kernel at `place` reads it. Indices are whole numbers; NaN is the smallest.
pub(crate) fn read_input(f: &FnNode, i: usize, a: &NdArray, shape: &Shape, place: Place) -> Result<Data> {
    let n = shape.size();
    if f.function.def().input(i).kind != InputKind::Index {
        return a.read_at(place, f.kernel_dtype(place))?.of(n);
    }
    if !a.dtype().is_float() {
        return a.read_at(place, DType::I64)?.of(n);
    }
    if place != Place::Host {
        return cuda::kernels::indices(&a.read_at(place, a.dtype())?.of(n)?);
    }
    let (from, to) = (a.read(a.dtype())?.of(n)?, Data::new(DType::I64, n)?);
    with_dtype!(from.dtype(), T => {
        for (y, &x) in to.as_mut_slice::<i64>().iter_mut().zip(from.as_slice::<T>()) {
            let x = Element::to_f64(x);
            *y = if x.is_nan() { i64::MIN } else { x as i64 };
        }
    });
    Ok(to)
}

/// Runs a call on arrays: each is taken for the length of the call, and has the size that the call says.
pub(crate) fn call_function(f: &FnNode, setup: &Setup, x: &[&NdArray], y: &[&NdArray], how: How) -> Result<()> {
    if let Some(own) = f.function.on_variables() {
        x.iter().for_each(|x| x.storage().watch()); // to look at it is no change
        let writes = || x.iter().fold(0, |n: u64, x| n.wrapping_add(x.storage().modification_count()));
        let before = writes();
        super::variables::forward(own, x, y, f.context.dtype())?;
        x.iter().for_each(|x| x.mark());
        if let Some(plan) = f.plan().filter(|_| writes() != before) {
            plan.note_written();
        }
        y.iter().for_each(|y| y.mark()); // what it wrote by views it wrote before its readers run
        return super::changes::note_made(f, y, how.again);
    }
    let place = f.kernel_place();
    let (dtype, compute) = (f.context.dtype(), f.kernel_dtype(place));
    let over = f.rewrites().map(|i| x[i]);
    let is_alone = |a: &NdArray| dtype == compute && x.iter().filter(|x| is_same_memory(x, a)).count() == 1;
    let mut views: SmallVec<[View; 4]> = SmallVec::new();
    for (i, (a, shape)) in x.iter().zip(&setup.x).enumerate() {
        views.push(View { shape, data: read_input(f, i, a, shape, place)? });
    }
    let mut outs: SmallVec<[ViewMut; 2]> = SmallVec::new();
    let mut apart: SmallVec<[(usize, DType); 2]> = SmallVec::new();
    for (i, (a, shape)) in y.iter().zip(&setup.y).enumerate() {
        let own = f.function.output_dtype(i);
        let (stored, kernel) = (own.unwrap_or(dtype), own.unwrap_or(compute));
        let data = if let Some(over) = over.filter(|a| is_alone(a)) {
            over.modify_at(place, dtype)?.of(shape.size())?
        } else if stored == kernel && !reads(x, a) {
            a.overwrite_at(place, stored)?.of(shape.size())?
        } else {
            apart.push((i, stored));
            Data::new_at(place, kernel, shape.size())?
        };
        outs.push(ViewMut { shape, data });
    }
    let inputs: SmallVec<[NdArray; 4]> =
        if f.function.has_state() { x.iter().map(|a| (*a).clone()).collect() } else { SmallVec::new() };
    let saves = f.saves(setup).is_some();
    if saves && !how.again {
        f.saved.clear(); // it is of other inputs now; and its memory may do
    }
    let (again, keep) = (how.again, how.keep && saves);
    let dtype = f.context.compute_dtype();
    let run = Run { dtype, again, keep, saved: &f.saved, call: setup.number, shapes: &setup.x, inputs: &inputs };
    if !f.is_idle(setup) {
        setup.call()?.forward(&run, &views, &mut outs)?;
    }
    for (i, stored) in apart {
        y[i].overwrite_at(place, stored)?.of(setup.y[i].size())?.take(&outs[i].data)?;
    }
    match over {
        Some(over) if is_alone(over) => y[0].share_content(over),
        Some(over) => over.copy_from(y[0]),
        None => Ok(()),
    }
}

/// Runs the backward kernel of a call, which reads what `needs` says. `gy`: the gradients that arrive; `gx`: finds, after all
/// is read, where those of the inputs are to go.
pub(crate) fn call_backward<'a>(
    f: &FnNode,
    setup: &'a Setup,
    needs: Needs,
    x: &[&NdArray],
    y: &[&NdArray],
    gy: &[Option<&NdArray>],
    gx: impl FnOnce() -> Result<SmallVec<[Option<GradMut<'a>>; 4]>>,
) -> Result<()> {
    let place = f.backward_place();
    let compute = f.kernel_dtype(place);
    let read = |a: &NdArray, shape: &'a Shape| -> Result<View<'a>> {
        Ok(View { shape, data: a.read_at(place, compute)?.of(shape.size())? })
    };
    let input = |(i, (a, shape)): (usize, (&&NdArray, &'a Shape))| -> Result<Option<View<'a>>> {
        let data = needs.input(i).then(|| read_input(f, i, a, shape, place)).transpose()?;
        Ok(data.map(|data| View { shape, data }))
    };
    let output = |(i, (a, shape)): (usize, (&&NdArray, &'a Shape))| needs.output(i).then(|| read(a, shape)).transpose();
    let arriving = |(a, shape): (&Option<&NdArray>, &'a Shape)| a.map(|a| read(a, shape)).transpose();
    let x: SmallVec<[_; 4]> = x.iter().zip(&setup.x).enumerate().map(input).collect::<Result<_>>()?;
    let y: SmallVec<[_; 2]> = y.iter().zip(&setup.y).enumerate().map(output).collect::<Result<_>>()?;
    let gy: SmallVec<[_; 2]> = gy.iter().zip(&setup.y).map(arriving).collect::<Result<_>>()?;
    let mut gx = gx()?;
    let dtype = f.context.compute_dtype();
    let (saved, call, shapes) = (&f.saved, setup.number, &setup.x[..]);
    let run = Run { dtype, again: false, keep: false, saved, call, shapes, inputs: &[] };
    if f.is_idle(setup) {
        Ok(())
    } else {
        setup.call()?.backward(&run, Gradients { x: &x, y: &y, gy: &gy, gx: &mut gx })
    }
}

/// True if an output is one of the inputs too: then the kernel writes elsewhere first.
fn reads(x: &[&NdArray], y: &NdArray) -> bool {
    x.iter().any(|x| x.is(y) || y.is_shared() && is_same_memory(x, y))
}

fn is_same_memory(a: &NdArray, b: &NdArray) -> bool {
    Arc::ptr_eq(&a.storage(), &b.storage())
}

/// Lets the output take its input's memory.
fn view(node: &PlanNode, slots: &[Slot]) -> Result<()> {
    let (x, y) = (&slots[node.x[0] as usize].data, &slots[node.y[0] as usize].data);
    y.share_content(x)
}

/// Runs an element-wise unit.
fn tile(t: &Tile, slots: &[Slot]) -> Result<()> {
    let took = |(sink, source): &(u32, u32)| {
        steal(&slots[*source as usize].data, &slots[*sink as usize].data, t.site.dtype).then_some((*sink, *source))
    };
    let stolen: SmallVec<[(u32, u32); 1]> = t.steal.iter().filter_map(took).collect();
    let mut alive = Alive::new();
    let mut sinks: SmallVec<[Sink; 4]> = SmallVec::new();
    let mut sources: SmallVec<[Source; 8]> = SmallVec::new();
    for (v, walk) in &t.sources {
        let now = stolen.iter().find(|(_, s)| s == v).map_or(*v, |(sink, _)| *sink);
        let n = slots[*v as usize].shape.size();
        sources.push(source(&slots[now as usize].data, n, t.site, || walk.clone(), &mut alive)?);
    }
    let (mut apart, read) = (Apart::default(), alive.len());
    for &v in &t.sinks {
        let data = slots[v as usize].data.overwrite_at(t.site.place, t.site.dtype)?.of(t.n)?;
        let data = apart.from(data, &alive[..read])?;
        sinks.push(Sink { ptr: data.address() as *mut u8, dtype: t.site.dtype });
        alive.push(data);
    }
    // SAFETY: all arrays were found to have the plan's sizes, and `alive` keeps their memory.
    unsafe { t.program.run(t.n, &sources, &sinks)? };
    apart.put()
}

/// Results that lie in what a program reads, but elsewhere in it: they are made apart and put there after it.
#[derive(Default)]
pub(super) struct Apart(SmallVec<[(Data, Data); 1]>);

impl Apart {
    /// Where to make the result that is to lie in `data`.
    pub(super) fn from(&mut self, data: Data, read: &[Data]) -> Result<Data> {
        if !data.overlaps_shifted(read) {
            return Ok(data);
        }
        let made = data.converted(data.dtype())?;
        self.0.push((data, made.clone()));
        Ok(made)
    }

    pub(super) fn put(self) -> Result<()> {
        self.0.iter().try_for_each(|(data, made)| data.take(made))
    }
}

/// Keeps the memory of a program's arrays while it runs.
pub(super) type Alive = SmallVec<[Data; 8]>;

/// What a program reads of an array of `n` elements.
pub(super) fn source(
    a: &NdArray,
    n: usize,
    at: Site,
    walk: impl FnOnce() -> Walk,
    alive: &mut Alive,
) -> Result<Source> {
    let data = match a.find(at.place)? {
        Found::Constant(v) => {
            return Ok(Source { ptr: std::ptr::null(), dtype: at.dtype, walk: Walk::Constant(v) });
        }
        Found::Nothing => a.read_at(at.place, a.dtype())?,
        Found::Data(data) => data,
    }
    .of(n)?;
    let source = Source { ptr: data.address() as *const u8, dtype: data.dtype(), walk: walk() };
    alive.push(data);
    Ok(source)
}

/// Gives a dying source's memory to a sink, if nobody else has it.
pub(super) fn steal(source: &NdArray, sink: &NdArray, dtype: DType) -> bool {
    let (from, to) = (source.storage(), sink.storage());
    if source.is_kept_by_user_code()
        || from.dtype() != dtype
        || !from.is_exclusive()
        || from.size() != to.size()
        || to.is_exported()
        || source.offset() != 0
    {
        return false;
    }
    to.adopt(dtype, from.release());
    true
}
