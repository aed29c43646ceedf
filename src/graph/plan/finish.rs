//! Steps that are done where the one before them writes: a convolution, the normalization of its result by running statistics, and
//! the unit that reads that are one pass over the result, piece by piece, while it is in the cache.

use super::build::{ForwardAction, ForwardPlan, ForwardStep, ForwardTile};
use super::invoke;
use super::order::{Graph, Node};
use nnrs_kernels::array::Place;
use nnrs_kernels::error::Result;
use nnrs_kernels::tile::Walk;
use smallvec::SmallVec;

/// What a step does besides, before its own part.
pub(crate) struct FinishedCall {
    /// The function whose result is finished.
    pub(crate) node: u32,
    /// That which scales its channels, where the step is a unit.
    pub(crate) scaling: Option<u32>,
    /// Their results, which are in no array.
    pub(crate) inner: SmallVec<[u32; 2]>,
}

/// Joins steps of a plan. The later ones first: a unit belongs to the call right before it.
pub(super) fn join(g: &Graph, steps: &mut [ForwardStep]) {
    if g.vars.iter().any(|v| v.twin || v.once) {
        return; // when things are read and written shows there
    }
    for first in (0..steps.len()).rev() {
        let found = Joining::find(g, steps, first);
        if let Some(found) = found.filter(|found| (first..=found.last).all(|i| is_plain(g, &steps[i]))) {
            found.apply(g, steps, first);
        }
    }
}

/// What may as well run before or after others: it reads its inputs and makes its outputs, no more.
fn is_plain(g: &Graph, step: &ForwardStep) -> bool {
    let node = &g.nodes[step.what.node() as usize];
    let is_scaling = || node.setup.kernels().is_some_and(|call| call.scales().is_some());
    node.f.function.on_variables().is_none() && (!node.f.function.has_state() || is_scaling())
}

/// A chain of steps that begins with a call, and where it ends.
struct Joining {
    scaling: Option<usize>,
    last: usize,
    inner: SmallVec<[u32; 2]>,
}

impl Joining {
    fn find(g: &Graph, steps: &[ForwardStep], first: usize) -> Option<Joining> {
        let node = call(g, &steps[first])?;
        let sizes = node.setup.kernels()?.finishes().filter(|n| !n.contains(&0))?;
        let (mut scaling, mut last, mut inner) = (None, first, SmallVec::new());
        let mut made = node.y[0];
        if let Some(at) = only_reader(g, steps, first, made) {
            let is_scaling = |n: &&Node| {
                n.setup.kernels().and_then(|call| call.scales()) == Some(sizes)
                    && n.x.iter().filter(|x| g.memory(**x) == made).count() == 1
                    && n.x[0] == made
                    && n.f.context.site() == node.f.context.site()
            };
            if let Some(n) = call(g, &steps[at]).filter(is_scaling) {
                inner.push(made);
                (scaling, last, made) = (Some(at), at, n.y[0]);
            }
        }
        if let Some(at) = only_reader(g, steps, last, made) {
            let step = &steps[at];
            if matches!(&step.what, ForwardAction::Tile(t) if step.finishes.is_none() && reads_whole(g, t, node, made))
            {
                inner.push(made);
                last = at;
            }
        }
        (last > first).then_some(Joining { scaling, last, inner })
    }

    fn apply(self, g: &Graph, steps: &mut [ForwardStep], first: usize) {
        let node = steps[first].what.node();
        let mut reads = g.nodes[node as usize].reads(g);
        let scaling = self.scaling.map(|at| steps[at].what.node());
        reads.extend(scaling.iter().flat_map(|&n| g.nodes[n as usize].reads(g)));
        let mut free = std::mem::take(&mut steps[self.last].free);
        for step in &mut steps[first..self.last] {
            // What it reads must be there at its new place.
            let (later, now) = step.free.iter().copied().partition::<SmallVec<[u32; 2]>, _>(|v| reads.contains(v));
            step.free = now;
            free.extend(later);
            if let ForwardAction::Tile(t) = &mut step.what {
                t.steal.retain(|(_, source)| !reads.contains(source));
            }
        }
        [first].into_iter().chain(self.scaling).filter(|at| *at != self.last).for_each(|at| steps[at].is_later = true);
        let last = &mut steps[self.last];
        last.free = free;
        let scaling = scaling.filter(|n| *n != last.what.node());
        last.finishes = Some(Box::new(FinishedCall { node, scaling, inner: self.inner }));
    }
}

/// The function of a step that is a call on the host with one result, in the type that it is computed in.
fn call<'a>(g: &'a Graph, step: &ForwardStep) -> Option<&'a Node> {
    let ForwardAction::Call(n) = step.what else { return None };
    let node = &g.nodes[n as usize];
    let site = node.f.context.site();
    let is_plain = site.place == Place::Host && site.dtype == site.compute_dtype() && node.y.len() == 1;
    (is_plain && !step.is_later && node.f.function.on_variables().is_none()).then_some(node)
}

/// The step that reads `v`, if there is no other one, and `v` ends with it.
fn only_reader(g: &Graph, steps: &[ForwardStep], made: usize, v: u32) -> Option<usize> {
    let reads = |step: &ForwardStep| {
        let node = &g.nodes[step.what.node() as usize];
        step.what.reads(&node.reads(g)).contains(&v)
    };
    let mut readers = (made + 1..steps.len()).take_while(|&i| i == made + 1 || !steps[i - 1].free.contains(&v));
    let first = readers.find(|&i| reads(&steps[i]))?;
    (steps[first].free.contains(&v) && g.view(v).is_none()).then_some(first)
}

/// Whether a unit with one result of the size goes through `v` element by element.
fn reads_whole(g: &Graph, t: &ForwardTile, node: &Node, v: u32) -> bool {
    let same = g.var(node.y[0]).shape.size() == t.n && t.site == node.f.context.site();
    same && t.sinks.len() == 1 && t.sources.iter().all(|(source, walk)| *source != v || *walk == Walk::Dense)
}

impl ForwardPlan {
    /// Runs a step that finishes the result of another function.
    pub(super) fn finish(&self, step: &ForwardStep, finished: &FinishedCall) -> Result<()> {
        let at = |n: u32| &self.nodes[n as usize];
        let (call, own) = (at(finished.node), at(step.what.node()));
        let (scaling, unit) = match &step.what {
            ForwardAction::Tile(t) => (finished.scaling.map(at), finished.inner.last().map(|&result| (&**t, result))),
            _ => (Some(own), None),
        };
        let made = step.what.makes(&own.y)[0];
        let failed = |e| {
            self.drop_data(made);
            call.f.explain(e)
        };
        if invoke::finished(call, scaling, unit, made, &self.slots).map_err(failed)? {
            finished.inner.iter().for_each(|&v| self.drop_data(v));
            return Ok(());
        }
        // Arrays that share memory: one after the other.
        for n in [Some(finished.node), finished.scaling].into_iter().flatten() {
            ForwardAction::Call(n).run(at(n), &self.slots, false)?;
        }
        step.what.run(own, &self.slots, false)
    }
}
