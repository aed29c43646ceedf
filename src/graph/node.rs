//! Function nodes: a function with its arguments, strong links to its inputs, weak ones to its outputs.

use super::variable::{Core, VarNode, VarRef, Variable, next_id};
use super::{mode, plan};
use crate::function::{Def, Function, InputKind, Needs, OnGpu, Resolved, Setup, Shapes};
use crate::functions::Identity;
use nnrs_kernels::array::{Absent, Maker, NdArray, Place, shape_changed};
use nnrs_kernels::context::Context;
use nnrs_kernels::cuda;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

static LIVE: AtomicU64 = AtomicU64::new(0);
/// Some function has lost or got inputs, outputs or what is before it after it was made.
static CHANGED: AtomicBool = AtomicBool::new(false);

/// True if no graph was ever changed: then all ranks are what they were when the functions were made.
pub(crate) fn ranks_are_right() -> bool {
    !CHANGED.load(Relaxed)
}

/// Ranks must be looked at again.
pub(crate) fn note_change() {
    CHANGED.store(true, Relaxed);
}

/// Function nodes that are alive.
///
/// ```
/// use nnrs::{functions as f, graph::live_functions, Variable};
/// let y = f::sin(&f::exp(&Variable::new([2]))?)?;
/// let before = live_functions();
/// drop(y);
/// assert_eq!(before - live_functions(), 2);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn live_functions() -> u64 {
    LIVE.load(Relaxed)
}

pub(crate) struct FnNode {
    pub(crate) id: u64,
    pub(crate) function: Arc<dyn Function>,
    pub(crate) context: Arc<Context>,
    pub(crate) saved: nnrs_kernels::saved::Saved,
    pub(crate) turn: Running,
    /// This function, or one before it, works on variables: it may be user code, which may own anything.
    pub(crate) user_code: AtomicBool,
    /// Made under no_grad: its data is not kept for a backward pass (which computes it again if it comes after all).
    pub(crate) no_grad: bool,
    /// It copies another variable to one that was given that one's parent: users see that parent in its place.
    pub(crate) mirror: bool,
    /// The script line that made the node.
    pub(crate) origin: Option<Arc<str>>,
    rank: AtomicU32,
    /// Words of the user's own.
    pub(crate) tags: Mutex<BTreeMap<String, String>>,
    links: Mutex<Links>,
    /// The plan that ran this node last; nothing if it was run on its own.
    plan: Mutex<Weak<plan::ForwardPlan>>,
    /// Of what user code made in its last run: see [`Storage::sum`](nnrs_kernels::array::Storage::sum).
    pub(crate) sum: AtomicU64,
    /// An output was made again since, which the plan does not keep.
    pub(crate) is_remade: AtomicBool,
}

/// What each run reads and writes of each node, side by side in memory.
#[repr(C, align(32))]
pub(crate) struct Running {
    /// The number of the run that has the node now; 0: none.
    pub(crate) busy: AtomicU64,
    /// The time at the end of the last run (see [`array::now`](nnrs_kernels::array::now)); 0 before the first.
    ran: AtomicU64,
    /// The end of the first of the runs that all made what the last one made; the greatest number if it is not known.
    same_since: AtomicU64,
}

impl Default for Running {
    fn default() -> Running {
        Running { busy: AtomicU64::new(0), ran: AtomicU64::new(0), same_since: AtomicU64::new(u64::MAX) }
    }
}

pub(crate) struct Links {
    pub(crate) inputs: SmallVec<[VarRef; 2]>,
    /// All inputs, where some are left out (see [`FnNode::set_active`]).
    all_inputs: Option<Box<[VarRef]>>,
    outputs: SmallVec<[OutputSlot; 1]>,
    /// The function over the shapes that inputs and outputs had when it was set up; nothing if it is to be set up again.
    setup: Option<Arc<Setup>>,
    /// The inputs whose users want it to be set up again.
    marked: Vec<u64>,
}

/// An output: the variable while it is alive, and its data, so that it can come back.
struct OutputSlot {
    id: u64,
    var: Weak<VarNode>,
    data: NdArray,
    /// What unlinked copies of the variable share, when it was dropped.
    core: Weak<Core>,
    /// The same, owned, while the variable is dropped and has a gradient.
    kept: Option<Arc<Core>>,
    /// The variable was dropped, and the last backward run had not kept its gradient.
    grad_elided: bool,
}

