//! What a run will need in memory, before it runs: the plans' steps played through with sizes alone.

use super::backward::{self, GradientTarget, GradientWrite};
use super::build::{self, ForwardPlan, PlanNode, PlanSlot};
use super::exec::fusion;
use super::order::{self, address};
use super::program::Input;
use super::{BackwardPlan, ForwardOptions};
use crate::function::{InputKind, Needs, Output};
use crate::graph::Variable;
use nnrs_kernels::array::{NdArray, Place, alloc::rounded};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Result;
use nnrs_kernels::expr::ssa::MixMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// Memory of a forward and backward run.
///
/// ```
/// use nnrs::{functions as f, graph::memory_plan, ForwardOptions, Variable};
/// let report = memory_plan(&f::sin(&Variable::new([1000]))?, ForwardOptions::default(), false)?;
/// assert!(report.largest.iter().all(|(bytes, what)| *bytes <= report.peak && !what.is_empty()));
/// # Ok::<(), nnrs::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    /// Most bytes that arrays of the graph take at once, leaves included.
    pub peak: usize,
    /// Bytes of the leaves' data and gradients.
    pub leaves: usize,
    /// The largest buffers: bytes, what it is.
    pub largest: Vec<(usize, String)>,
}

/// Buffers listed in a report.
const LISTED: usize = 10;

/// A forward and a backward plan that no variable knows of.
pub(crate) struct Plans {
    pub(crate) forward: Arc<ForwardPlan>,
    pub(crate) backward: Option<BackwardPlan>,
}

impl Plans {
    /// Plans a step of `y`; `None` if no function made it.
    pub(crate) fn new(y: &Variable, options: ForwardOptions, clear_buffer: bool) -> Result<Option<Plans>> {
        if !y.has_parent() {
            return Ok(None);
        }
        let root = y.node();
        let forward = Arc::new(ForwardPlan::new(std::slice::from_ref(root), build::key(options, false))?);
        let key = backward::BackwardKey { clear_buffer, hooked: false, fused: fusion() };
        let order = || order::collect(std::slice::from_ref(root));
        let plan = || BackwardPlan::new(order(), root, key, Some(forward.clone()));
        let backward = y.need_grad_state().then(plan).transpose()?;
        Ok(Some(Plans { forward, backward }))
    }

    fn play(&self) -> Play {
        let mut play = Play::default();
        if let Some(b) = &self.backward {
            play.gradients_there(b);
        }
        play.forward(&self.forward);
        if let Some(b) = &self.backward {
            play.backward(b);
        }
        play
    }

    /// Planned bytes at most, leaves included.
    pub(crate) fn peak(&self) -> usize {
        self.play().peak
    }
}

/// Plans forward and backward of `y` and adds up their buffers step by step.
///
/// # Errors
/// A function behind `y` does not take the shapes that its inputs have now, or refuses a gradient that is asked for.
///
/// ```
/// use nnrs::{functions as f, graph::memory_plan, ForwardOptions, Variable};
/// let x = Variable::new([1000]).with_need_grad(true);
/// let report = memory_plan(&f::sin(&x)?, ForwardOptions::default(), false)?;
/// assert!(report.leaves >= 8000 && report.peak >= report.leaves); // data and gradient of x, at least
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn plan(y: &Variable, options: ForwardOptions, clear_buffer: bool) -> Result<Report> {
    let play = match Plans::new(y, options, clear_buffer)? {
        Some(plans) => plans.play(),
        None => {
            let mut play = Play::default();
            play.take(y.size() * 4, || format!("variable {}", y.shape()));
            play
        }
    };
    Ok(play.report())
}

/// A buffer: bytes, and how many slots share it.
struct Buffer {
    bytes: usize,
    owners: usize,
    name: String,
}

#[derive(Default)]
struct Play {
    buffers: Vec<Buffer>,
    data: Vec<Option<usize>>,
    grads: Vec<Option<usize>>,
    /// Element types of leaves and their views; others have those of their functions.
    types: Vec<Option<DType>>,
    /// What functions saved, by their ids.
    saved: MixMap<u64, usize>,
    /// Storages that several slots have, and the buffer of each.
    shared: MixMap<usize, Option<usize>>,
    live: usize,
    peak: usize,
    leaves: usize,
}

