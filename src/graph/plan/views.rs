//! Outputs that are never made: a transpose, a slice, a broadcast is another array's elements at other places, and where all
//! readers take strides, they read that array instead.

use super::order::{Graph, Node, Var};
use crate::function::{InputKind, Needs, View};
use crate::graph::node::FnNode;
use nnrs_kernels::array::Strided;
use smallvec::SmallVec;
use std::cell::OnceCell;

/// A variable that has no memory of its own.
pub(crate) struct Viewed {
    /// The variable whose memory is read, which has some.
    pub(crate) source: u32,
    /// Where the elements lie in that.
    pub(crate) how: Strided,
    /// The function that would make it.
    pub(crate) node: u32,
}

impl Graph {
    /// Finds the outputs that need not be made. Their sources' data is then read by their readers, in backward too.
    pub(crate) fn find_views(&mut self) {
        let gives = |n: &Node| n.setup.kernels().is_some_and(|call| call.axes(0).is_some());
        if !self.nodes.iter().any(gives) || self.has_user_code() {
            return;
        }
        let mut views: Vec<Option<Box<Viewed>>> = Vec::new();
        views.resize_with(self.vars.len(), || None);
        let search = Search::new(self);
        for (n, node) in self.nodes.iter().enumerate() {
            // All of them, or the function runs.
            let found = (0..node.y.len()).map(|i| search.view_of(n as u32, i, &views));
            let Some(found) = found.collect::<Option<SmallVec<[Viewed; 1]>>>() else { continue };
            node.y.iter().zip(found).for_each(|(&v, view)| views[v as usize] = Some(Box::new(view)));
        }
        self.views = views;
    }

    /// How a variable is read that has no memory of its own.
    pub(crate) fn view(&self, v: u32) -> Option<&Viewed> {
        self.views.get(v as usize)?.as_deref()
    }

    /// The variable whose memory is read for `v`.
    pub(crate) fn memory(&self, v: u32) -> u32 {
        self.view(v).map_or(v, |w| w.source)
    }
}

/// It cannot be observed: no handle, no flag, no other variable.
fn is_passing(v: &Var) -> bool {
    let is_kept = v.root || v.observed.any() || v.persistent || v.keeps_data || v.recompute;
    !is_kept && !v.twin && !v.once && !v.of_user_code && !v.var.is_shared() && !v.var.is_overwritten()
}

/// Its outputs are of the type of its context.
fn has_its_type(f: &FnNode) -> bool {
    (0..f.function.def().outputs.len().max(1)).all(|i| f.function.output_dtype(i).is_none())
}

/// The search for views in a graph.
struct Search<'a> {
    g: &'a Graph,
    /// Who reads each variable: functions and the numbers of their inputs.
    readers: Vec<SmallVec<[(u32, usize); 2]>>,
    /// What is known of the functions as readers: none that read no views.
    known: Vec<OnceCell<Option<Reader>>>,
}

/// A function that may read views.
struct Reader {
    is_elementwise: bool,
    /// What its backward pass may read; `None` if that has no kernel.
    needs: Option<Needs>,
}

impl<'a> Search<'a> {
    fn new(g: &'a Graph) -> Search<'a> {
        let mut readers = vec![SmallVec::new(); g.vars.len()];
        for (n, node) in g.nodes.iter().enumerate() {
            node.x.iter().enumerate().for_each(|(k, &x)| readers[x as usize].push((n as u32, k)));
        }
        Search { g, readers, known: g.nodes.iter().map(|_| OnceCell::new()).collect() }
    }

    /// Output `i` of a function as a view, if its readers alone can tell.
    fn view_of(&self, n: u32, i: usize, views: &[Option<Box<Viewed>>]) -> Option<Viewed> {
        let node = &self.g.nodes[n as usize];
        let axes = node.setup.kernels()?.axes(i)?;
        let (x, y) = (node.x[0], node.y[i]);
        let (source, how) = match &views[x as usize] {
            Some(w) => (w.source, axes.of(&w.how)),
            None => (x, axes.of(&Strided::dense(&node.setup.x[0]))),
        };
        let from = self.g.var(source);
        let passes = is_passing(self.g.var(y)) && !from.twin && !from.once && self.keeps_type(node, from);
        let readers = &self.readers[y as usize];
        if !passes || !readers.iter().all(|&(r, k)| self.takes(r, k, &how, node)) {
            return None;
        }
        // What the script writes to the source between forward and backward is none of the view's.
        let is_read = |&(r, k): &(u32, usize)| self.reader(r).and_then(|r| r.needs).is_some_and(|needs| needs.input(k));
        (!readers.iter().any(is_read) || self.is_closed(from)).then_some(Viewed { source, how, node: n })
    }

    /// The elements are stored as the function would store them, or reading converts them to the same.
    fn keeps_type(&self, node: &Node, from: &Var) -> bool {
        let site = node.f.context.site();
        let has_it = |f: &FnNode| f.context.site() == site && has_its_type(f);
        site.dtype == site.compute_dtype() || self.maker(from).1.is_some_and(has_it)
    }

    /// Only the functions that read it can reach its memory.
    fn is_closed(&self, v: &Var) -> bool {
        let (passes, maker) = self.maker(v);
        passes && maker.is_some()
    }

    /// The function that makes an array, behind others that only give it another shape, and whether these and it are passing.
    fn maker(&self, mut v: &'a Var) -> (bool, Option<&'a FnNode>) {
        let mut passes = true;
        loop {
            passes &= is_passing(v);
            let Some(node) = v.producer.map(|n| &self.g.nodes[n as usize]) else { return (passes, None) };
            if !node.f.function.is_view() {
                return (passes, Some(&node.f));
            }
            v = self.g.var(node.x[0]);
        }
    }

    /// Function `r` reads its input `k` where it lies in another array as `how` says, in the type and place of `maker`.
    fn takes(&self, r: u32, k: usize, how: &Strided, maker: &Node) -> bool {
        let (node, Some(reader)) = (&self.g.nodes[r as usize], self.reader(r)) else { return false };
        let (f, site) = (&node.f, maker.f.context.site());
        if f.context.site() != site || f.function.updates_input(k) || f.rewrites() == Some(k) {
            return false;
        }
        if reader.is_elementwise {
            return how.reads_well_at(site.place);
        }
        let is_index = f.function.def().input(k).kind == InputKind::Index;
        let Some(call) = node.setup.kernels().filter(|_| !is_index && reader.needs.is_some()) else { return false };
        View::is_dense(how, site.place) || call.takes_strides(k, how, site.place)
    }

    fn reader(&self, n: u32) -> Option<&Reader> {
        let find = || {
            let (g, node) = (self.g, &self.g.nodes[n as usize]);
            if node.f.function.is_view() || node.is_fixed(g) {
                return None;
            }
            let is_elementwise = node.f.function.elementwise().is_some();
            let is_passed = !node.f.no_grad && node.is_active(g);
            let needs = match is_passed {
                false => Some(Needs::NONE),
                true if is_elementwise => Some(Needs::ALL),
                true => {
                    let saves = node.f.saves(&node.setup).is_some();
                    node.f.needs(&node.setup, &node.wants(g)).map(|needs| if saves { Needs::ALL } else { needs })
                }
            };
            Some(Reader { is_elementwise, needs })
        };
        self.known[n as usize].get_or_init(find).as_ref()
    }
}