impl OutputSlot {
    fn new(v: &VarRef) -> OutputSlot {
        OutputSlot {
            id: v.id,
            var: Arc::downgrade(v),
            data: v.data(),
            core: Weak::new(),
            kept: None,
            grad_elided: false,
        }
    }
}

impl FnNode {
    pub(crate) fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(crate) fn inputs(&self) -> SmallVec<[VarRef; 2]> {
        self.links().inputs.clone()
    }

    /// When the last run ended, 0 before the first: what was written later is not of that run.
    pub(crate) fn ran(&self) -> u64 {
        self.turn.ran.load(Relaxed)
    }

    pub(crate) fn set_ran(&self, time: u64) {
        self.turn.ran.store(time, Relaxed);
        if self.same_since() == u64::MAX {
            self.turn.same_since.store(time, Relaxed);
        }
    }

    /// All runs from this time to the last one made the same.
    pub(crate) fn same_since(&self) -> u64 {
        self.turn.same_since.load(Relaxed)
    }

    /// The next run may make something else than the last one.
    pub(crate) fn note_change(&self) {
        self.turn.same_since.store(u64::MAX, Relaxed);
    }

    pub(crate) fn set_same_since(&self, time: u64) {
        self.turn.same_since.store(time, Relaxed);
    }

    /// The plan that ran it last, if that is still there.
    pub(crate) fn plan(&self) -> Option<Arc<plan::ForwardPlan>> {
        self.lock_plan().upgrade()
    }

    pub(crate) fn lock_plan(&self) -> MutexGuard<'_, Weak<plan::ForwardPlan>> {
        self.plan.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The arrays of the outputs, be the variables there or not.
    pub(crate) fn output_arrays(&self) -> SmallVec<[NdArray; 2]> {
        let array = |s: &OutputSlot| s.var.upgrade().map_or_else(|| s.data.clone(), |v| v.data());
        self.links().outputs.iter().map(array).collect()
    }

    /// True if inputs and outputs have the shapes that they had when it was set up, or would have if it were set up now.
    pub(crate) fn is_set_up(&self) -> bool {
        let x: SmallVec<[Shape; 4]> = self.inputs().iter().map(|x| x.shape()).collect();
        let y: SmallVec<[Shape; 2]> = self.output_arrays().iter().map(NdArray::shape).collect();
        if self.function.on_variables().is_some() {
            return self.setup_of(fingerprint(x.iter(), y.iter())).is_some();
        }
        self.check_call(&x, &y).is_ok()
    }

    /// As [`FnNode::is_set_up`]; where a shape of its inputs was set, if only to what it was, user code is asked again what it
    /// makes of them.
    pub(crate) fn is_set_up_now(&self) -> Result<bool> {
        if self.is_set_up() || self.function.on_variables().is_none() {
            return Ok(self.is_set_up());
        }
        let (inputs, outputs) = (self.inputs(), self.output_arrays());
        let shapes: SmallVec<[Shape; 2]> = inputs.iter().map(|x| x.shape()).collect();
        let setup = resolve(&self.function, &inputs, shapes).map_err(|e| self.explain(e))?;
        let is_same = outputs.iter().map(NdArray::shape).eq(setup.y.iter().cloned());
        if is_same {
            let mut links = self.links();
            links.setup = Some(setup);
            links.marked.clear();
        }
        Ok(is_same)
    }

    /// The input whose data becomes the output's: a leaf, since what is computed stays what it is.
    pub(crate) fn rewrites(&self) -> Option<usize> {
        let i = self.function.rewrites_input()?;
        self.links().inputs.get(i).is_some_and(|x| x.parent().is_none()).then_some(i)
    }

