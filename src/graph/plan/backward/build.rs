//! Builds the steps of a backward plan: which gradients each unit makes, where they go, what ends with it.

use super::{
    BackwardAction, BackwardCall, BackwardKey, BackwardStep, BackwardTile, ForwardPlan, GradientTarget, GradientWrite,
};
use crate::function::GradientPart;
use crate::graph::plan::group::Unit;
use crate::graph::plan::order::{Graph, Node, Var, storage};
use crate::graph::plan::program::UnitBackward;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::expr::ssa::MixMap;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::Mutex;

/// For each variable whether its data is there. `forward`: the run whose data is read, and its slots of `g`'s variables.
pub(super) fn stored(g: &Graph, forward: Option<(&ForwardPlan, &[Option<u32>])>) -> Vec<bool> {
    let kept = |v: usize| match forward {
        Some((f, slots)) => slots[v].is_some_and(|slot| f.kept[slot as usize]),
        None => !g.vars[v].var.is_lost(),
    };
    let is_there = |v: &Var| v.producer.is_none() || v.var.is_overwritten();
    g.vars.iter().enumerate().map(|(i, v)| kept(i) || is_there(v)).collect()
}

pub(super) struct BackwardBuilder<'a> {
    g: &'a Graph,
    key: BackwardKey,
    /// Data that forward kept, or that the script has put in the place of what forward made.
    stored: Vec<bool>,
    /// Data that some step reads.
    read: RefCell<Vec<bool>>,
    /// See [`Graph::rewritten`].
    rewritten: Vec<usize>,
    /// Inputs of some function of the run.
    is_input: Vec<bool>,
}

