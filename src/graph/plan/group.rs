//! Which element-wise functions run together. A group runs at the place of its last member, so it may hold only
//! functions whose outputs no function outside reads before that.

use super::order::Graph;
use nnrs_kernels::array::Site;
use nnrs_kernels::shape::Shape;

/// Members of one group at most: keeps programs and their scratch small.
const MOST: usize = 96;

/// A run of nodes that is planned as one: one opaque function, or a group of element-wise ones.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    /// Nodes in the order of running.
    pub(crate) nodes: Vec<u32>,
    pub(crate) elementwise: bool,
}

struct OpenUnit {
    nodes: Vec<u32>,
    shape: Shape,
    site: Site,
    open: bool,
    /// Inputs that are broadcast and get a gradient: each may be read by one member only, so that sums keep their order.
    reduced: Vec<u32>,
}

/// Splits the graph into units, in an order that is right for running forward and, reversed, backward.
pub(crate) fn units(g: &Graph) -> Vec<Unit> {
    let mut b = UnitBuilder { g, groups: Vec::new(), of: vec![None; g.nodes.len()] };
    (0..g.nodes.len() as u32).for_each(|n| b.add(n));
    b.finish()
}

struct UnitBuilder<'a> {
    g: &'a Graph,
    groups: Vec<OpenUnit>,
    of: Vec<Option<usize>>,
}

impl UnitBuilder<'_> {
    fn add(&mut self, n: u32) {
        let node = &self.g.nodes[n as usize];
        let producers: Vec<usize> = self.producers(n);
        let elementwise = node.f.function.elementwise().is_some();
        let fixed = node.is_fixed(self.g);
        if !elementwise || fixed {
            producers.iter().for_each(|&p| self.groups[p].open = false);
        }
        if !elementwise {
            return;
        }
        let shape = self.g.var(node.y[0]).shape.clone();
        let site = node.f.context.site();
        let reduced: Vec<u32> =
            node.x.iter().copied().filter(|&x| self.g.var(x).shape != shape && self.g.var(x).flows).collect();
        let joins: Vec<usize> =
            producers.iter().copied().filter(|&p| self.fits(p, n, &shape, site, &reduced)).collect();
        let total: usize = joins.iter().map(|&p| self.groups[p].nodes.len()).sum();
        let mut joins = if total < MOST { joins } else { Vec::new() };
        if self.reduce_in_common(&joins) {
            joins.truncate(1);
        }
        producers.iter().filter(|p| !joins.contains(p)).for_each(|&p| self.groups[p].open = false);
        match joins.first() {
            None => {
                self.of[n as usize] = Some(self.groups.len());
                self.groups.push(OpenUnit { nodes: vec![n], shape, site, open: !fixed, reduced });
            }
            Some(&into) => {
                joins[1..].iter().for_each(|&from| self.merge(from, into));
                self.of[n as usize] = Some(into);
                self.groups[into].nodes.push(n);
                self.groups[into].reduced.extend(reduced);
            }
        }
    }

    /// True if two of the groups sum the gradient of one input.
    fn reduce_in_common(&self, groups: &[usize]) -> bool {
        let mut all: Vec<u32> = groups.iter().flat_map(|&p| self.groups[p].reduced.iter().copied()).collect();
        let n = all.len();
        all.sort_unstable();
        all.dedup();
        all.len() < n
    }

    /// Groups that make inputs of node `n`.
    fn producers(&self, n: u32) -> Vec<usize> {
        let node = &self.g.nodes[n as usize];
        let made_by = |&x: &u32| self.g.var(x).producer.and_then(|p| self.of[p as usize]);
        let mut list: Vec<usize> = node.x.iter().filter_map(made_by).collect();
        list.sort_unstable();
        list.dedup();
        list
    }

    fn fits(&self, group: usize, n: u32, shape: &Shape, site: Site, reduced: &[u32]) -> bool {
        let gr = &self.groups[group];
        let node = &self.g.nodes[n as usize];
        let inside = |&x: &u32| {
            let v = self.g.var(x);
            v.producer.and_then(|p| self.of[p as usize]) != Some(group) || v.shape == *shape
        };
        gr.open
            && gr.site == site
            && gr.shape == *shape
            && node.x.iter().all(inside)
            && !reduced.iter().any(|r| gr.reduced.contains(r))
    }

    fn merge(&mut self, from: usize, into: usize) {
        let OpenUnit { nodes, reduced, .. } = &mut self.groups[from];
        let (nodes, reduced) = (std::mem::take(nodes), std::mem::take(reduced));
        self.groups[from].open = false;
        nodes.iter().for_each(|&n| self.of[n as usize] = Some(into));
        let target = &mut self.groups[into];
        target.nodes.extend(nodes);
        target.nodes.sort_unstable();
        target.reduced.extend(reduced);
    }

    fn finish(self) -> Vec<Unit> {
        let mut units: Vec<Unit> = self
            .groups
            .into_iter()
            .filter(|g| !g.nodes.is_empty())
            .map(|g| Unit { nodes: g.nodes, elementwise: true })
            .collect();
        let opaque = (0..self.g.nodes.len() as u32).filter(|&n| self.of[n as usize].is_none());
        units.extend(opaque.map(|n| Unit { nodes: vec![n], elementwise: false }));
        units.sort_by_key(|u| *u.nodes.last().expect("units have nodes"));
        units
    }
}

/// The same order, each element-wise function on its own: for fusion off.
pub(crate) fn split(units: Vec<Unit>) -> Vec<Unit> {
    let single = |u: &Unit, n: u32| Unit { nodes: vec![n], elementwise: u.elementwise };
    units.iter().flat_map(|u| u.nodes.iter().map(move |&n| single(u, n))).collect()
}

/// Each function on its own, in this order.
pub(crate) fn in_order(g: &Graph, order: Vec<u32>) -> Vec<Unit> {
    let elementwise = |n: u32| g.nodes[n as usize].f.function.elementwise().is_some();
    order.into_iter().map(|n| Unit { nodes: vec![n], elementwise: elementwise(n) }).collect()
}

/// Single functions in the order of ranks: for hooks. (Backward keeps to the order of the units, whose sums it makes.)
pub(crate) fn ranked(units: &[Unit]) -> Vec<Unit> {
    let mut list: Vec<Unit> =
        units.iter().map(|u| Unit { nodes: u.nodes.clone(), elementwise: u.elementwise }).collect();
    list.sort_by_key(|u| u.nodes[0]);
    list
}