    /// An error if it [rewrites](FnNode::rewrites) an input that another function reads, whose gradient would read the new
    /// data. Several that write it in turn are no such case. `graph`: functions that run with it.
    pub(crate) fn check_rewrites(&self, graph: impl Iterator<Item = Arc<FnNode>>) -> Result<()> {
        let Some(i) = self.rewrites() else { return Ok(()) };
        let x = self.inputs()[i].clone();
        let storage = x.data().storage();
        let reads = |f: &FnNode| {
            let of = |(k, v): (usize, &VarRef)| Arc::ptr_eq(&v.data().storage(), &storage) && f.rewrites() != Some(k);
            f.id != self.id && f.inputs().iter().enumerate().any(of)
        };
        let consumers = x.lock().consumers.clone();
        let mut all = consumers.iter().filter_map(Weak::upgrade).chain(graph);
        let Some(reader) = all.find(|f| reads(f)) else { return Ok(()) };
        let name = self.function.input_name(i);
        let e = Error::graph(format!("it writes into '{name}', which {} reads too", reader.name()));
        Err(self.explain(e.hint(format!("give it a copy: F.identity({name}), whose data no other function reads"))))
    }

    /// Whether it writes input `i`.
    pub(crate) fn updates_input(&self, i: usize) -> bool {
        self.function.updates_input(i) || self.rewrites() == Some(i)
    }

    fn on_gpu(&self) -> OnGpu {
        self.function.def().on_gpu
    }

    /// Where the function's forward kernel runs: on the context's device, if there is one for it.
    pub(crate) fn kernel_place(&self) -> Place {
        let place = self.context.site().place;
        match place {
            Place::Gpu(_) if self.on_gpu() == OnGpu::Nothing => {
                cuda::runs_on_host(self.name());
                Place::Host
            }
            place => place,
        }
    }

    /// Where the function's backward kernel runs.
    pub(crate) fn backward_place(&self) -> Place {
        if self.on_gpu() == OnGpu::Both { self.context.site().place } else { Place::Host }
    }

    /// The type in which a kernel reads and writes floating-point data: on a GPU that of the data, which it converts itself.
    pub(crate) fn kernel_dtype(&self, place: Place) -> DType {
        if place == Place::Host { self.context.compute_dtype() } else { self.context.dtype() }
    }

    /// What the backward kernel of a call reads for the gradients `want`; `None` if there is none and the rule does it.
    pub(crate) fn needs(&self, setup: &Setup, want: &[bool]) -> Option<Needs> {
        if let Some(own) = self.function.on_variables() {
            return Some(own.needs(want));
        }
        let call = setup.kernels()?;
        match self.context.gpu() {
            Some(_) if self.on_gpu() == OnGpu::Forward => None,
            Some(_) if self.on_gpu() == OnGpu::Both => call.needs_on_gpu(self.context.compute_dtype(), want),
            _ => call.needs(want),
        }
    }

    /// Bytes that a call saves in place of inputs. Kernels on a GPU read the inputs instead.
    pub(crate) fn saves(&self, setup: &Setup) -> Option<usize> {
        match self.context.gpu() {
            Some(_) if self.on_gpu() != OnGpu::Nothing => None,
            _ => setup.kernels()?.saves(self.context.compute_dtype()),
        }
    }

    /// All inputs, those that are left out too.
    pub(crate) fn all_inputs(&self) -> SmallVec<[VarRef; 2]> {
        let links = self.links();
        links.all_inputs.as_ref().map_or_else(|| links.inputs.clone(), |all| all.iter().cloned().collect())
    }

    /// The variables that this node keeps alive, as often as it has them; `None` if another thread is at work on it.
    #[cfg(feature = "python")]
    pub(crate) fn owned_variables(&self) -> Option<Vec<VarRef>> {
        let links = self.links.try_lock().ok()?;
        Some(links.inputs.iter().chain(links.all_inputs.iter().flat_map(|all| all.iter())).cloned().collect())
    }

    /// Leaves the inputs out for which `mask` is false.
    pub(crate) fn set_active(self: &Arc<FnNode>, mask: &[bool]) {
        note_change();
        let all = self.all_inputs();
        let mut links = self.links();
        let picked = all.iter().zip(mask).filter(|(_, on)| **on).map(|(x, _)| x.clone()).collect();
        let old = std::mem::replace(&mut links.inputs, picked);
        links.all_inputs = mask.contains(&false).then(|| all.iter().cloned().collect());
        links.setup = None;
        drop(links);
        drop(old);
        self.outputs().iter().for_each(|y| y.changed());
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank.load(Relaxed) as usize
    }