impl<'a> BackwardBuilder<'a> {
    /// `stored`: the data that is there.
    pub(super) fn new(g: &'a Graph, key: BackwardKey, stored: Vec<bool>) -> BackwardBuilder<'a> {
        let mut read = vec![false; g.vars.len()];
        let opaque = g.nodes.iter().filter(|n| n.f.function.elementwise().is_none() && n.is_active(g));
        opaque.flat_map(|n| n.backward_reads(g)).for_each(|v| read[v as usize] = true);
        let mut is_input = vec![false; g.vars.len()];
        g.nodes.iter().flat_map(|n| &n.x).for_each(|&x| is_input[x as usize] = true);
        BackwardBuilder { g, key, stored, read: RefCell::new(read), rewritten: g.rewritten(), is_input }
    }

    /// The flags ask for its data to be dropped: that of inputs of functions, as in NNabla, and of what nobody holds.
    pub(super) fn is_cleared(&self, v: u32) -> bool {
        let var = self.g.var(v);
        self.key.clear_buffer && (self.is_input[v as usize] || !var.observed.data)
    }

    pub(super) fn stored(&self) -> &[bool] {
        &self.stored
    }

    pub(super) fn steps(&self, units: &[Unit]) -> Vec<BackwardStep> {
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
    pub(super) fn check_labels(&self) -> Result<()> {
        for node in &self.g.nodes {
            for (i, &x) in node.x.iter().enumerate() {
                let input = node.f.function.def().input(i);
                let v = self.g.var(x);
                if node.f.function.refuses_gradient(i) && v.flows && v.producer.is_none() {
                    let e =
                        Error::graph("labels and indices have no gradient, but need_grad is set").argument(input.name);
                    return Err(node.f.explain(e.hint("make the Variable with need_grad=False")));
                }
            }
        }
        Ok(())
    }

    fn unit(&self, unit: &Unit, reached: &mut [bool]) -> Option<BackwardAction> {
        let n = unit.nodes[0];
        let node = &self.g.nodes[n as usize];
        if unit.elementwise {
            return self.tile(unit, reached).map(|t| BackwardAction::Tile(Box::new(t)));
        }
        let wants = node.wants(self.g);
        if !node.y.iter().any(|&y| reached[y as usize]) || !wants.contains(&true) {
            return None;
        }
        let arrives: SmallVec<[bool; 2]> = node.y.iter().map(|&y| reached[y as usize]).collect();
        let mut target = |(i, &x): (usize, &u32)| match node.f.function.gradient_of(i) {
            GradientPart::Added => self.target(x, reached),
            GradientPart::Instead => self.begin(x, GradientWrite::Write, reached),
            GradientPart::Given => self.begin(x, GradientWrite::Own, reached),
        };
        let targets: SmallVec<[Option<GradientTarget>; 4]> =
            node.x.iter().enumerate().zip(&wants).map(|(x, &wanted)| wanted.then(|| target(x))).collect();
        if node.f.function.is_view() {
            return targets[0].map(|t| BackwardAction::View(n, t));
        }
        let needs = node.f.needs(&node.setup, &wants);
        let over = needs.and_then(|_| self.over(node, &arrives, &targets));
        let saves = node.f.saves(&node.setup).is_some();
        Some(BackwardAction::Call(BackwardCall { node: n, needs, saves, arrives, targets, over }))
    }

    /// The input whose gradient can be written over that of an output: both of one size, computed in the type in which
    /// they are stored, on the host, and the old one is not observed. And that output.
    fn over(&self, node: &Node, arrives: &[bool], targets: &[Option<GradientTarget>]) -> Option<(usize, usize)> {
        let context = &node.f.context;
        if self.key.hooked || context.gpu().is_some() || context.dtype() != context.compute_dtype() {
            return None;
        }
        let (call, x, y) = (node.setup.kernels()?, &node.setup.x, &node.setup.y);
        let ends = |v: u32| !self.g.var(v).root && !self.g.var(v).grad_is_visible(self.key.clear_buffer);
        let alone = |t: &GradientTarget| targets.iter().flatten().filter(|other| other.slot == t.slot).count() == 1;
        let at = |i: usize| {
            let from = call.grad_over(i)?;
            targets[i].filter(|t| t.how == GradientWrite::Write && alone(t))?;
            (arrives[from] && ends(node.y[from]) && y[from].size() == x[i].size()).then_some((i, from))
        };
        (0..targets.len()).find_map(at)
    }

    fn target(&self, v: u32, reached: &mut [bool]) -> GradientTarget {
        let first = !std::mem::replace(&mut reached[v as usize], true);
        let how = match self.g.var(v).producer {
            None => GradientWrite::Leaf,
            Some(_) if first => GradientWrite::Write,
            Some(_) => GradientWrite::Add,
        };
        GradientTarget { slot: v, how, twice: false }
    }

    /// A gradient that begins here, whatever others gave.
    fn begin(&self, v: u32, how: GradientWrite, reached: &mut [bool]) -> GradientTarget {
        reached[v as usize] = true;
        GradientTarget { slot: v, how, twice: false }
    }

    fn tile(&self, unit: &Unit, reached: &mut [bool]) -> Option<BackwardTile> {
        let arrives = |v: u32| reached[v as usize];
        let seen = |v: u32| !self.g.var(v).root && self.g.var(v).grad_is_visible(self.key.clear_buffer);
        let mut read = self.read.borrow_mut();
        let is_there = |v: u32| self.key.hooked || self.stored[v as usize] || read[v as usize]; // for hooks, to be written
        let back = UnitBackward::new(self.g, unit, arrives, is_there, seen);
        back.reads(self.g).into_iter().for_each(|v| read[v as usize] = true);
        back.outputs().next()?;
        let last = *unit.nodes.last().expect("units have nodes");
        let shape = self.g.var(self.g.nodes[last as usize].y[0]).shape.clone();
        let made = |v: u32| unit.nodes.iter().any(|&n| self.g.nodes[n as usize].y[0] == v);
        let target = |v: u32, reached: &mut [bool]| match made(v) {
            true => GradientTarget { slot: v, how: GradientWrite::Write, twice: false },
            false => self.target(v, reached),
        };
        let targets = back.outputs().map(|v| target(v, reached)).collect();
        let site = back.site;
        let remade = self.remade(unit, &back);
        Some(BackwardTile { node: last, unit: back, remade, shape, targets, programs: Mutex::default(), site })
    }

    /// What the program of a unit computes values again from, and the functions that read it.
    fn remade(&self, unit: &Unit, program: &UnitBackward) -> Vec<(u32, u32)> {
        let mut seen: MixMap<u32, ()> = MixMap::default();
        let again: SmallVec<[u32; 8]> = program.remade().map(|k| unit.nodes[k]).collect();
        let inner: MixMap<u32, ()> = again.iter().map(|&n| (self.g.nodes[n as usize].y[0], ())).collect();
        let of = |n: u32| self.g.nodes[n as usize].x.iter().map(move |&x| (x, n));
        again
            .into_iter()
            .flat_map(of)
            .filter(|(x, _)| !inner.contains_key(x) && seen.insert(*x, ()).is_none())
            .collect()
    }

    fn step(&self, unit: &Unit, what: BackwardAction) -> BackwardStep {
        let made = || unit.nodes.iter().flat_map(|&n| self.g.nodes[n as usize].y.iter().copied());
        let free_grads = made().filter(|&v| !self.g.var(v).grad_is_visible(self.key.clear_buffer)).collect();
        let clears = |v: &u32| self.is_cleared(*v) && !self.g.var(*v).keeps_data && !self.g.var(*v).root;
        let active = unit.nodes.iter().map(|&n| &self.g.nodes[n as usize]).filter(|n| n.is_active(self.g));
        let cleared = active.flat_map(|n| n.y.iter().copied()).filter(clears);
        let is_rewritten = |v: u32| !self.rewritten.is_empty() && self.rewritten.contains(&storage(&self.g.var(v).var));
        let free_data = cleared.filter(|&v| !is_rewritten(v) && !self.g.var(v).var.is_overwritten()).collect();
        let reads = self.reads(&what);
        let work = self.g.nodes[what.node() as usize].x.first().map_or(1, |&x| self.g.var(x).shape.size());
        let viewed = self.viewed(&what);
        BackwardStep { what, work, free_grads, free_data, reads, viewed, again: Vec::new(), forget: SmallVec::new() }
    }

    /// What is read from the memory of another variable: that, and the function that would have read it.
    fn viewed(&self, what: &BackwardAction) -> SmallVec<[(u32, u32); 1]> {
        let all = match what {
            BackwardAction::View(..) => Vec::new(),
            BackwardAction::Tile(t) => t.unit.loads(),
            BackwardAction::Call(c) => self.g.nodes[c.node as usize].x.to_vec(),
        };
        all.into_iter().filter_map(|v| self.g.view(v)).map(|w| (w.source, w.node)).collect()
    }

    fn reads(&self, what: &BackwardAction) -> SmallVec<[u32; 4]> {
        match what {
            BackwardAction::View(..) => SmallVec::new(),
            BackwardAction::Tile(t) => t.unit.reads(self.g).into_iter().collect(),
            BackwardAction::Call(c) => self.g.nodes[c.node as usize].backward_reads(self.g),
        }
    }
}
