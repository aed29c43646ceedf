//! Backward plans: from the highest rank down, one step a unit; gradients of a variable add up in that order.

use super::again;
use super::build::{self, Forward, PlanNode, Slot};
use super::exec::{Hooks, Interrupt, Turn, fusion, read_input};
use super::group::{self, Unit};
use super::order::{Graph, collect};
use super::program::{AnyProgram, Input, UnitBackward};
use super::{KEPT, Watch};
use crate::array::{Data, NdArray, alloc};
use crate::cpu::reduce;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::function::expr::tile::{Sink, Source, Walk};
use crate::function::{Grad, GradMut, Needs, Output, Run, View};
use crate::graph::mode;
use crate::graph::node::FnNode;
use crate::graph::variable::{VarRef, Variable};
use crate::shape::Shape;
use crate::with_real;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, Weak};

/// What a plan was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) clear_buffer: bool,
    pub(crate) hooked: bool,
    pub(crate) fused: bool,
}

/// A compiled backward run.
pub(crate) struct Backward {
    pub(crate) key: Key,
    pub(super) watch: Watch,
    /// The forward run whose data is read; not owned: it may belong to a variable further on.
    forward: Option<(u64, Weak<Forward>)>,
    pub(crate) nodes: Vec<PlanNode>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) grads: Vec<NdArray>,
    pub(crate) steps: Vec<Step>,
    root: u32,
    pub(super) vars: Vec<Option<VarRef>>,
}

pub(crate) struct Step {
    pub(crate) what: What,
    /// Slots whose gradient ends here.
    pub(crate) free_grads: SmallVec<[u32; 2]>,
    /// Slots whose data ends here.
    pub(crate) free_data: SmallVec<[u32; 2]>,
    /// Slots whose data is read.
    pub(crate) reads: SmallVec<[u32; 4]>,
    /// What is computed again before it, and the slots made so whose data ends with it.
    pub(crate) again: Vec<build::Step>,
    pub(crate) forget: SmallVec<[u32; 2]>,
}

pub(crate) enum What {
    Call(Call),
    View(u32, Target),
    Tile(Box<Tile>),
}

pub(crate) struct Call {
    pub(crate) node: u32,
    needs: Option<Needs>,
    /// Per output: whether a gradient arrives.
    pub(super) arrives: SmallVec<[bool; 2]>,
    pub(crate) targets: SmallVec<[Option<Target>; 4]>,
}

pub(crate) struct Tile {
    pub(crate) node: u32,
    unit: UnitBackward,
    pub(crate) shape: Shape,
    pub(crate) targets: SmallVec<[Target; 2]>,
    /// Programs by which outputs accumulate.
    programs: Mutex<SmallVec<[(Vec<bool>, AnyProgram, Arc<[Input]>); 2]>>,
    dtype: DType,
}

/// Where a gradient goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) slot: u32,
    pub(crate) how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The first part of an intermediate gradient.
    Write,
    /// A further part.
    Add,
    /// A leaf's gradient, which keeps what it had.
    Leaf,
}

/// The backward plan for `root`, from the cache if it is still right.
pub(crate) fn backward_plan(root: &VarRef, clear_buffer: bool, hooked: bool) -> Result<Arc<Backward>> {
    let key = Key { clear_buffer, hooked, fused: fusion() };
    let forward = last_forward(root);
    let id = forward.as_ref().map(|f| f.id);
    let same = |a: &Option<(u64, Weak<Forward>)>| a.as_ref().map(|f| f.0) == id;
    let roots = std::slice::from_ref(root);
    let found = root.lock().plans.backward.iter().find(|p| p.key == key && same(&p.forward)).cloned();
    if let Some(p) = found.filter(|p| p.watch.is_fresh(roots)) {
        return Ok(p);
    }
    let plan = Arc::new(Backward::new(root, key, forward)?);
    let mut s = root.lock();
    s.plans.backward.retain(|p| p.key != key);
    if s.plans.backward.len() >= KEPT {
        s.plans.backward.remove(0);
    }
    s.plans.backward.push(plan.clone());
    Ok(plan)
}