    pub(crate) fn set_rank(&self, rank: usize) {
        self.rank.store(rank as u32, Relaxed);
    }

    /// The function's Python name.
    #[allow(clippy::misnamed_getters)]
    pub(crate) fn name(&self) -> &'static str {
        self.function.def().snake
    }

    /// The outputs; those that were dropped come back.
    pub(crate) fn outputs(self: &Arc<FnNode>) -> SmallVec<[VarRef; 1]> {
        let mut links = self.links();
        let Links { inputs, outputs, .. } = &mut *links;
        let revive = |(i, slot): (usize, &mut OutputSlot)| {
            slot.var.upgrade().unwrap_or_else(|| {
                let inherited = inputs.iter().any(|x| x.need_grad());
                let core = slot.kept.take().or_else(|| slot.core.upgrade());
                let v = VarNode::revived(slot.id, core, slot.data.clone());
                if slot.grad_elided {
                    v.set_grad_elided(true);
                }
                let mut s = v.lock();
                s.parent = Some((self.clone(), i as u32));
                s.inherited = inherited;
                drop(s);
                slot.var = Arc::downgrade(&v);
                v
            })
        };
        outputs.iter_mut().enumerate().map(revive).collect()
    }

    /// An output, if it is alive.
    pub(crate) fn living_output(&self, i: usize) -> Option<VarRef> {
        self.links().outputs.get(i)?.var.upgrade()
    }

    pub(crate) fn living_outputs(&self) -> SmallVec<[VarRef; 1]> {
        self.links().outputs.iter().filter_map(|slot| slot.var.upgrade()).collect()
    }

    pub(crate) fn output_dropped(&self, i: usize, core: &Arc<Core>) {
        let mut links = self.links();
        let Some(slot) = links.outputs.get_mut(i) else { return };
        let arrays = core.lock();
        slot.core = Arc::downgrade(core);
        slot.kept = arrays.has_gradient().then(|| core.clone());
        slot.grad_elided = arrays.has_lost_gradient();
        let old = std::mem::replace(&mut slot.data, NdArray::clone(&arrays.data));
        drop((arrays, links));
        drop(old);
    }

    /// The outputs' shapes must be asked for again, says input `x`.
    pub(crate) fn mark_stale(&self, x: u64) {
        let mut links = self.links();
        links.setup = None;
        if !links.marked.contains(&x) {
            links.marked.push(x);
        }
    }

    /// Sets it up again if input `x` has marked it; true if so. The marks of others stay.
    pub(crate) fn refresh_for(self: &Arc<FnNode>, x: u64) -> Result<bool> {
        let mut marked = self.links().marked.clone();
        if !marked.contains(&x) {
            return Ok(false);
        }
        self.refresh()?;
        marked.retain(|m| *m != x);
        if !marked.is_empty() {
            let mut links = self.links();
            (links.setup, links.marked) = (None, marked);
        }
        Ok(true)
    }

    /// What users take for this function.
    pub(crate) fn shown(self: Arc<FnNode>) -> Arc<FnNode> {
        let mut f = self;
        while f.mirror {
            let Some(parent) = f.inputs()[0].parent() else { break };
            f = parent;
        }
        f
    }

    /// Shapes the outputs anew if the inputs' shapes have changed; true if so.
    pub(crate) fn refresh(self: &Arc<FnNode>) -> Result<bool> {
        let (inputs, outputs) = (self.inputs(), self.outputs());
        let x: SmallVec<[Shape; 4]> = inputs.iter().map(|x| x.shape()).collect();
        let y: SmallVec<[Shape; 2]> = outputs.iter().map(|y| y.shape()).collect();
        Ok(self.refresh_from(&inputs, x.iter(), &outputs, y.iter())?.1)
    }

    /// As [`FnNode::refresh`], where inputs and outputs are known, and had these shapes at some time. Gives the function over
    /// them, and whether the outputs are shaped anew.
    pub(crate) fn refresh_from<'a>(
        &self,
        inputs: &[VarRef],
        x: impl Iterator<Item = &'a Shape> + Clone,
        outputs: &[VarRef],
        y: impl Iterator<Item = &'a Shape>,
    ) -> Result<(Arc<Setup>, bool)> {
        if let Some(setup) = self.setup_of(fingerprint(x.clone(), y)) {
            return Ok((setup, false));
        }
        let shapes: SmallVec<[Shape; 2]> = x.cloned().collect();
        let setup = resolve(&self.function, inputs, shapes).map_err(|e| self.explain(e))?;
        let out = &setup.y;
        if out.len() != outputs.len() {
            let expected = format!("as many outputs as when the function was made: {}", outputs.len());
            return Err(self.explain(Error::shape("n_outputs", expected).actual(out.len()).function(self.name())));
        }
        for (v, shape) in outputs.iter().zip(out) {
            let v = Variable::handle(v.clone());
            if v.shape() != *shape {
                v.reset_shape(shape.clone(), true)?;
            }
        }
        let mut links = self.links();
        links.setup = Some(setup.clone());
        links.marked.clear();
        Ok((setup, true))
    }

    /// The function over the shapes that it was set up for, if their number is this one.
    fn setup_of(&self, number: u64) -> Option<Arc<Setup>> {
        self.links().setup.as_ref().filter(|s| s.number == number).cloned()
    }

    /// The function over the shapes that its inputs have now.
    pub(crate) fn setup(&self) -> Result<Arc<Setup>> {
        self.setup_for(self.inputs().iter().map(|x| x.shape()).collect())
    }

    /// The function over inputs of the shapes `x`.
    pub(crate) fn setup_for(&self, x: SmallVec<[Shape; 2]>) -> Result<Arc<Setup>> {
        let current = self.links().setup.as_ref().filter(|s| s.x == x).cloned();
        match current {
            Some(setup) => Ok(setup),
            None if self.function.on_variables().is_some() => {
                Ok(Arc::new(Setup::new(0, x, Resolved::without_call(Shapes::new()))))
            }
            None => resolve_shapes(&self.function, x).map(Arc::new),
        }
    }

    /// The function over inputs of the shapes `x`; an error if it does not make outputs of the shapes `y` of them.
    pub(crate) fn check_call(&self, x: &[Shape], y: &[Shape]) -> Result<Arc<Setup>> {
        let number = fingerprint(x.iter(), y.iter());
        if let Some(setup) = self.setup_of(number) {
            return Ok(setup);
        }
        if self.function.on_variables().is_some() {
            return Ok(Arc::new(Setup::new(number, x.into(), Resolved::without_call(y.into()))));
        }
        let setup = resolve_shapes(&self.function, x.into())?;
        if setup.y[..] == *y {
            return Ok(Arc::new(setup));
        }
        let list = |shapes: &[Shape]| shapes.iter().map(Shape::to_string).collect::<Vec<_>>().join(", ");
        let (made, given) = (list(&setup.y), list(y));
        Err(shape_changed(format!("the function makes {made} of its inputs, and the outputs are {given}")))
    }

    /// True if a call reads nothing and makes nothing. No kernel is asked.
    pub(crate) fn is_idle(&self, setup: &Setup) -> bool {
        setup.is_empty() && !self.function.has_state()
    }

    /// Completes an error with the function, its inputs and the line that made the node.
    pub(crate) fn explain(&self, e: Error) -> Error {
        explain(e, &*self.function, &self.inputs(), self.origin.as_deref())
    }

    /// Reads `new` wherever it read `old`.
    pub(crate) fn replace_input(self: &Arc<FnNode>, old: &VarRef, new: &VarRef) {
        note_change();
        self.links().inputs.iter_mut().filter(|x| Arc::ptr_eq(x, old)).for_each(|x| *x = new.clone());
        old.lock().consumers.retain(|c| !std::ptr::eq(c.as_ptr(), Arc::as_ptr(self)));
        old.changed();
        register(new, self);
    }

    /// The variable is not this function's output any more, which gets an array of its own if it runs again.
    pub(crate) fn lose_output(&self, i: usize, v: &VarRef) {
        note_change();
        let mut links = self.links();
        let slot = &mut links.outputs[i];
        if std::ptr::eq(slot.var.as_ptr(), Arc::as_ptr(v)) {
            *slot = OutputSlot {
                id: next_id(),
                var: Weak::new(),
                data: NdArray::of_engine(v.shape()),
                core: Weak::new(),
                kept: None,
                grad_elided: false,
            };
        }
    }

    /// Moves output `i` to another variable.
    pub(crate) fn replace_output(&self, i: usize, new: &VarRef) {
        note_change();
        let mut links = self.links();
        links.outputs[i] = OutputSlot::new(new);
    }
}

