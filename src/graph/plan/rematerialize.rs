//! What the backward pass computes again: data that forward did not keep, made in the forward way just before it is
//! read. Everything on the way that a later step reads stays until then, so each value is made again once.

use super::backward::BackwardStep;
use super::build::{self, ForwardAction};
use super::group::Unit;
use super::order::Graph;
use nnrs_kernels::expr::ssa::MixMap;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Puts the work of computing again before the backward steps that read what is not `stored`.
pub(crate) fn schedule(g: &Graph, units: &[Unit], stored: &[bool], steps: &mut [BackwardStep]) {
    let mut last_read = vec![None; g.vars.len()];
    for (s, step) in steps.iter().enumerate() {
        step.reads.iter().for_each(|&v| last_read[v as usize] = Some(s));
    }
    if (0..g.vars.len()).all(|v| stored[v] || last_read[v].is_none()) {
        return;
    }
    let mut plan =
        Schedule { g, units, unit_of: makers(g, units), there: stored.to_vec(), last_read, ending: Vec::new() };
    plan.ending.resize_with(steps.len(), SmallVec::new);
    for (s, step) in steps.iter_mut().enumerate() {
        let missing: Vec<u32> = step.reads.iter().copied().filter(|&v| !plan.there[v as usize]).collect();
        if !missing.is_empty() {
            step.again = plan.again(s, &missing);
        }
        step.forget = plan.end(s);
    }
}

/// For each variable the unit that makes it.
fn makers(g: &Graph, units: &[Unit]) -> Vec<Option<usize>> {
    let mut unit_of = vec![None; g.vars.len()];
    for (u, unit) in units.iter().enumerate() {
        let made = unit.nodes.iter().flat_map(|&n| &g.nodes[n as usize].y);
        made.for_each(|&y| unit_of[y as usize] = Some(u));
    }
    unit_of
}

struct Schedule<'a> {
    g: &'a Graph,
    units: &'a [Unit],
    /// The unit that makes a variable.
    unit_of: Vec<Option<usize>>,
    /// Data that is there at the step looked at.
    there: Vec<bool>,
    /// The last backward step that reads a variable's data.
    last_read: Vec<Option<usize>>,
    /// What has been made again and is read for the last time by each step.
    ending: Vec<SmallVec<[u32; 2]>>,
}

/// A unit that runs again, the outputs wanted of it, and what it reads.
struct Rerun {
    what: ForwardAction,
    outputs: Vec<u32>,
    inputs: SmallVec<[u32; 4]>,
}

impl Schedule<'_> {
    /// The forward steps that make `missing` before backward step `s`.
    fn again(&mut self, s: usize, missing: &[u32]) -> Vec<build::ForwardStep> {
        let reruns = self.reruns(s, missing);
        let mut last_use: MixMap<u32, usize> = MixMap::default();
        for (i, r) in reruns.iter().enumerate() {
            last_use.extend(r.outputs.iter().chain(&r.inputs).map(|&v| (v, i)));
        }
        let mut free = vec![SmallVec::<[u32; 2]>::new(); reruns.len()];
        for v in reruns.iter().flat_map(|r| r.outputs.iter().copied()) {
            match self.last_read[v as usize].filter(|&last| last >= s) {
                Some(last) => {
                    self.there[v as usize] = true;
                    self.ending[last].push(v);
                }
                None => free[last_use[&v]].push(v),
            }
        }
        reruns.into_iter().zip(free).map(|(r, free)| build::ForwardStep::new(self.g, r.what, free)).collect()
    }

    /// The units to run, in order: from the last to the first, each asks for what it reads.
    fn reruns(&self, s: usize, missing: &[u32]) -> Vec<Rerun> {
        let absent = |v: &u32| !self.there[*v as usize];
        let maker = |v: &u32| self.unit_of[*v as usize].filter(|_| absent(v));
        let mut asked: MixMap<u32, ()> = missing.iter().map(|&v| (v, ())).collect();
        let mut todo: BTreeSet<usize> = missing.iter().filter_map(maker).collect();
        let mut reruns = Vec::new();
        while let Some(unit) = todo.pop_last().map(|u| &self.units[u]) {
            let later = |v: u32| self.last_read[v as usize] >= Some(s);
            let wanted = |v: &u32| absent(v) && (asked.contains_key(v) || later(*v) || !unit.elementwise);
            let made = unit.nodes.iter().flat_map(|&n| self.g.nodes[n as usize].y.iter().copied());
            let outputs: Vec<u32> = made.filter(wanted).collect();
            let what = build::what(self.g, unit, |v| self.there[v as usize], outputs.clone());
            let inputs = what.reads(&self.g.nodes[what.node() as usize].reads(self.g));
            asked.extend(inputs.iter().map(|&v| (v, ())));
            todo.extend(inputs.iter().filter_map(maker));
            reruns.push(Rerun { what, outputs, inputs });
        }
        reruns.reverse();
        reruns
    }

    /// What was made again and is read for the last time by step `s`.
    fn end(&mut self, s: usize) -> SmallVec<[u32; 2]> {
        let end = std::mem::take(&mut self.ending[s]);
        end.iter().for_each(|&v| self.there[v as usize] = false);
        end
    }
}