fn last_plan(f: &FnNode) -> Option<Arc<Forward>> {
    f.last_plan.lock().unwrap_or_else(|e| e.into_inner()).upgrade()
}

fn last_forward(root: &VarRef) -> Option<Arc<Forward>> {
    root.parent().and_then(|f| last_plan(&f))
}

impl Backward {
    fn new(root: &VarRef, key: Key, forward: Option<Arc<Forward>>) -> Result<Backward> {
        let roots = std::slice::from_ref(root);
        let g = Graph::new(collect(roots), roots)?;
        let watch = Watch::new(&g, roots);
        let (units, forward) = units(&g, forward);
        let units = if key.hooked || !key.fused { group::split(units) } else { units };
        let b = Builder::new(&g, key, forward.as_deref());
        b.check_labels()?;
        let mut steps = b.steps(&units);
        again::schedule(&g, &units, &b.stored, &mut steps);
        let is_root = |v: &VarRef| Arc::ptr_eq(v, root);
        let slots = g.vars.iter().map(Slot::new).collect();
        let grads = g.vars.iter().map(|v| grad_array(v, key)).collect();
        Ok(Backward {
            key,
            watch,
            forward: forward.map(|f| (f.id, Arc::downgrade(&f))),
            slots,
            grads,
            steps,
            root: g.roots[0],
            vars: g.vars.iter().map(|v| (!is_root(&v.var)).then(|| v.var.clone())).collect(),
            nodes: g.nodes.into_iter().map(|n| PlanNode { f: n.f, x: n.x, y: n.y }).collect(),
        })
    }
}

/// The array for a variable's gradient: the variable's own if somebody may look at it.
fn grad_array(v: &super::order::Var, key: Key) -> NdArray {
    let own = grad_visible(v, key.clear_buffer);
    v.var.lock().grad_elided = !own && v.flows;
    if let Some(old) = v.var.existing_grad().filter(|_| !own && !v.root && key.clear_buffer) {
        old.clear();
    }
    if own || key.hooked { v.var.grad() } else { NdArray::new(v.shape.clone()) }
}

fn grad_visible(v: &super::order::Var, clear_buffer: bool) -> bool {
    v.producer.is_none() || v.persistent || (v.held && !clear_buffer)
}

/// The units of the last forward run, as far as they belong to `g`; each function on its own if there was none.
fn units(g: &Graph, forward: Option<Arc<Forward>>) -> (Vec<Unit>, Option<Arc<Forward>>) {
    use crate::function::expr::ssa::MixMap;
    let ours = |f: &Arc<Forward>| g.nodes.iter().all(|n| last_plan(&n.f).is_some_and(|p| p.id == f.id));
    let Some(f) = forward.filter(|f| ours(f)) else {
        let single =
            |n: u32| Unit { nodes: vec![n], elementwise: g.nodes[n as usize].f.function.elementwise().is_some() };
        return ((0..g.nodes.len() as u32).map(single).collect(), None);
    };
    let number: MixMap<usize, u32> =
        g.nodes.iter().enumerate().map(|(i, n)| (Arc::as_ptr(&n.f) as usize, i as u32)).collect();
    let translate = |u: &Unit| {
        let nodes: Vec<u32> = u
            .nodes
            .iter()
            .filter_map(|&n| number.get(&(Arc::as_ptr(&f.nodes[n as usize].f) as usize)).copied())
            .collect();
        (!nodes.is_empty()).then_some(Unit { nodes, elementwise: u.elementwise })
    };
    (f.units.iter().filter_map(translate).collect(), Some(f))
}

struct Builder<'a> {
    g: &'a Graph,
    key: Key,
    /// Data that forward kept.
    stored: Vec<bool>,
    /// Data that some step reads.
    read: RefCell<Vec<bool>>,
}