/// Who makes the outputs of `f` again.
pub(crate) fn maker(f: &Arc<FnNode>) -> Weak<dyn Maker> {
    let f: Weak<FnNode> = Arc::downgrade(f);
    f
}

impl Drop for FnNode {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Relaxed);
    }
}

/// A number for the shapes of a call, never 0.
fn fingerprint<'a>(inputs: impl Iterator<Item = &'a Shape>, outputs: impl Iterator<Item = &'a Shape>) -> u64 {
    use std::hash::Hasher;
    let mut h = nnrs_kernels::expr::ssa::Mix::default();
    for shape in inputs.chain(outputs) {
        h.write_usize(shape.ndim());
        shape.iter().for_each(|&n| h.write_usize(n));
    }
    h.finish() | 1
}

pub(crate) fn explain(e: Error, f: &dyn Function, inputs: &[VarRef], origin: Option<&str>) -> Error {
    describe_inputs(e, f.def(), &|i| f.input_name(i), inputs, origin)
}

/// As [`explain`], before the function is made: `e` with the function, the inputs by their names, and the script line.
pub(crate) fn describe_inputs(
    e: Error,
    def: &Def,
    name: &dyn Fn(usize) -> &'static str,
    inputs: &[VarRef],
    origin: Option<&str>,
) -> Error {
    let describe = |(i, x): (usize, &VarRef)| {
        let data = x.data();
        let index = if def.input(i).kind == InputKind::Variadic { format!("[{i}]") } else { String::new() };
        format!("{}{index} {} {}", name(i), data.shape(), data.dtype())
    };
    let shown: Vec<String> = inputs.iter().enumerate().take(8).map(describe).collect();
    let e = e.function(def.snake);
    let e = if shown.is_empty() { e } else { e.inputs(shown.join(", ")) };
    match origin {
        Some(o) => e.origin(o),
        None => e,
    }
}