/// Bytes of a function's indices as whole numbers.
fn indices(node: &PlanNode, slots: &[PlanSlot]) -> usize {
    let def = node.f.function.def();
    let of = |(i, &v): (usize, &u32)| match def.input(i).kind {
        InputKind::Index => rounded(slots[v as usize].shape.size() * 8),
        _ => 0,
    };
    node.x.iter().enumerate().map(of).sum()
}

/// Bytes of the large buffers that a function works in on the host, forward and backward.
fn scratch(node: &PlanNode, slots: &[PlanSlot]) -> [usize; 2] {
    match (node.f.context.site().place, node.setup.kernels()) {
        (Place::Host, Some(call)) if !node.f.is_idle(&node.setup) => {
            call.scratch(node.f.context.compute_dtype()).map(|n| n + indices(node, slots))
        }
        _ => [0; 2],
    }
}

impl Play {
    fn take(&mut self, bytes: usize, name: impl FnOnce() -> String) -> usize {
        let bytes = rounded(bytes);
        self.live += bytes;
        self.peak = self.peak.max(self.live);
        self.buffers.push(Buffer { bytes, owners: 1, name: name() });
        self.buffers.len() - 1
    }

    /// The buffer of an array, which another slot with the same elements may have already.
    fn place(&mut self, array: &NdArray, bytes: usize, name: impl FnOnce() -> String) -> usize {
        let at = address(array);
        let there = self.shared.get(&at).copied().flatten();
        if let Some(b) = there.filter(|b| self.buffers[*b].owners > 0) {
            self.buffers[b].owners += 1;
            return b;
        }
        let b = self.take(bytes, name);
        self.shared.entry(at).and_modify(|there| *there = Some(b));
        b
    }