impl<'a> Builder<'a> {
    fn new(g: &'a Graph, key: Key, forward: Option<&Forward>) -> Builder<'a> {
        use crate::function::expr::ssa::MixMap;
        let kept: Option<MixMap<u64, bool>> =
            forward.map(|f| f.slots.iter().zip(&f.kept).map(|(s, &k)| (s.var_id, k)).collect());
        let is_stored = |v: &super::order::Var| match &kept {
            Some(kept) => v.producer.is_none() || kept.get(&v.var.id).copied().unwrap_or(false),
            None => true,
        };
        let mut read = vec![false; g.vars.len()];
        let opaque = g.nodes.iter().filter(|n| n.f.function.elementwise().is_none() && n.is_active(g));
        opaque.flat_map(|n| n.backward_reads(g)).for_each(|v| read[v as usize] = true);
        Builder { g, key, stored: g.vars.iter().map(is_stored).collect(), read: RefCell::new(read) }
    }

    fn steps(&self, units: &[Unit]) -> Vec<Step> {
        let mut reached = vec![false; self.g.vars.len()];
        let root = self.g.roots[0] as usize;
        reached[root] = self.g.vars[root].flows;
        let mut steps = Vec::new();
        for unit in units.iter().rev() {
            if let Some(what) = self.unit(unit, &mut reached) {
                steps.push(self.step(unit, what));
            }
        }
        steps
    }

    /// Labels and indices have no gradient: asking for one is an error.
    fn check_labels(&self) -> Result<()> {
        use crate::function::InputKind;
        for node in &self.g.nodes {
            for (i, &x) in node.x.iter().enumerate() {
                let input = node.f.function.def().input(i);
                let v = self.g.var(x);
                if input.kind == InputKind::Index && v.flows && v.producer.is_none() {
                    let e =
                        Error::graph("labels and indices have no gradient, but need_grad is set").argument(input.name);
                    return Err(node.f.explain(e.hint("make the Variable with need_grad=False")));
                }
            }
        }
        Ok(())
    }

    fn unit(&self, unit: &Unit, reached: &mut [bool]) -> Option<What> {
        let n = unit.nodes[0];
        let node = &self.g.nodes[n as usize];
        if unit.elementwise {
            return self.tile(unit, reached).map(|t| What::Tile(Box::new(t)));
        }
        let wants = node.wants(self.g);
        if !node.y.iter().any(|&y| reached[y as usize]) || !wants.contains(&true) {
            return None;
        }
        let arrives = node.y.iter().map(|&y| reached[y as usize]).collect();
        let targets: SmallVec<[Option<Target>; 4]> =
            node.x.iter().zip(&wants).map(|(&x, &w)| w.then(|| self.target(x, reached))).collect();
        if node.f.function.is_view() {
            return targets[0].map(|t| What::View(n, t));
        }
        Some(What::Call(Call { node: n, needs: node.f.function.needs(&wants), arrives, targets }))
    }

    fn target(&self, v: u32, reached: &mut [bool]) -> Target {
        let first = !std::mem::replace(&mut reached[v as usize], true);
        let how = match self.g.var(v).producer {
            None => How::Leaf,
            Some(_) if first => How::Write,
            Some(_) => How::Add,
        };
        Target { slot: v, how }
    }

    fn tile(&self, unit: &Unit, reached: &mut [bool]) -> Option<Tile> {
        let arrives = |v: u32| reached[v as usize];
        let seen = |v: u32| !self.g.var(v).root && grad_visible(self.g.var(v), self.key.clear_buffer);
        let mut read = self.read.borrow_mut();
        let back = UnitBackward::new(self.g, unit, arrives, |v| self.stored[v as usize] || read[v as usize], seen);
        back.loads().into_iter().for_each(|v| read[v as usize] = true);
        if back.outputs.is_empty() {
            return None;
        }
        let last = *unit.nodes.last().expect("units have nodes");
        let shape = self.g.var(self.g.nodes[last as usize].y[0]).shape.clone();
        let made = |v: u32| unit.nodes.iter().any(|&n| self.g.nodes[n as usize].y[0] == v);
        let target = |v: u32, reached: &mut [bool]| match made(v) {
            true => Target { slot: v, how: How::Write },
            false => self.target(v, reached),
        };
        let targets = back.outputs.iter().map(|(v, _)| target(*v, reached)).collect();
        let dtype = back.dtype;
        Some(Tile { node: last, unit: back, shape, targets, programs: Mutex::default(), dtype })
    }

    fn step(&self, unit: &Unit, what: What) -> Step {
        let made = || unit.nodes.iter().flat_map(|&n| self.g.nodes[n as usize].y.iter().copied());
        let free_grads = made().filter(|&v| !grad_visible(self.g.var(v), self.key.clear_buffer)).collect();
        let clears = |v: &u32| self.key.clear_buffer && !self.g.var(*v).persistent && !self.g.var(*v).root;
        let free_data = made().filter(clears).collect();
        let reads = self.reads(&what);
        Step { what, free_grads, free_data, reads, again: Vec::new(), forget: SmallVec::new() }
    }

    fn reads(&self, what: &What) -> SmallVec<[u32; 4]> {
        match what {
            What::View(..) => SmallVec::new(),
            What::Tile(t) => t.unit.loads().into_iter().collect(),
            What::Call(c) => self.g.nodes[c.node as usize].backward_reads(self.g),
        }
    }
}

impl Backward {
    /// Runs the plan; `seed` is the gradient of the root.
    pub(crate) fn run(&self, seed: &NdArray, hooks: &Hooks) -> Result<()> {
        let _turn = Turn::take(self.nodes.iter().map(|n| &*n.f))?;
        let mut interrupt = Interrupt::new();
        let result = self.steps.iter().try_for_each(|step| {
            self.step(step, seed, hooks)?;
            interrupt.check(step.what.work(self))
        });
        if result.is_err() {
            let freed = self.steps.iter().flat_map(|s| &s.free_grads);
            freed.for_each(|&v| drop(self.grads[v as usize].storage().release()));
            let again = self.steps.iter().flat_map(|s| s.again.iter().flat_map(|a| &a.free).chain(&s.forget));
            again.for_each(|&v| drop(self.slots[v as usize].data.storage().release()));
        }
        result
    }

