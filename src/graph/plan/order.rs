//! The functions behind some variables, in the order of running: root by root, by rank, ties by creation.

use super::views::Viewed;
use crate::function::{GradientPart, Needs, Setup, elementwise};
use crate::graph::node::{self, FnNode};
use crate::graph::observe::Observed;
use crate::graph::variable::{VarNode, VarRef};
use nnrs_kernels::array::{NdArray, alloc};
use nnrs_kernels::error::Result;
use nnrs_kernels::expr::ssa::MixMap;
use nnrs_kernels::shape::Shape;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A sub-graph with numbered variables.
#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) vars: Vec<Var>,
    /// Numbers of the roots.
    pub(crate) roots: Vec<u32>,
    /// Variables that have no memory of their own: see [`Graph::find_views`].
    pub(super) views: Vec<Option<Box<Viewed>>>,
    /// A gradient that a function passes on is another variable's too.
    shares_gradients: bool,
}

pub(crate) struct Node {
    pub(crate) f: Arc<FnNode>,
    pub(crate) x: SmallVec<[u32; 2]>,
    pub(crate) y: SmallVec<[u32; 1]>,
    /// The function over the shapes of these.
    pub(crate) setup: Arc<Setup>,
}

pub(crate) struct Var {
    pub(crate) var: VarRef,
    pub(crate) shape: Shape,
    /// The node that makes it, if that is part of the sub-graph.
    pub(crate) producer: Option<u32>,
    pub(crate) root: bool,
    pub(crate) observed: Observed,
    pub(crate) persistent: bool,
    /// Its data stays whatever the clear flags say.
    pub(crate) keeps_data: bool,
    /// Dropped after its last reading in forward, computed again for backward.
    pub(crate) recompute: bool,
    /// Its gradient stays whatever the clear flags say, if it is observed.
    keeps_grad: bool,
    /// The variable's flag, set or inherited.
    pub(crate) needs_grad: bool,
    /// A gradient may flow to it.
    pub(crate) flows: bool,
    /// Some function writes its elements, and another one has them too; or its gradient, likewise.
    pub(crate) twin: bool,
    /// That is so of its data.
    twin_data: bool,
    /// Its gradient is the data of another variable too.
    grad_is_data: bool,
    /// Made from a twin, or over an input: it could not be made again.
    pub(super) once: bool,
    /// User code makes it, which may give something else when it runs again.
    pub(crate) of_user_code: bool,
}

/// The functions behind some roots, in the order of running.
pub(crate) struct ExecutionOrder {
    pub(crate) functions: Vec<Arc<FnNode>>,
    /// The variables behind which functions were left out.
    pub(crate) border: Vec<VarRef>,
    twins: Option<Storages>,
}

/// Some storages, by their addresses.
type Storages = MixMap<usize, ()>;

/// All functions behind `roots`, sorted.
pub(crate) fn collect(roots: &[VarRef]) -> ExecutionOrder {
    collect_before(roots, |_, _| false)
}

/// The functions behind `roots` that are not `closed`, nor behind such a one; and the variables where that ends.
///
/// Root by root as they are given, each by rank. Where a function writes an array that another one has too (an output that
/// shares it, an input that is updated), the order shows in the values: then it is NNabla's, which goes in depth first.
pub(crate) fn collect_before(roots: &[VarRef], closed: impl Fn(&FnNode, &VarNode) -> bool) -> ExecutionOrder {
    let mut o = ExecutionOrder { functions: Vec::new(), border: Vec::new(), twins: None };
    let mut seen: MixMap<usize, ()> = MixMap::default();
    let mut starts = Vec::with_capacity(roots.len());
    for root in roots {
        starts.push(o.functions.len());
        let mut stack = vec![root.clone()];
        while let Some(v) = stack.pop() {
            let Some(f) = v.parent() else { continue };
            if closed(&f, &v) {
                o.border.push(v);
            } else if seen.insert(Arc::as_ptr(&f) as usize, ()).is_none() {
                stack.extend(f.links().inputs.iter().cloned());
                o.functions.push(f);
            }
        }
        by_rank(&mut o.functions[starts[starts.len() - 1]..]);
    }
    o.twins = twins(&o.functions);
    if o.twins.is_some() {
        let ends = starts[1..].iter().copied().chain([o.functions.len()]);
        let parts = roots.iter().zip(starts.iter().zip(ends));
        parts.for_each(|(root, (&start, end))| depth_first(root, &mut o.functions[start..end]));
    }
    o
}