    /// Notes which of the slots' arrays have their elements together.
    fn find_shared<'a>(&mut self, arrays: impl Iterator<Item = &'a NdArray>) {
        let mut seen = MixMap::default();
        self.shared.extend(arrays.map(address).filter(|at| seen.insert(*at, ()).is_some()).map(|at| (at, None)));
    }

    fn give(&mut self, buffer: Option<usize>) {
        let Some(b) = buffer.map(|i| &mut self.buffers[i]) else { return };
        b.owners -= 1;
        if b.owners == 0 {
            self.live -= b.bytes;
        }
    }

    /// A buffer that is gone at the end of the step.
    fn passing(&mut self, bytes: usize, name: impl FnOnce() -> String) {
        let b = self.take(bytes, name);
        self.give(Some(b));
    }

    /// A buffer that no other slot has.
    fn is_alone(&self, buffer: Option<usize>) -> bool {
        buffer.is_some_and(|b| self.buffers[b].owners == 1)
    }

    fn buffer_mut(&mut self, i: Input) -> &mut Option<usize> {
        match i {
            Input::Data(v) => &mut self.data[v as usize],
            Input::Grad(v) => &mut self.grads[v as usize],
        }
    }

    fn leaf(&mut self, array: &NdArray, bytes: usize, name: String) -> Option<usize> {
        let before = self.live;
        let b = self.place(array, bytes, || name);
        self.leaves += self.live - before;
        Some(b)
    }

    fn forward(&mut self, plan: &ForwardPlan) {
        self.data = vec![None; plan.slots.len()];
        self.types = plan.slots.iter().map(|s| s.maker.is_none().then(|| s.data.dtype())).collect();
        self.find_shared(plan.slots.iter().map(|s| &s.data));
        for v in &plan.leaves {
            let slot = &plan.slots[*v as usize];
            let bytes = slot.data.storage().bytes().max(slot.shape.size() * slot.data.dtype().size());
            self.data[*v as usize] = self.leaf(&slot.data, bytes, format!("leaf {}", slot.shape));
        }
        plan.steps.iter().for_each(|step| self.forward_step(step, &plan.nodes, &plan.slots));
    }

    fn forward_step(&mut self, step: &build::ForwardStep, nodes: &[PlanNode], slots: &[PlanSlot]) {
        let node = &nodes[step.what.node() as usize];
        let (dtype, name) = (node.f.context.dtype(), node.f.name());
        match &step.what {
            _ if step.is_later => {}
            what if let Some(finished) = &step.finishes => {
                what.makes(&node.y).iter().for_each(|&y| self.output(&slots[y as usize], y, dtype, name));
                self.call(&nodes[finished.node as usize], slots);
            }
            build::ForwardAction::View(_) => {
                self.share(node.x[0], node.y[0]);
                self.types[node.y[0] as usize] = self.types[node.x[0] as usize];
            }
            build::ForwardAction::Viewed(_) => {}
            build::ForwardAction::Tile(t) => {
                for &sink in &t.sinks {
                    match t.steal.iter().find(|(s, from)| *s == sink && self.is_alone(self.data[*from as usize])) {
                        Some(&(_, from)) => self.data[sink as usize] = self.data[from as usize].take(),
                        None => self.output(&slots[sink as usize], sink, dtype, name),
                    }
                }
            }
            build::ForwardAction::Call(_) => {
                node.y.iter().for_each(|&y| self.output(&slots[y as usize], y, dtype, name));
                self.call(node, slots);
            }
        }
        self.drop_data(&step.free);
    }

    /// What a call works in, and saves.
    fn call(&mut self, node: &PlanNode, slots: &[PlanSlot]) {
        let converted = self.converted(node, slots, Needs::ALL, false);
        let [forward, _] = scratch(node, slots);
        if forward > 0 {
            self.passing(forward, || format!("scratch memory of {}", node.f.name()));
        }
        self.save(node);
        self.give(converted);
    }

    fn drop_data(&mut self, slots: &[u32]) {
        for &v in slots {
            let b = self.data[v as usize].take();
            self.give(b);
        }
    }

    fn output(&mut self, slot: &PlanSlot, v: u32, dtype: DType, name: &str) {
        let shape = &slot.shape;
        let b = self.place(&slot.data, shape.size() * dtype.size(), || format!("output of {name} {shape}"));
        let old = self.data[v as usize].replace(b);
        self.give(old);
    }

    fn share(&mut self, x: u32, y: u32) {
        let b = self.data[x as usize];
        if let Some(i) = b {
            self.buffers[i].owners += 1;
        }
        let old = std::mem::replace(&mut self.data[y as usize], b);
        self.give(old);
    }

    /// What a function saves for its backward pass.
    fn save(&mut self, node: &PlanNode) {
        if let Some(bytes) = node.f.saves(&node.setup).filter(|_| node.keep) {
            let saved = self.take(bytes, || format!("what {} saves of {}", node.f.name(), node.setup.x[0]));
            let old = self.saved.insert(node.f.id, saved);
            self.give(old);
        }
    }

    /// Copies of a function's arrays in the type that its kernels compute in: of leaves and their views, which have types of
    /// their own, and of all that is stored as half. `needs`: what is read.
    fn converted(&mut self, node: &PlanNode, slots: &[PlanSlot], needs: Needs, is_backward: bool) -> Option<usize> {
        let (stored, compute) = (node.f.context.dtype(), node.f.kernel_dtype(node.f.context.site().place));
        let bytes = |v: &u32| rounded(slots[*v as usize].shape.size() * compute.size());
        let is_copied = |(i, v): &(usize, &u32)| {
            let is_index = node.f.function.def().input(*i).kind == InputKind::Index;
            needs.input(*i) && !is_index && self.types[**v as usize].unwrap_or(stored) != compute
        };
        let read = node.x.iter().enumerate().filter(is_copied).map(|(_, v)| bytes(v));
        // What the kernel makes, or the gradients that arrive; and in backward what it reads of what was made.
        let made = node.y.iter().enumerate().filter(|_| stored != compute);
        let made = made.map(|(i, v)| bytes(v) * (1 + (is_backward && needs.output(i)) as usize));
        let bytes = read.chain(made).sum();
        (bytes > 0).then(|| self.take(bytes, || "values in the type to compute in".into()))
    }

    /// Gradients that have memory before the run: of leaves, to which it adds, and those that stay from run to run.
    fn gradients_there(&mut self, plan: &BackwardPlan) {
        self.grads = vec![None; plan.slots.len()];
        self.find_shared(plan.grads.iter());
        for t in plan.steps.iter().flat_map(|step| step.what.targets()) {
            let v = t.slot as usize;
            let (array, name) = (&plan.grads[v], || format!("gradient {}", plan.slots[v].shape));
            match array.storage().bytes() {
                bytes if bytes == 0 || self.grads[v].is_some() => {}
                bytes if t.how == GradientWrite::Leaf => self.grads[v] = self.leaf(array, bytes, name()),
                bytes => self.grads[v] = Some(self.place(array, bytes, name)),
            }
        }
    }

    fn backward(&mut self, plan: &BackwardPlan) {
        let old = std::mem::take(&mut self.data);
        self.data = plan.forward_slots.iter().map(|s| s.and_then(|i| old[i as usize])).collect();
        let old = std::mem::take(&mut self.types);
        self.types = plan.forward_slots.iter().map(|s| s.and_then(|i| old[i as usize])).collect();
        let mut seed = None; // which lives to the end of the run, if it is not to be cleared
        for step in &plan.steps {
            step.again.iter().for_each(|a| self.forward_step(a, &plan.nodes, &plan.slots));
            let node = &plan.nodes[step.what.node() as usize];
            let dtype = node.f.context.dtype();
            match &step.what {
                backward::BackwardAction::View(n, t) => {
                    let hands_on = plan.hands_on(*n, step);
                    if !(hands_on && self.hand_on(plan, node.y[0], t)) {
                        self.gradient(plan, t, dtype);
                    }
                }
                backward::BackwardAction::Tile(t) => {
                    let mut ending: Vec<Input> = t.ending(plan, step).collect();
                    let is_apart = |to: &GradientTarget| plan.is_apart(t, to);
                    let bytes = t.shape.size() * dtype.size().max(4);
                    let name = || format!("gradient before summing {}", t.shape);
                    let apart: Vec<usize> =
                        t.targets.iter().filter(|to| is_apart(to)).map(|_| self.take(bytes, name)).collect();
                    for target in &t.targets {
                        let fits = |i: &Input| {
                            self.is_alone(match *i {
                                Input::Data(v) => self.data[v as usize],
                                Input::Grad(v) => self.grads[v as usize],
                            })
                        };
                        let is_free = self.grads[target.slot as usize].is_none() && self.writes(plan, target);
                        let from = ending.iter().position(fits).filter(|_| is_free && !is_apart(target));
                        match from.map(|i| ending.remove(i)) {
                            Some(i) => self.grads[target.slot as usize] = self.buffer_mut(i).take(),
                            None => self.gradient(plan, target, dtype),
                        }
                        if is_apart(target) {
                            let n = plan.slots[target.slot as usize].shape.size();
                            self.passing(n * dtype.size().max(4), name);
                        }
                    }
                    apart.into_iter().for_each(|b| self.give(Some(b)));
                }
                backward::BackwardAction::Call(c) => {
                    if node.y.contains(&plan.root) {
                        let shape = plan.grad_shape(plan.root);
                        seed = Some(self.take(shape.size() * dtype.size(), || format!("gradient of the root {shape}")));
                    }
                    if let Some((i, from)) = c.over {
                        self.take_over(node.x[i], node.y[from]);
                    }
                    if c.needs.is_none() {
                        self.hand_on_by_rule(plan, node, c);
                    }
                    let wants: SmallVec<[bool; 4]> = c.targets.iter().map(Option::is_some).collect();
                    let twice = c.targets.iter().flatten().filter(|t| t.twice);
                    let apart: usize = twice.map(|t| plan.grad_shape(t.slot).size()).sum();
                    let elements = apart + node.setup.kernels().map_or(0, |call| call.backward_scratch(&wants));
                    let [_, backward] = scratch(node, &plan.slots);
                    let compute = node.f.kernel_dtype(node.f.context.site().place);
                    let gradients = |play: &mut Play| {
                        c.targets.iter().flatten().for_each(|t| play.gradient(plan, t, dtype));
                    };
                    // Of another type than they are stored in: they are stored when all are made, from the inputs' copies no more.
                    let once = c.targets.iter().flatten().filter(|t| !t.twice && dtype != compute);
                    let made: usize = once.map(|t| plan.grad_shape(t.slot).size() * compute.size()).sum();
                    if made == 0 {
                        gradients(self);
                    }
                    let converted = self.converted(node, &plan.slots, c.needs.unwrap_or(Needs::ALL), true);
                    self.passing(elements * dtype.size().max(4) + backward + made, || {
                        format!("scratch memory of {}", node.f.name())
                    });
                    self.give(converted);
                    if made > 0 {
                        let made = self.take(made, || format!("scratch memory of {}", node.f.name()));
                        gradients(self);
                        self.give(Some(made));
                    }
                }
            }
            self.give(seed.take_if(|_| plan.key.clear_buffer));
            for &v in &step.free_grads {
                let b = self.grads[v as usize].take();
                self.give(b);
            }
            self.drop_data(&step.forget);
            self.drop_data(&step.free_data);
            let saved = self.saved.remove(&node.f.id).filter(|_| plan.key.clear_buffer);
            self.give(saved);
        }
    }

    /// The gradient `x` begins in the memory of the gradient `y`.
    fn take_over(&mut self, x: u32, y: u32) {
        if self.is_alone(self.grads[y as usize]) && self.grads[x as usize].is_none() {
            self.grads[x as usize] = self.grads[y as usize].take();
        }
    }

    /// The gradient is written, not added to one that is there.
    fn writes(&self, plan: &BackwardPlan, t: &GradientTarget) -> bool {
        let is_made = t.how == GradientWrite::Leaf && self.grads[t.slot as usize].is_some();
        !is_made && plan.output(t) == Output::Write
    }

    /// A gradient that is written becomes the memory of the gradient `y`, if that is there.
    fn hand_on(&mut self, plan: &BackwardPlan, y: u32, t: &GradientTarget) -> bool {
        let Some(b) = self.grads[y as usize].filter(|_| self.writes(plan, t)) else { return false };
        self.buffers[b].owners += 1;
        let old = self.grads[t.slot as usize].replace(b);
        self.give(old);
        true
    }

    /// What a function's rule hands on as it is.
    fn hand_on_by_rule(&mut self, plan: &BackwardPlan, node: &PlanNode, c: &backward::BackwardCall) {
        let Some(call) = node.setup.kernels() else { return };
        for (i, t) in c.targets.iter().enumerate() {
            if let (Some(t), Some(from)) = (t, call.grad_over(i)) {
                self.hand_on(plan, node.y[from], t);
            }
        }
    }

    fn gradient(&mut self, plan: &BackwardPlan, t: &GradientTarget, dtype: DType) {
        let shape = plan.grad_shape(t.slot);
        let bytes = shape.size() * dtype.size();
        if let Some(b) = self.grads[t.slot as usize] {
            if t.how == GradientWrite::Leaf && self.buffers[b].bytes != rounded(bytes) {
                let converted = self.take(bytes, || format!("gradient {shape}"));
                let old = self.grads[t.slot as usize].replace(converted);
                self.give(old);
            }
            return;
        }
        let name = format!("gradient {shape}");
        let array = &plan.grads[t.slot as usize];
        self.grads[t.slot as usize] = match t.how {
            GradientWrite::Leaf => self.leaf(array, bytes, name),
            _ => Some(self.place(array, bytes, || name)),
        };
    }

    fn report(mut self) -> Report {
        self.buffers.sort_by_key(|b| std::cmp::Reverse(b.bytes));
        let largest = self.buffers.into_iter().take(LISTED).map(|b| (b.bytes, b.name)).collect();
        Report { peak: self.peak, leaves: self.leaves, largest }
    }
}