/// Applies a function to variables: makes the node, shapes the outputs, and computes them if auto_forward is on.
///
/// # Errors
/// Inputs that the function does not take; what the function says where it computes at once.
///
/// ```
/// use nnrs::{functions as f, graph, Variable};
/// let x = Variable::from_slice(&[-1.0f32, 1.0], [2].into())?;
/// let y = graph::apply(std::sync::Arc::new(f::LeakyReLU { alpha: 0.5, inplace: false }), &[&x], None)?.swap_remove(0);
/// y.forward()?;
/// assert_eq!(y.to_vec::<f32>()?, [-0.5, 1.0]);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn apply(function: Arc<dyn Function>, inputs: &[&Variable], origin: Option<Arc<str>>) -> Result<Vec<Variable>> {
    apply_into(function, inputs, None, origin)
}

/// As [`apply`], with arrays for the outputs' data.
///
/// # Errors
/// As [`apply`]; another number of arrays than the function has outputs, or other shapes.
///
/// ```
/// use nnrs::{functions as f, graph, NdArray, Variable};
/// let (x, into) = (Variable::from_slice(&[0.0f32], [1].into())?, NdArray::new([1].into()));
/// let y = graph::apply_into(std::sync::Arc::new(f::Exp {}), &[&x], Some(vec![into.clone()]), None)?;
/// y[0].forward()?;
/// assert_eq!(into.to_vec::<f32>()?, [1.0]);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn apply_into(
    function: Arc<dyn Function>,
    inputs: &[&Variable],
    into: Option<Vec<NdArray>>,
    origin: Option<Arc<str>>,
) -> Result<Vec<Variable>> {
    let origin = origin.or_else(mode::origin);
    let inputs: SmallVec<[VarRef; 2]> = inputs.iter().map(|v| v.node().clone()).collect();
    let fail = |e: Error| explain(e, &*function, &inputs, origin.as_deref());
    function.def().check_inputs(inputs.len()).map_err(fail)?;
    let shapes: SmallVec<[Shape; 2]> = inputs.iter().map(|x| x.shape()).collect();
    let setup = resolve(&function, &inputs, shapes).map_err(fail)?;
    let into = into.map(|list| with_hidden(list, &setup.y, function.hidden_outputs()));
    let data = output_arrays(&setup.y, into).map_err(fail)?;
    let node = link(function, inputs, origin);
    let outputs = make_outputs(&node, data);
    node.links().setup = Some(setup.clone());
    if mode::auto_forward() {
        plan::run_single(&node, &outputs, &setup)?;
        if mode::no_grad() || (mode::forgets() && !outputs[0].need_grad()) {
            outputs.iter().for_each(forget);
        }
    }
    Ok(outputs.into_iter().map(Variable::handle).collect())
}