/// Sorts functions by rank, ties by creation.
pub(super) fn by_rank(found: &mut [Arc<FnNode>]) {
    found.sort_by_cached_key(|f| (f.rank(), f.id));
    if !node::ranks_are_right() && found.iter().any(|f| f.rank() != rank_of(f)) {
        refresh_ranks(found);
    }
}

impl ExecutionOrder {
    /// An error where the system has no memory for a plan of that many bytes a function: of large graphs it takes as much as
    /// large arrays do.
    pub(crate) fn check_memory(&self, bytes: usize) -> Result<()> {
        let n = self.functions.len();
        if n >= 1 << 14 { alloc::probe(n * bytes) } else { Ok(()) }
    }
}

/// Puts the functions into the order in which they are met from `root`, inputs before what reads them.
pub(super) fn depth_first(root: &VarRef, found: &mut [Arc<FnNode>]) {
    let mut waiting: MixMap<usize, ()> = found.iter().map(|f| (Arc::as_ptr(f) as usize, ())).collect();
    let mut place: MixMap<usize, usize> = MixMap::default();
    let mut stack: Vec<(Arc<FnNode>, usize)> = root.parent().map(|f| (f, 0)).into_iter().collect();
    while let Some((f, next)) = stack.pop() {
        let key = Arc::as_ptr(&f) as usize;
        let input = f.links().inputs.get(next).cloned();
        match input {
            Some(x) => {
                stack.push((f, next + 1));
                let first = |p: &Arc<FnNode>| waiting.remove(&(Arc::as_ptr(p) as usize)).is_some();
                stack.extend(x.parent().filter(first).map(|p| (p, 0)));
            }
            None => drop(place.insert(key, place.len())),
        }
    }
    found.sort_by_key(|f| place.get(&(Arc::as_ptr(f) as usize)).copied());
}

/// The storages whose elements depend on the order of running: a function of `nodes` writes them, and another one has them
/// too, be it by another variable. `None` without any.
fn twins(nodes: &[Arc<FnNode>]) -> Option<Storages> {
    let mut twins = shared_outputs(nodes);
    twins.extend(updated_inputs(nodes));
    (!twins.is_empty()).then_some(twins)
}

/// Storages of outputs that another variable of the graph has too.
fn shared_outputs(nodes: &[Arc<FnNode>]) -> Storages {
    let shared = |f: &Arc<FnNode>| f.outputs().into_iter().filter(|y| y.is_shared());
    let written: MixMap<usize, u64> = nodes.iter().flat_map(shared).map(|y| (storage(&y), y.id)).collect();
    if written.is_empty() {
        return MixMap::default();
    }
    let both = nodes.iter().flat_map(variables).filter(|v| written.get(&storage(v)).is_some_and(|id| *id != v.id));
    both.map(|v| (storage(&v), ())).collect()
}

/// Storages of gradients that functions pass on and another variable of the graph has too. `gradients`: those that may be.
fn shared_gradients(gradients: &[(u32, usize)], g: &Graph) -> Storages {
    // Of each how many have it, and whether a function passes it on.
    let mut found: MixMap<usize, (usize, bool)> = MixMap::default();
    for &(v, at) in gradients {
        let (count, made) = found.entry(at).or_default();
        *count += 1;
        *made |= g.var(v).producer.is_some();
    }
    found.into_iter().filter(|(_, (count, made))| *count > 1 && *made).map(|(at, _)| (at, ())).collect()
}