    pub(super) fn grad(&self, v: u32, seed: &'_ NdArray) -> NdArray {
        if v == self.root { seed.clone() } else { self.grads[v as usize].clone() }
    }

    fn step(&self, step: &Step, seed: &NdArray, hooks: &Hooks) -> Result<()> {
        let node = &self.nodes[step.what.node() as usize];
        hooks.before(&node.f)?;
        self.again(step)?;
        alloc::set_label(node.f.name());
        let again = self.restore(&step.reads)?;
        let done = match &step.what {
            What::Call(c) => self.call(c, seed),
            What::View(n, t) => self.view(*n, *t, seed, step),
            What::Tile(t) => self.tile(t, seed, step),
        };
        done.map_err(|e| node.f.explain(e))?;
        hooks.after(&node.f)?;
        for &v in again.iter().chain(&step.forget) {
            let storage = self.slots[v as usize].data.storage();
            if self.key.clear_buffer { storage.clear() } else { drop(storage.release()) }
        }
        for &v in step.free_grads.iter().filter(|&&v| v != self.root) {
            let storage = self.grads[v as usize].storage();
            if self.key.clear_buffer { storage.clear() } else { drop(storage.release()) }
        }
        step.free_data.iter().for_each(|&v| self.slots[v as usize].data.storage().clear());
        Ok(())
    }

    /// Runs the planned recomputation before a step. What is there all the same stays as it is.
    fn again(&self, step: &Step) -> Result<()> {
        let is_there = |v: &u32| !self.slots[*v as usize].data.storage().is_empty();
        for again in &step.again {
            let node = &self.nodes[again.what.node() as usize];
            let missing = match &again.what {
                build::What::Tile(t) => !t.sinks.iter().all(is_there),
                _ => !node.y.iter().all(is_there),
            };
            if missing {
                alloc::set_label(node.f.name());
                again.what.run(node, &self.slots, true)?;
            }
            again.free.iter().for_each(|&v| drop(self.slots[v as usize].data.storage().release()));
        }
        Ok(())
    }