/// Arrays for all outputs, where those for the ones that a caller sees are given.
fn with_hidden(mut into: Vec<NdArray>, y: &[Shape], hidden: usize) -> Vec<NdArray> {
    let n = into.len();
    if n + hidden == y.len() {
        into.extend(y[n..].iter().map(|s| NdArray::of_engine(s.clone())));
    }
    into
}

/// Cuts the history of a variable that is computed and needs no gradient.
fn forget(v: &VarRef) {
    let mut s = v.lock();
    s.at_once = true;
    let parent = s.parent.take();
    drop(s);
    drop(parent);
}

/// A function over inputs of these shapes; one that works on variables looks at the inputs themselves.
pub(crate) fn resolve(f: &Arc<dyn Function>, inputs: &[VarRef], shapes: SmallVec<[Shape; 2]>) -> Result<Arc<Setup>> {
    let Some(own) = f.on_variables() else { return resolve_shapes(f, shapes).map(Arc::new) };
    shapes.iter().try_for_each(Shape::check)?;
    let arrays: SmallVec<[NdArray; 4]> = inputs.iter().map(|v| v.data()).collect();
    let x = plan::stand_ins(&arrays);
    x.iter().zip(inputs).for_each(|(x, v)| x.set_need_grad(v.need_grad()));
    let out = own.setup(&x);
    let before: SmallVec<[(&NdArray, Shape); 4]> = arrays.iter().zip(shapes.iter().cloned()).collect();
    plan::settle(&before, arrays.iter().cloned())?;
    numbered(shapes, Resolved::without_call(out?), "setup").map(Arc::new)
}

fn resolve_shapes(f: &Arc<dyn Function>, x: SmallVec<[Shape; 2]>) -> Result<Setup> {
    x.iter().try_for_each(Shape::check)?;
    let resolved = f.resolve(&x).and_then(|resolved| numbered(x, resolved, "resolve"));
    resolved.map_err(|e| {
        let arguments = f.arguments();
        e.too_large_by(arguments.iter().map(|a| a.0).find(|name| SIZE_ARGUMENTS.contains(name)))
    })
}

/// Arguments that say how large a result is.
const SIZE_ARGUMENTS: [&str; 4] = ["shape", "reps", "pad_width", "num"];

/// `by`: the method of which this is the result.
fn numbered(x: SmallVec<[Shape; 2]>, mut resolved: Resolved, by: &str) -> Result<Setup> {
    if resolved.shapes.is_empty() {
        return Err(Error::graph(format!("`{by}` gave no shapes: a function has at least one output")));
    }
    resolved.shapes = resolved.shapes.into_iter().map(Shape::checked).collect::<Result<_>>()?;
    Ok(Setup::new(fingerprint(x.iter(), resolved.shapes.iter()), x, resolved))
}