/// Storages of inputs that a function updates and another function reads or writes.
fn updated_inputs(nodes: &[Arc<FnNode>]) -> Storages {
    let updates = |f: &Arc<FnNode>| {
        let of = |(i, x): (usize, VarRef)| f.updates_input(i).then(|| (storage(&x), f.id));
        f.inputs().into_iter().enumerate().filter_map(of).collect::<SmallVec<[_; 2]>>()
    };
    let updates_any = |f: &&Arc<FnNode>| f.function.has_state() || f.function.rewrites_input().is_some();
    let written: MixMap<usize, u64> = nodes.iter().filter(updates_any).flat_map(updates).collect();
    if written.is_empty() {
        return MixMap::default();
    }
    let by_others = |f: &Arc<FnNode>| {
        let other = |s: &usize| written.get(s).is_some_and(|writer| *writer != f.id);
        variables(f).map(|v| storage(&v)).filter(other).collect::<SmallVec<[_; 2]>>()
    };
    nodes.iter().flat_map(by_others).map(|s| (s, ())).collect()
}

fn variables(f: &Arc<FnNode>) -> impl Iterator<Item = VarRef> + use<> {
    f.inputs().into_iter().chain(f.outputs())
}

/// Where the data's memory is kept.
pub(super) fn storage(v: &VarNode) -> usize {
    address(&v.data())
}

/// Where an array's memory is kept: the same for arrays that share it.
pub(super) fn address(array: &NdArray) -> usize {
    Arc::as_ptr(&array.storage()) as usize
}

fn rank_of(f: &FnNode) -> usize {
    f.links().inputs.iter().map(|x| x.parent().map_or(0, |p| p.rank() + 1)).max().unwrap_or(0)
}

/// Computes ranks anew after surgery, sources first, without recursion.
fn refresh_ranks(found: &mut [Arc<FnNode>]) {
    let mut todo: Vec<(Arc<FnNode>, bool)> = found.iter().map(|f| (f.clone(), false)).collect();
    let mut done: MixMap<usize, ()> = MixMap::default();
    while let Some((f, inputs_done)) = todo.pop() {
        let key = Arc::as_ptr(&f) as usize;
        if done.contains_key(&key) {
            continue;
        }
        if inputs_done {
            f.set_rank(rank_of(&f));
            done.insert(key, ());
            continue;
        }
        let parents: Vec<_> = f.inputs().iter().filter_map(|x| x.parent()).collect();
        todo.push((f, true));
        todo.extend(parents.into_iter().map(|p| (p, false)));
    }
    found.sort_by_key(|f| (f.rank(), f.id));
}

impl Graph {
    /// Leaves over the memory of an output that is made before they are read.
    pub(crate) fn made_in_time(&self) -> Vec<u32> {
        let twins = || (0..self.vars.len() as u32).map(|i| (i, self.var(i))).filter(|(_, v)| v.twin);
        let of = |v: &Var| Some((storage(&v.var), v.producer?));
        let made: MixMap<usize, u32> = twins().filter_map(|(_, v)| of(v)).collect();
        let mut first_read: MixMap<u32, u32> = MixMap::default();
        if !made.is_empty() {
            for (n, node) in self.nodes.iter().enumerate() {
                for x in &node.x {
                    first_read.entry(*x).or_insert(n as u32);
                }
            }
        }
        let in_time = |i: u32, v: &Var| made.get(&storage(&v.var)).zip(first_read.get(&i)).is_some_and(|(m, r)| m < r);
        twins().filter(|(i, v)| v.producer.is_none() && in_time(*i, v)).map(|(i, _)| i).collect()
    }

    /// Functions of the script's run in the middle of it.
    pub(crate) fn has_user_code(&self) -> bool {
        self.nodes.iter().any(|n| n.f.function.on_variables().is_some())
    }