    /// Computes data again that was not kept, and that no plan foresaw; gives the slots to be freed afterwards.
    fn restore(&self, reads: &[u32]) -> Result<SmallVec<[u32; 2]>> {
        let mut again = SmallVec::new();
        for &v in reads {
            if !self.slots[v as usize].data.storage().is_empty() {
                continue;
            }
            let Some(var) = &self.vars[v as usize] else { continue };
            let forward = self.forward.as_ref().and_then(|(_, f)| f.upgrade());
            match forward.and_then(|f| f.slot_of(var).map(|slot| (f, slot))) {
                Some((f, slot)) if !f.kept[slot as usize] => {
                    f.compute_again(slot)?;
                    again.push(v);
                }
                _ => super::materialize(var)?,
            }
        }
        Ok(again)
    }

    fn call(&self, c: &Call, seed: &NdArray) -> Result<()> {
        let node = &self.nodes[c.node as usize];
        if let Some(own) = node.f.function.on_variables() {
            return self.variables(node, c, own, seed);
        }
        match c.needs {
            Some(needs) => self.kernel(node, c, needs, seed),
            None => self.rule(node, c, seed),
        }
    }

    fn kernel(&self, node: &PlanNode, c: &Call, needs: Needs, seed: &NdArray) -> Result<()> {
        let compute = node.f.context.compute_dtype();
        let view = |v: u32, dtype: DType| -> Result<View> {
            let slot = &self.slots[v as usize];
            Ok(View { shape: &slot.shape, data: slot.data.read(dtype)? })
        };
        let (mut x, mut y, mut gy) = (Views::new(), Views::new(), Views::new());
        for (i, &v) in node.x.iter().enumerate() {
            let read = needs.x >> i.min(31) & 1 == 1;
            let slot = &self.slots[v as usize];
            x.push(if read {
                Some(View { shape: &slot.shape, data: read_input(&node.f, i, &slot.data)? })
            } else {
                None
            });
        }
        for (i, (&v, &arrives)) in node.y.iter().zip(&c.arrives).enumerate() {
            let read = needs.y >> i.min(31) & 1 == 1;
            y.push(if read { Some(view(v, compute)?) } else { None });
            let shape = &self.slots[v as usize].shape;
            gy.push(if arrives { Some(View { shape, data: self.grad(v, seed).read(compute)? }) } else { None });
        }
        let mut gx: SmallVec<[Option<GradMut>; 4]> = SmallVec::new();
        let mut late: SmallVec<[(Target, Data); 2]> = SmallVec::new();
        for t in &c.targets {
            gx.push(match t {
                Some(t) => Some(self.gradient(t, node, compute, &mut late)?),
                None => None,
            });
        }
        let inputs: SmallVec<[NdArray; 4]> = node.x.iter().map(|&v| self.slots[v as usize].data.clone()).collect();
        let run = Run { dtype: compute, again: false, saved: &node.f.saved, inputs: &inputs };
        node.f.function.backward(&run, &x, &y, &gy, &mut gx)?;
        late.iter().try_for_each(|(t, data)| self.deliver(*t, data, node.f.context.dtype()))
    }

    /// Memory for a gradient in the type to compute in; what is stored in another type goes through `late`.
    fn gradient(
        &self,
        t: &Target,
        node: &PlanNode,
        compute: DType,
        late: &mut SmallVec<[(Target, Data); 2]>,
    ) -> Result<GradMut<'_>> {
        let shape = &self.slots[t.slot as usize].shape;
        let target = &self.grads[t.slot as usize];
        let output = self.output(t);
        if node.f.context.dtype() != compute {
            let data = Data::new(compute, shape.size())?;
            late.push((*t, data.clone()));
            return Ok(GradMut { shape, output: Output::Write, data });
        }
        let data = match output {
            Output::Write => target.overwrite(compute)?,
            Output::Accumulate => target.modify(compute)?,
        };
        Ok(GradMut { shape, output, data })
    }

