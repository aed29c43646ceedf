//! Outputs that are never made: a transpose, a slice, a broadcast is another array's elements at other places, and where all
//! readers take strides, they read that array instead.

use super::order::{Graph, Node, Var};
use crate::function::InputKind;
use crate::graph::node::FnNode;
use nnrs_kernels::array::{Place, Strided};
use smallvec::SmallVec;

/// A variable that has no memory of its own.
pub(crate) struct Viewed {
    /// The variable whose memory is read, which has some.
    pub(crate) source: u32,
    /// Where the elements lie in that.
    pub(crate) how: Strided,
    /// The function that would make it.
    pub(crate) node: u32,
}

/// Who reads a variable: functions and the numbers of their inputs.
type Readers = Vec<SmallVec<[(u32, usize); 2]>>;

impl Graph {
    /// Finds the outputs that need not be made. Their sources' data is then read by their readers, in backward too.
    pub(crate) fn find_views(&mut self) {
        let gives = |n: &Node| n.setup.kernels().is_some_and(|call| call.axes(0).is_some());
        if !self.nodes.iter().any(gives) || self.has_user_code() {
            return;
        }
        let mut readers: Readers = vec![SmallVec::new(); self.vars.len()];
        for (n, node) in self.nodes.iter().enumerate() {
            node.x.iter().enumerate().for_each(|(k, &x)| readers[x as usize].push((n as u32, k)));
        }
        self.views.resize_with(self.vars.len(), || None);
        for n in 0..self.nodes.len() as u32 {
            let y = self.nodes[n as usize].y.clone();
            let view = |(i, &v): (usize, &u32)| self.view_of(n, i, &readers[v as usize]);
            // All of them, or the function runs.
            let Some(views) = y.iter().enumerate().map(view).collect::<Option<SmallVec<[Viewed; 1]>>>() else {
                continue;
            };
            y.iter().zip(views).for_each(|(&v, view)| self.views[v as usize] = Some(Box::new(view)));
        }
    }

    /// Output `i` of a function as a view, if these readers alone can tell.
    fn view_of(&self, n: u32, i: usize, readers: &[(u32, usize)]) -> Option<Viewed> {
        let node = &self.nodes[n as usize];
        let axes = node.setup.kernels()?.axes(i)?;
        let (x, v) = (node.x[0], self.var(node.y[i]));
        let (source, how) = match self.view(x) {
            Some(w) => (w.source, axes.of(&w.how)),
            None => (x, axes.of(&Strided::dense(&node.setup.x[0]))),
        };
        let from = self.var(source);
        let passes = is_passing(v) && !from.twin && !from.once && self.keeps_type(node, from);
        if !passes || !readers.iter().all(|&(r, k)| self.takes(r, k, &how, node)) {
            return None;
        }
        // What the script writes to the source between forward and backward is none of the view's.
        let is_read_later = readers.iter().any(|&(r, k)| self.reads_in_backward(&self.nodes[r as usize], k));
        (!is_read_later || self.is_closed(from)).then_some(Viewed { source, how, node: n })
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
    fn maker<'a>(&'a self, mut v: &'a Var) -> (bool, Option<&'a FnNode>) {
        let mut passes = true;
        loop {
            passes &= is_passing(v);
            let Some(node) = v.producer.map(|n| &self.nodes[n as usize]) else { return (passes, None) };
            if !node.f.function.is_view() {
                return (passes, Some(&node.f));
            }
            v = self.var(node.x[0]);
        }
    }

    /// Function `r` reads its input `k` where it lies in another array as `how` says, in the type and place of `maker`.
    fn takes(&self, r: u32, k: usize, how: &Strided, maker: &Node) -> bool {
        let node = &self.nodes[r as usize];
        let (f, site) = (&node.f, maker.f.context.site());
        let is_written = f.function.updates_input(k) || f.rewrites() == Some(k);
        if f.context.site() != site || is_written || f.function.is_view() || node.is_fixed(self) {
            return false;
        }
        if f.function.elementwise().is_some() {
            return if site.place == Place::Host { how.reads_well() } else { how.strides.iter().all(|s| *s >= 0) };
        }
        let Some(call) = node.setup.kernels().filter(|_| f.function.def().input(k).kind != InputKind::Index) else {
            return false;
        };
        let has_kernel = || !node.is_active(self) || f.needs(&node.setup, &node.wants(self)).is_some();
        let is_dense = how.is_contiguous() && site.place == Place::Host;
        (is_dense || call.takes_strides(k, how, site.place)) && has_kernel()
    }

    /// Its backward pass may read its input `k`.
    fn reads_in_backward(&self, node: &Node, k: usize) -> bool {
        if node.f.no_grad || !node.is_active(self) {
            return false;
        }
        let is_read = |needs: crate::function::Needs| needs.input(k);
        node.f.function.elementwise().is_some()
            || node.f.needs(&node.setup, &node.wants(self)).is_none_or(is_read)
            || node.f.saves(&node.setup).is_some()
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