    /// Of the arrays that several variables have, those that one function of the run writes: its readers find what it made.
    pub(crate) fn written_once(&self) -> Vec<usize> {
        let updates = |node: &Node, i: usize| node.f.function.updates_input(i) || node.f.rewrites() == Some(i);
        let mut writes: MixMap<usize, u32> = MixMap::default();
        if !self.vars.iter().any(|v| v.twin_data) {
            return Vec::new();
        }
        for node in &self.nodes {
            let updated = node.x.iter().enumerate().filter(|(i, _)| updates(node, *i)).map(|(_, x)| x);
            let written = node.y.iter().chain(updated).map(|v| self.var(*v)).filter(|v| v.twin_data);
            written.for_each(|v| *writes.entry(storage(&v.var)).or_default() += 1);
        }
        writes.into_iter().filter(|(_, n)| *n == 1).map(|(at, _)| at).collect()
    }

    /// Of the arrays that several variables have, those that hold more than one number in the course of a run: several
    /// functions write them, or one does after others have read a leaf of the same array. Dropped, it could not be told
    /// whose number to make again.
    pub(crate) fn rewritten(&self) -> Vec<usize> {
        let shared = || self.vars.iter().enumerate().filter(|(_, v)| v.twin_data);
        if shared().next().is_none() {
            return Vec::new();
        }
        let (once, in_time) = (self.written_once(), self.made_in_time());
        let is_read_before = |i: usize, v: &Var| v.producer.is_none() && !in_time.contains(&(i as u32));
        let rewritten = shared().filter(|(i, v)| !once.contains(&storage(&v.var)) || is_read_before(*i, v));
        rewritten.map(|(_, v)| storage(&v.var)).collect()
    }

    /// The nodes in the order of NNabla's backward pass, last first, if a gradient that is passed on is another variable's
    /// too: then the order shows in the numbers. By rank, and as they are met.
    pub(crate) fn backward_order(&self) -> Option<Vec<u32>> {
        if !self.shares_gradients {
            return None;
        }
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut met = vec![false; self.nodes.len()];
        let mut waiting: BTreeSet<(Reverse<usize>, usize, u32)> = BTreeSet::new();
        let mut next: SmallVec<[u32; 4]> = self.var(self.roots[0]).producer.into_iter().collect();
        let mut seen = 0;
        loop {
            for n in next.drain(..).filter(|&n| !std::mem::replace(&mut met[n as usize], true)) {
                waiting.insert((Reverse(self.nodes[n as usize].f.rank()), seen, n));
                seen += 1;
            }
            let Some((_, _, n)) = waiting.pop_first() else { break };
            order.push(n);
            let inputs = self.nodes[n as usize].x.iter().map(|&x| self.var(x));
            next.extend(inputs.filter(|v| v.flows).filter_map(|v| v.producer));
        }
        order.extend((0..self.nodes.len() as u32).rev().filter(|&n| !met[n as usize]));
        order.reverse();
        Some(order)
    }