    fn output(&self, t: &Target) -> Output {
        let storage = self.grads[t.slot as usize].storage();
        match t.how {
            How::Write => Output::Write,
            How::Add => Output::Accumulate,
            How::Leaf if storage.is_empty() || storage.is_zero() => Output::Write,
            How::Leaf => Output::Accumulate,
        }
    }

    /// Writes or adds a whole part to a gradient stored as `dtype`.
    fn deliver(&self, t: Target, part: &Data, dtype: DType) -> Result<()> {
        let target = &self.grads[t.slot as usize];
        if self.output(&t) == Output::Write {
            target.overwrite(dtype)?.copy_from(part);
            return Ok(());
        }
        let to = target.modify(dtype)?;
        let compute = part.dtype();
        let sum = if dtype == compute { to.clone() } else { to.converted(compute)? };
        with_real!(compute, T => crate::cpu::simd::add_assign(sum.as_mut_slice::<T>(), part.as_slice::<T>()));
        if dtype != compute {
            to.copy_from(&sum);
        }
        Ok(())
    }

    /// The gradient by the function's rule: a graph that runs at once and is forgotten.
    fn rule(&self, node: &PlanNode, c: &Call, seed: &NdArray) -> Result<()> {
        let f = &node.f;
        let variable = |a: NdArray| Variable::from_array(a);
        let data = |v: &u32| variable(self.slots[*v as usize].data.clone());
        let gy = |(&v, &arrives): (&u32, &bool)| {
            let shape = self.slots[v as usize].shape.clone();
            let a = if arrives { self.grad(v, seed) } else { NdArray::new(shape) };
            variable(a)
        };
        let grad = Grad {
            x: node.x.iter().map(data).collect(),
            y: node.y.iter().map(data).collect(),
            gy: node.y.iter().zip(&c.arrives).map(gy).collect(),
            want: c.targets.iter().map(Option::is_some).collect(),
            saved: f.saved.get(),
            context: f.context.clone(),
        };
        let parts = mode::inner(f.context.clone(), || f.function.grad(&grad))?;
        for (t, part) in c.targets.iter().zip(parts) {
            let (Some(t), Some(part)) = (t, part) else { continue };
            let data = part.data()?.read(f.context.compute_dtype())?;
            self.deliver(*t, &data, f.context.dtype())?;
        }
        Ok(())
    }

    /// A view's gradient is its output's, under the input's shape.
    fn view(&self, n: u32, t: Target, seed: &NdArray, step: &Step) -> Result<()> {
        let node = &self.nodes[n as usize];
        let gy = self.grad(node.y[0], seed);
        let ends = step.free_grads.contains(&node.y[0]) && node.y[0] != self.root;
        if ends && self.output(&t) == Output::Write && gy.storage().is_exclusive() {
            return self.grads[t.slot as usize].share_content(&gy);
        }
        let part = gy.read(node.f.context.compute_dtype())?;
        self.deliver(t, &part, node.f.context.dtype())
    }

