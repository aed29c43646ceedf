//! Data that the engine did not keep, computed again when somebody wants it after all.

use super::build::{Forward, PlanNode, Slot, living_plan};
use super::exec::How;
use super::single::run_arrays;
use crate::array::NdArray;
use crate::error::{Error, Result};
use crate::function::expr::ssa::MixMap;
use crate::graph::mode;
use crate::graph::variable::{VarNode, VarRef};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Makes sure that the data of a variable is there, if its plan left it out.
pub(crate) fn materialize(v: &VarRef) -> Result<()> {
    let Some((plan, id)) = pending(v)? else { return if v.is_shed() { gather(v) } else { Ok(()) } };
    let slot = plan.slot_of(id).ok_or_else(|| gone(v))?;
    let (nodes, reads) = plan.missing(slot);
    plan.check_leaves(&nodes, &reads)?;
    plan.compute_again(slot)?;
    v.changed();
    Ok(())
}

/// The plan that left the data out, if it is missing, and its number there.
fn pending(v: &VarNode) -> Result<Option<(Arc<Forward>, u64)>> {
    match v.elided() {
        Some((plan, id)) if v.data().storage().is_empty() => {
            plan.upgrade().or_else(|| other_plan(v, id)).map(|p| Some((p, id))).ok_or_else(|| gone(v))
        }
        _ => Ok(None),
    }
}

/// A plan that has run the same functions, when the one that ran them last has gone with its root.
fn other_plan(v: &VarNode, id: u64) -> Option<Arc<Forward>> {
    let plan = living_plan(&*v.parent()?)?;
    let nodes = plan.missing(plan.slot_of(id)?).0;
    plan.reads_as_now(&nodes).then_some(plan)
}

fn gone(v: &VarNode) -> Error {
    let shape = v.shape();
    Error::graph(format!(
        "the data of this intermediate variable {shape} was not kept, and the graph that could compute it again is gone"
    ))
    .hint("hold the Variable while forward runs, or set its persistent flag, to keep its data")
}

/// Computes a shed variable by the functions behind it, without a plan; only its own data stays.
fn gather(target: &VarRef) -> Result<()> {
    let (mut nodes, mut todo) = (Vec::new(), vec![target.clone()]);
    let mut seen: MixMap<u64, ()> = MixMap::default();
    while let Some(v) = todo.pop() {
        match v.parent().filter(|_| v.is_shed()) {
            Some(f) if seen.insert(f.id, ()).is_none() => {
                todo.extend(f.inputs());
                nodes.push(f);
            }
            Some(_) => {}
            None if v.is_shed() => return Err(gone(&v)), // it has lost its history
            None => materialize(&v)?,
        }
    }
    nodes.sort_by_key(|f| (f.rank(), f.id));
    let mut made: Vec<VarRef> = Vec::new();
    for f in &nodes {
        let outputs = f.outputs();
        let x: SmallVec<[NdArray; 4]> = f.inputs().iter().map(|v| v.data()).collect();
        let y: SmallVec<[NdArray; 2]> = outputs.iter().map(|v| v.data()).collect();
        let absent = outputs.iter().filter(|v| v.is_shed() && !Arc::ptr_eq(v, target));
        made.extend(absent.cloned());
        mode::again(|| run_arrays(f, &x, &y, How::AGAIN)).map_err(|e| f.explain(e))?;
    }
    made.iter().for_each(|v| drop(v.data().release()));
    Ok(())
}

impl Forward {
    pub(crate) fn slot_of(&self, id: u64) -> Option<u32> {
        self.slots.iter().position(|s| s.var_id == id).map(|i| i as u32)
    }

    /// Computes slot `target` and everything that is missing on the way; only `target` stays. What is there is not touched.
    pub(crate) fn compute_again(&self, target: u32) -> Result<()> {
        let (nodes, _) = self.missing(target);
        let data = |v: u32| self.slots[v as usize].data.clone();
        let mut made: SmallVec<[u32; 8]> = SmallVec::new();
        for &n in &nodes {
            let node = &self.nodes[n as usize];
            let absent = |v: &u32| data(*v).storage().is_empty();
            made.extend(node.y.iter().copied().filter(|v| *v != target && absent(v)));
            let x: SmallVec<[NdArray; 4]> = node.x.iter().map(|&v| data(v)).collect();
            let spare = |v: &u32| NdArray::new(self.slots[*v as usize].shape.clone());
            let y: SmallVec<[NdArray; 2]> =
                node.y.iter().map(|v| if absent(v) { data(*v) } else { spare(v) }).collect();
            mode::again(|| run_arrays(&node.f, &x, &y, How::AGAIN)).map_err(|e| node.f.explain(e))?;
        }
        made.iter().for_each(|&v| drop(data(v).release()));
        Ok(())
    }

    /// True if functions of the plan still read what they read when the plan was made.
    fn reads_as_now(&self, nodes: &[u32]) -> bool {
        nodes.iter().map(|&n| &self.nodes[n as usize]).all(|n| {
            let now = n.f.inputs();
            now.len() == n.x.len() && now.iter().zip(&n.x).all(|(v, &x)| v.data().is(&self.slots[x as usize].data))
        })
    }

    /// An error unless the leaves among `slots` are as they were when the plan last ran, and all arrays of `nodes` have the
    /// plan's shapes.
    fn check_leaves(&self, nodes: &[u32], slots: &[u32]) -> Result<()> {
        let changed = self.leaves.iter().any(|(slot, count)| {
            let Slot { data, twin, .. } = &self.slots[*slot as usize];
            let written = *twin || !data.storage().is_as_at(count.load(Relaxed));
            slots.contains(slot) && written
        });
        let fits = |v: &u32| self.slots[*v as usize].data.shape() == self.slots[*v as usize].shape;
        let fit = nodes.iter().map(|&n| &self.nodes[n as usize]).all(|n| n.x.iter().chain(&n.y).all(fits));
        match changed || !fit {
            false => Ok(()),
            true => Err(Error::graph(
                "the data of an intermediate variable was not kept, and cannot be computed again: an input of the graph has changed since forward",
            )
            .hint("hold the Variable while forward runs, or set its persistent flag, to keep its data; or run forward again")),
        }
    }

    /// The nodes to run, in order, and the slots that they read (what they only update has no part in what they make).
    fn missing(&self, target: u32) -> (Vec<u32>, Vec<u32>) {
        let mut made_by: MixMap<u32, u32> = MixMap::default();
        for (n, node) in self.nodes.iter().enumerate() {
            made_by.extend(node.y.iter().map(|&y| (y, n as u32)));
        }
        let (mut nodes, mut reads, mut todo) = (Vec::new(), Vec::new(), vec![(target, true)]);
        let mut seen: MixMap<u32, ()> = MixMap::default();
        while let Some((v, read)) = todo.pop() {
            let there = !self.slots[v as usize].data.storage().is_empty();
            match made_by.get(&v).filter(|_| !there) {
                Some(&n) if seen.insert(n, ()).is_none() => {
                    let PlanNode { f, x, .. } = &self.nodes[n as usize];
                    nodes.push(n);
                    todo.extend(x.iter().enumerate().map(|(i, &x)| (x, !f.function.updates_input(i))));
                }
                None if read => reads.push(v),
                _ => {}
            }
        }
        nodes.sort_unstable();
        (nodes, reads)
    }
}