    /// Numbers the variables of the functions, brings shapes and inherited flags up to date.
    pub(crate) fn new(order: ExecutionOrder, roots: &[VarRef]) -> Result<Graph> {
        let ExecutionOrder { functions, twins, .. } = order;
        let count = functions.len();
        let mut g = Graph { nodes: Vec::with_capacity(count), vars: Vec::with_capacity(2 * count), ..Graph::default() };
        let mut number: MixMap<usize, u32> = MixMap::with_capacity_and_hasher(2 * count, Default::default());
        let mut rewrites = false;
        for f in functions {
            let (inputs, outputs) = (f.inputs(), f.outputs());
            let x: SmallVec<[u32; 2]> = inputs.iter().map(|v| g.number(v, &mut number)).collect();
            let y: SmallVec<[u32; 1]> = outputs.iter().map(|v| g.number(v, &mut number)).collect();
            // The shapes as they were numbered, which fit together, whatever another thread does meanwhile.
            let shape = |v: &u32| &g.vars[*v as usize].shape;
            let (setup, is_new) = f.refresh_from(&inputs, x.iter().map(shape), &outputs, y.iter().map(shape))?;
            for (&y, shape) in y.iter().zip(&setup.y).filter(|_| is_new) {
                g.vars[y as usize].shape = shape.clone();
            }
            let at = g.nodes.len() as u32;
            let node = Node { f, x, y, setup };
            if is_sink(&node.f) {
                for (i, &x) in node.x.iter().enumerate() {
                    let v = &mut g.vars[x as usize];
                    (v.keeps_data, v.keeps_grad) = (v.keeps_data || v.observed.data, true);
                    // What is given is read again by the next run.
                    v.observed.grad |= node.f.function.gradient_of(i) == GradientPart::Given;
                }
            }
            let flows = node.flows(&g);
            let inherited = node.x.iter().any(|&x| g.vars[x as usize].needs_grad);
            let (is_once, of_user_code) = (node.f.rewrites().is_some(), node.f.function.on_variables().is_some());
            rewrites |= is_once;
            for &y in &node.y {
                let v = &mut g.vars[y as usize];
                v.producer = Some(at);
                v.once |= is_once;
                v.of_user_code = of_user_code;
                let mut s = v.var.lock();
                s.inherit(inherited);
                v.needs_grad = s.need_grad.unwrap_or(s.inherited);
                let own = s.own_need_grad();
                v.keeps_grad |= own == Some(true) && !flows; // backward ends there
                // A gradient that no leaf gets is computed if it is observed.
                v.flows = own.unwrap_or(flows || (inherited && (v.observed.grad || v.persistent)));
            }
            g.nodes.push(node);
        }
        if rewrites {
            g.nodes.iter().try_for_each(|n| n.f.check_rewrites(g.nodes.iter().map(|n| n.f.clone())))?;
        }
        for r in roots {
            let i = g.number(r, &mut number);
            g.vars[i as usize].root = true;
            g.roots.push(i);
        }
        g.keep_what_roots_share();
        let shared = |(i, v): (usize, &Var)| Some((i as u32, v.shared_gradient()?));
        let shared: Vec<(u32, usize)> = g.vars.iter().enumerate().filter_map(shared).collect();
        g.keep_gradients_that_are_data(&shared);
        let gradients = shared_gradients(&shared, &g);
        g.shares_gradients = !gradients.is_empty();
        if twins.is_some() || g.shares_gradients {
            let twins = twins.unwrap_or_default();
            for v in &mut g.vars {
                let of_gradient = v.shared_gradient().is_some_and(|at| gradients.contains_key(&at));
                v.twin_data = twins.contains_key(&storage(&v.var));
                v.twin = of_gradient || v.twin_data;
                v.recompute &= !v.twin;
            }
            let changes = |&x: &u32| twins.contains_key(&storage(&g.vars[x as usize].var));
            let once: Vec<u32> = g.nodes.iter().filter(|n| n.x.iter().any(changes)).flat_map(|n| n.y.clone()).collect();
            once.iter().for_each(|&y| g.vars[y as usize].once = true);
        }
        Ok(g)
    }

    /// Gradients that are the data of another variable of the graph (`bind_grad_output`) stay as that does.
    fn keep_gradients_that_are_data(&mut self, shared: &[(u32, usize)]) {
        if shared.is_empty() {
            return;
        }
        let data: MixMap<usize, ()> = self.vars.iter().map(|v| (storage(&v.var), ())).collect();
        let of_data = shared.iter().filter(|(_, at)| data.contains_key(at));
        of_data.for_each(|(v, _)| self.vars[*v as usize].grad_is_data = true);
    }