    fn tile(&self, t: &Tile, seed: &NdArray, step: &Step) -> Result<()> {
        let compute = crate::context::compute_dtype(t.dtype);
        let reduced: SmallVec<[bool; 2]> =
            t.targets.iter().map(|x| self.slots[x.slot as usize].shape != t.shape).collect();
        let adds: Vec<bool> =
            t.targets.iter().zip(&reduced).map(|(x, &r)| !r && self.output(x) == Output::Accumulate).collect();
        let (program, inputs) = t.program(&adds, &reduced)?;
        let mut ending: SmallVec<[u32; 2]> = step.free_grads.iter().copied().filter(|&v| v != self.root).collect();
        let mut stolen: SmallVec<[(u32, u32); 1]> = SmallVec::new();
        for (x, (&add, &r)) in t.targets.iter().zip(adds.iter().zip(&reduced)) {
            if let Some(from) = (!add && !r).then(|| self.steal(&mut ending, x.slot, t.dtype, &inputs)).flatten() {
                stolen.push((from, x.slot));
            }
        }
        let mut alive: SmallVec<[Data; 8]> = SmallVec::new();
        let mut sources: SmallVec<[Source; 8]> = SmallVec::new();
        for input in inputs.iter() {
            let (v, array) = match *input {
                Input::Data(v) => (v, self.slots[v as usize].data.clone()),
                Input::Grad(v) => {
                    let from = stolen.iter().find(|(g, _)| *g == v).map(|(_, s)| *s);
                    (v, from.map_or_else(|| self.grad(v, seed), |s| self.grads[s as usize].clone()))
                }
            };
            if let Some(number) = array.storage().constant() {
                sources.push(Source { ptr: std::ptr::null(), dtype: DType::F64, walk: Walk::Constant(number) });
                continue;
            }
            let data = array.read(array.dtype())?;
            let walk = Walk::new(&self.slots[v as usize].shape, &t.shape);
            sources.push(Source { ptr: data.ptr(), dtype: data.dtype(), walk });
            alive.push(data);
        }
        let mut sinks: SmallVec<[Sink; 4]> = SmallVec::new();
        let mut temps: SmallVec<[(Target, Data); 2]> = SmallVec::new();
        for ((x, &add), &r) in t.targets.iter().zip(&adds).zip(&reduced) {
            let target = &self.grads[x.slot as usize];
            let data = match (r, add) {
                (true, _) => Data::new(compute, t.shape.size())?,
                (_, true) => target.modify(t.dtype)?,
                (_, false) => target.overwrite(t.dtype)?,
            };
            sinks.push(Sink { ptr: data.ptr(), dtype: data.dtype() });
            if r {
                temps.push((*x, data.clone()));
            }
            alive.push(data);
        }
        // SAFETY: all arrays have the plan's shapes, and `alive` keeps their memory.
        unsafe { program.run(t.shape.size(), &sources, &sinks) };
        temps.iter().try_for_each(|(x, data)| self.reduce(*x, data, t))
    }

    /// Sums a full-size gradient down to its variable's shape.
    fn reduce(&self, x: Target, full: &Data, t: &Tile) -> Result<()> {
        let shape = &self.slots[x.slot as usize].shape;
        let compute = full.dtype();
        let part = Data::new(compute, shape.size())?;
        with_real!(compute, T => {
            reduce::sum_to(full.as_slice::<T>(), &t.shape, part.as_mut_slice::<T>(), shape, Output::Write)
        });
        self.deliver(x, &part, t.dtype)
    }

    /// Lets a gradient take the memory of an output gradient that ends here; gives that one.
    fn steal(&self, ending: &mut SmallVec<[u32; 2]>, sink: u32, dtype: DType, inputs: &[Input]) -> Option<u32> {
        let to = self.grads[sink as usize].storage();
        let fits = |&v: &u32| {
            let from = self.grads[v as usize].storage();
            inputs.contains(&Input::Grad(v)) && from.dtype() == dtype && from.size() == to.size() && from.is_exclusive()
        };
        let at = ending.iter().position(fits).filter(|_| to.is_empty())?;
        let v = ending.remove(at);
        to.adopt(dtype, self.grads[v as usize].storage().release());
        Some(v)
    }
}

type Views<'a> = SmallVec<[Option<View<'a>>; 4]>;

impl What {
    pub(crate) fn node(&self) -> u32 {
        match self {
            What::Call(c) => c.node,
            What::View(n, _) => *n,
            What::Tile(t) => t.node,
        }
    }

    fn work(&self, plan: &Backward) -> usize {
        let node = &plan.nodes[self.node() as usize];
        node.x.first().map_or(1, |&x| plan.slots[x as usize].shape.size())
    }
}

impl Tile {
    fn program(&self, adds: &[bool], reduced: &[bool]) -> Result<(AnyProgram, Arc<[Input]>)> {
        let mut programs = self.programs.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, p, inputs)) = programs.iter().find(|(a, ..)| a == adds) {
            return Ok((p.clone(), inputs.clone()));
        }
        let (p, inputs) = self.unit.compile(adds, reduced)?;
        let inputs: Arc<[Input]> = inputs.into();
        programs.push((adds.to_vec(), p.clone(), inputs.clone()));
        Ok((p, inputs))
    }
}
