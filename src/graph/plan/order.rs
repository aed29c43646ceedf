//! The functions behind some variables, in the order of running: by rank, ties by creation.

use crate::error::Result;
use crate::function::Needs;
use crate::function::expr::ssa::MixMap;
use crate::graph::node::FnNode;
use crate::graph::variable::{VarNode, VarRef};
use crate::shape::Shape;
use smallvec::SmallVec;
use std::sync::Arc;

/// A sub-graph with numbered variables.
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) vars: Vec<Var>,
    /// Numbers of the roots.
    pub(crate) roots: Vec<u32>,
}

pub(crate) struct Node {
    pub(crate) f: Arc<FnNode>,
    pub(crate) x: SmallVec<[u32; 2]>,
    pub(crate) y: SmallVec<[u32; 1]>,
}

pub(crate) struct Var {
    pub(crate) var: VarRef,
    pub(crate) shape: Shape,
    /// The node that makes it, if that is part of the sub-graph.
    pub(crate) producer: Option<u32>,
    pub(crate) root: bool,
    pub(crate) held: bool,
    pub(crate) persistent: bool,
    /// Dropped after its last reading in forward, computed again for backward.
    pub(crate) recompute: bool,
    /// A gradient may flow to it.
    pub(crate) flows: bool,
}

/// All functions behind `roots`, sorted.
pub(crate) fn collect(roots: &[VarRef]) -> Vec<Arc<FnNode>> {
    let mut found: Vec<Arc<FnNode>> = Vec::new();
    let mut seen: MixMap<usize, ()> = MixMap::default();
    let mut stack: Vec<VarRef> = roots.iter().rev().cloned().collect();
    while let Some(v) = stack.pop() {
        let Some(f) = v.parent() else { continue };
        if seen.insert(Arc::as_ptr(&f) as usize, ()).is_none() {
            stack.extend(f.links().inputs.iter().cloned());
            found.push(f);
        }
    }
    found.sort_by_key(|f| (f.rank(), f.id));
    if found.iter().any(|f| f.rank() != rank_of(f)) {
        refresh_ranks(&mut found);
    }
    found
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
    /// Numbers the variables of `nodes`, brings shapes and inherited flags up to date.
    pub(crate) fn new(nodes: Vec<Arc<FnNode>>, roots: &[VarRef]) -> Result<Graph> {
        let mut g = Graph { nodes: Vec::with_capacity(nodes.len()), vars: Vec::new(), roots: Vec::new() };
        let mut number: MixMap<usize, u32> = MixMap::default();
        for f in nodes {
            f.refresh()?;
            let x = f.inputs().iter().map(|v| g.number(v, &mut number)).collect();
            let y: SmallVec<[u32; 1]> = f.outputs().iter().map(|v| g.number(v, &mut number)).collect();
            let at = g.nodes.len() as u32;
            let node = Node { f, x, y };
            let flows = node.flows(&g);
            let inherited = node.x.iter().any(|&x| g.vars[x as usize].var.need_grad());
            for &y in &node.y {
                let v = &mut g.vars[y as usize];
                v.producer = Some(at);
                v.shape = v.var.shape();
                let mut s = v.var.lock();
                s.inherited = inherited;
                v.flows = s.need_grad.unwrap_or(flows);
            }
            g.nodes.push(node);
        }
        for r in roots {
            let i = g.number(r, &mut number);
            g.vars[i as usize].root = true;
            g.roots.push(i);
        }
        Ok(g)
    }

    fn number(&mut self, v: &VarRef, number: &mut MixMap<usize, u32>) -> u32 {
        *number.entry(Arc::as_ptr(v) as usize).or_insert_with(|| {
            self.vars.push(Var::new(v.clone()));
            (self.vars.len() - 1) as u32
        })
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

    /// The data that an opaque function's backward reads.
    pub(crate) fn backward_reads(&self, g: &Graph) -> SmallVec<[u32; 4]> {
        if self.f.function.is_view() {
            return SmallVec::new();
        }
        let needs = self.f.function.needs(&self.wants(g)).unwrap_or(Needs::ALL);
        let x = self.x.iter().enumerate().filter(|(i, _)| needs.input(*i));
        let y = self.y.iter().enumerate().filter(|(i, _)| needs.output(*i));
        x.chain(y).map(|(_, &v)| v).collect()
    }

    /// A gradient passes through it.
    pub(crate) fn is_active(&self, g: &Graph) -> bool {
        self.y.iter().any(|&y| g.var(y).flows) && self.wants(g).contains(&true)
    }
}

fn differentiable(f: &FnNode, i: usize) -> bool {
    use crate::function::InputKind;
    f.function.differentiable(i) && f.function.def().input(i).kind != InputKind::Index
}

impl Var {
    fn new(var: VarRef) -> Var {
        let (held, flows, shape) = (is_held(&var), var.need_grad(), var.shape());
        let (persistent, recompute) = {
            let s = var.lock();
            (s.persistent, s.recompute && s.parent.is_some())
        };
        Var { var, shape, producer: None, root: false, held, persistent, recompute: recompute && !persistent, flows }
    }

    /// Somebody may look at it after a run that drops what is `cleared`.
    pub(crate) fn visible(&self, cleared: bool) -> bool {
        self.producer.is_none() || self.persistent || (self.held && !cleared)
    }
}

/// True if somebody outside the graph may look at the variable or its array.
pub(crate) fn is_held(v: &VarNode) -> bool {
    v.is_held() || v.data().is_held()
}