    /// What a root has in common with another variable, such as the one that it is an unlinked copy of, stays there.
    fn keep_what_roots_share(&mut self) {
        let shared = self.roots.iter().map(|&r| &self.var(r).var).filter(|r| r.is_shared());
        let at: SmallVec<[usize; 2]> = shared.map(|r| storage(r)).collect();
        if !at.is_empty() {
            let sharers = self.vars.iter_mut().filter(|v| v.var.is_shared() && at.contains(&storage(&v.var)));
            sharers.for_each(|v| (v.keeps_data, v.recompute) = (true, false));
        }
    }

    fn number(&mut self, v: &VarRef, number: &mut MixMap<usize, u32>) -> u32 {
        *number.entry(Arc::as_ptr(v) as usize).or_insert_with(|| {
            self.vars.push(Var::new(v.clone()));
            (self.vars.len() - 1) as u32
        })
    }

    /// The variables that functions read.
    pub(crate) fn read(&self) -> Vec<u32> {
        let mut read = vec![false; self.vars.len()];
        self.nodes.iter().flat_map(|n| &n.x).for_each(|&x| read[x as usize] = true);
        (0..self.vars.len() as u32).filter(|&v| read[v as usize]).collect()
    }

    /// The gradient of the root is given, so its own `need_grad` does not matter.
    pub(crate) fn start_at_root(&mut self) {
        let root = self.roots[0];
        let flows = self.var(root).producer.is_some_and(|n| self.nodes[n as usize].flows(self));
        self.vars[root as usize].flows = flows;
    }

    pub(crate) fn var(&self, i: u32) -> &Var {
        &self.vars[i as usize]
    }
}

impl Node {
    /// Whether a gradient can flow from the outputs to some input.
    fn flows(&self, g: &Graph) -> bool {
        self.x.iter().enumerate().any(|(i, &x)| g.var(x).flows && differentiable(&self.f, i))
    }

    /// The inputs whose gradients are wanted.
    pub(crate) fn wants(&self, g: &Graph) -> SmallVec<[bool; 4]> {
        self.x.iter().enumerate().map(|(i, &x)| g.var(x).flows && differentiable(&self.f, i)).collect()
    }

    /// The inputs that a gradient arrives at, be it computed or not.
    pub(crate) fn reaches(&self, g: &Graph) -> impl Iterator<Item = u32> {
        let inputs = self.x.iter().enumerate().filter(|(i, _)| differentiable(&self.f, *i)).map(|(_, &x)| x);
        inputs.filter(|&x| g.var(x).flows || g.var(x).leads_nowhere())
    }

    /// The data that an opaque function's backward reads.
    pub(crate) fn backward_reads(&self, g: &Graph) -> SmallVec<[u32; 4]> {
        if self.f.function.is_view() {
            return SmallVec::new();
        }
        let needs = self.f.needs(&self.setup, &self.wants(g)).unwrap_or(Needs::ALL);
        let x = self.x.iter().enumerate().filter(|(i, _)| needs.input(*i));
        let y = self.y.iter().enumerate().filter(|(i, _)| needs.output(*i));
        x.chain(y).map(|(_, &v)| g.memory(v)).collect()
    }

    /// What the backward pass of the function on its own reads, as NNabla says it: of functions of several inputs not the
    /// output, which ours may take as a short cut (`div2`).
    pub(crate) fn own_backward_reads(&self, g: &Graph) -> SmallVec<[u32; 4]> {
        let Some(e) = self.f.function.elementwise() else { return self.backward_reads(g) };
        let backward = &elementwise::rules(e, self.x.len()).backward;
        let wanted: SmallVec<[Vec<bool>; 4]> =
            self.wants(g).iter().enumerate().filter(|(_, w)| **w).map(|(i, _)| backward.uses(i)).collect();
        let n = self.x.len();
        let is_read = |k: usize| (k < n || n == 1) && wanted.iter().any(|uses| uses[k]);
        self.x.iter().chain(&self.y).enumerate().filter(|(k, _)| is_read(*k)).map(|(_, &v)| v).collect()
    }