fn output_arrays(shapes: &Shapes, into: Option<Vec<NdArray>>) -> Result<SmallVec<[NdArray; 1]>> {
    let Some(into) = into else {
        let array = |(i, s): (usize, &Shape)| plan::ask(i).map(|()| NdArray::of_engine(s.clone()));
        return shapes.iter().enumerate().map(array).collect();
    };
    if into.len() != shapes.len() {
        return Err(Error::arg(
            "outputs",
            format!("{} {}", shapes.len(), if shapes.len() == 1 { "array" } else { "arrays" }),
        )
        .actual(into.len()));
    }
    for (a, s) in into.iter().zip(shapes) {
        if a.shape() != *s {
            return Err(Error::shape("outputs", format!("shape {s}")).actual(a.shape()));
        }
    }
    Ok(into.into_iter().collect())
}

/// The function behind a variable that is to be a copy of `y`.
pub(crate) fn mirror(y: &VarRef, copy: &VarRef) -> Arc<FnNode> {
    note_change();
    let like = y.parent();
    let context = like.as_ref().map_or_else(mode::context, |f| f.context.clone());
    let origin = like.and_then(|f| f.origin.clone());
    let node = unlinked(Arc::new(Identity {}), smallvec![y.clone()], context, origin, true);
    node.links().outputs.push(OutputSlot::new(copy));
    register(y, &node);
    node
}

fn link(function: Arc<dyn Function>, inputs: SmallVec<[VarRef; 2]>, origin: Option<Arc<str>>) -> Arc<FnNode> {
    let node = unlinked(function, inputs, mode::context(), origin, false);
    if !(mode::auto_forward() && mode::no_grad()) {
        let inputs = node.inputs();
        inputs.iter().for_each(|x| register(x, &node));
    }
    node
}

/// A node that its inputs know nothing of yet.
fn unlinked(
    function: Arc<dyn Function>,
    inputs: SmallVec<[VarRef; 2]>,
    context: Arc<Context>,
    origin: Option<Arc<str>>,
    mirror: bool,
) -> Arc<FnNode> {
    LIVE.fetch_add(1, Relaxed);
    let rank = inputs.iter().map(|x| x.parent().map_or(0, |p| p.rank() + 1)).max().unwrap_or(0);
    let user_code = function.on_variables().is_some() || inputs.iter().any(|x| x.has_user_code());
    Arc::new(FnNode {
        id: next_id(),
        user_code: AtomicBool::new(user_code),
        no_grad: mode::no_grad(),
        mirror,
        function,
        context,
        saved: Default::default(),
        turn: Running::default(),
        origin,
        rank: AtomicU32::new(rank as u32),
        tags: Mutex::default(),
        links: Mutex::new(Links {
            inputs,
            all_inputs: None,
            outputs: SmallVec::new(),
            setup: None,
            marked: Vec::new(),
        }),
        plan: Mutex::default(),
        sum: AtomicU64::new(0),
        is_remade: AtomicBool::new(false),
    })
}

/// Notes a consumer; the list sheds dead ones as it grows.
fn register(x: &VarRef, node: &Arc<FnNode>) {
    let mut s = x.lock();
    if s.consumers.len() >= 16 && s.consumers.len().is_power_of_two() {
        s.consumers.retain(|c| c.strong_count() > 0);
    }
    s.consumers.push(Arc::downgrade(node));
    let has_parent = s.parent.is_some();
    drop(s);
    if has_parent {
        x.changed();
    }
}

fn make_outputs(node: &Arc<FnNode>, data: SmallVec<[NdArray; 1]>) -> SmallVec<[VarRef; 1]> {
    let mut links = node.links();
    // A static graph made under no_grad keeps its flags, as in NNabla: only parameters lose theirs.
    let no_grad = mode::no_grad() && mode::auto_forward();
    let inherited = !no_grad && links.inputs.iter().any(|x| x.need_grad());
    let recompute = mode::recompute();
    let outputs: SmallVec<[VarRef; 1]> = data
        .into_iter()
        .enumerate()
        .map(|(i, data)| {
            drop(data.storage().swap_absent(Absent::Made(maker(node))));
            let v = VarNode::new(data, no_grad.then_some(false));
            let mut s = v.lock();
            s.parent = Some((node.clone(), i as u32));
            s.inherited = inherited;
            s.recompute = recompute;
            drop(s);
            v.sheds.store(recompute && mode::auto_forward(), Relaxed);
            v
        })
        .collect();
    links.outputs = outputs.iter().map(OutputSlot::new).collect();
    outputs
}