    /// It reads or writes elements that another function writes: its place in the order matters.
    pub(crate) fn is_fixed(&self, g: &Graph) -> bool {
        self.x.iter().chain(&self.y).any(|&v| g.var(v).twin)
    }

    /// What it makes may differ from run to run, even where the leaves do not: it draws random numbers, or reads what the
    /// run writes.
    pub(crate) fn varies(&self, g: &Graph, written_once: &[usize]) -> bool {
        let is_sure = |x: &Var| x.producer.is_some() && written_once.contains(&storage(&x.var));
        let reads_twin = |(i, x): (usize, &u32)| {
            let x = g.var(*x);
            x.twin_data && !self.f.function.updates_input(i) && !is_sure(x)
        };
        draws(&self.f) || self.f.rewrites().is_some() || self.x.iter().enumerate().any(reads_twin)
    }

    /// The variables whose memory its inputs are read from.
    pub(crate) fn reads(&self, g: &Graph) -> SmallVec<[u32; 2]> {
        self.x.iter().map(|&x| g.memory(x)).collect()
    }

    /// A gradient passes through it.
    pub(crate) fn is_active(&self, g: &Graph) -> bool {
        self.y.iter().any(|&y| g.var(y).flows) && self.wants(g).contains(&true)
    }
}

/// What it reads are the roots of the run, as users see it: they look at them afterwards.
fn is_sink(f: &FnNode) -> bool {
    (&*f.function as &dyn std::any::Any).is::<crate::functions::Sink>()
}

fn differentiable(f: &FnNode, i: usize) -> bool {
    use crate::function::InputKind;
    f.function.differentiable(i) && f.function.def().input(i).kind != InputKind::Index
}

/// Whether a function draws random numbers: run again, it gives others.
fn draws(f: &FnNode) -> bool {
    let updates = |i: usize| f.function.updates_input(i);
    f.function.has_state() && !(0..f.inputs().len()).any(updates)
}

impl Var {
    fn new(var: VarRef) -> Var {
        let (observed, shape) = var.observed_and_shape();
        let s = var.lock();
        let flows = s.need_grad.unwrap_or(s.inherited);
        let (persistent, keeps_data) = (s.persistent, s.keeps_data());
        let recompute = s.recompute && s.parent.is_some() && !keeps_data;
        drop(s);
        let (producer, root, keeps_grad, twin, once) = (None, false, false, false, false);
        let (needs_grad, of_user_code) = (flows, false);
        Var {
            var,
            shape,
            producer,
            root,
            observed,
            persistent,
            keeps_data,
            recompute,
            keeps_grad,
            needs_grad,
            flows,
            twin,
            twin_data: false,
            grad_is_data: false,
            once,
            of_user_code,
        }
    }

    /// It needs a gradient that no leaf behind it gets, and is not observed: it is not computed.
    pub(crate) fn leads_nowhere(&self) -> bool {
        self.producer.is_some() && self.needs_grad && !self.flows
    }

    /// The storage of its gradient, if that is computed and may be another variable's too.
    fn shared_gradient(&self) -> Option<usize> {
        let shared = self.flows && (self.var.is_shared() || self.var.existing_grad().is_some_and(|g| g.is_shared()));
        shared.then(|| address(&self.var.grad()))
    }

    /// The data is observed after a run that drops what is `cleared`.
    pub(crate) fn data_is_visible(&self, cleared: bool) -> bool {
        self.stays_anyway() || self.once || (self.observed.data && !cleared)
    }

    /// Likewise at the gradient.
    pub(crate) fn grad_is_visible(&self, cleared: bool) -> bool {
        self.stays_anyway() || self.grad_is_data || (self.observed.grad && (!cleared || self.keeps_grad))
    }

    fn stays_anyway(&self) -> bool {
        self.producer.is_none() || self.persistent || self.twin
    }
}
