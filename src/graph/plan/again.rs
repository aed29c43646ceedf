//! What the backward pass computes again: data that forward did not keep, made in the forward way just before it is
//! read. Everything on the way that a later step reads stays until then, so each value is made again once.

use super::backward::Step;
use super::build::{self, What};
use super::group::Unit;
use super::order::Graph;
use smallvec::SmallVec;

/// Puts the work of computing again before the backward steps that read what is not `stored`.
pub(crate) fn schedule(g: &Graph, units: &[Unit], stored: &[bool], steps: &mut [Step]) {
    let mut last_read = vec![None; g.vars.len()];
    for (s, step) in steps.iter().enumerate() {
        step.reads.iter().for_each(|&v| last_read[v as usize] = Some(s));
    }
    if (0..g.vars.len()).all(|v| stored[v] || last_read[v].is_none()) {
        return;
    }
    let mut plan = Schedule { g, units, there: stored.to_vec(), last_read, made: Vec::new() };
    for (s, step) in steps.iter_mut().enumerate() {
        let missing: Vec<u32> = step.reads.iter().copied().filter(|&v| !plan.there[v as usize]).collect();
        if !missing.is_empty() {
            step.again = plan.again(s, &missing);
        }
        step.forget = plan.ending(s);
    }
}

struct Schedule<'a> {
    g: &'a Graph,
    units: &'a [Unit],
    /// Data that is there at the step looked at.
    there: Vec<bool>,
    /// The last backward step that reads a variable's data.
    last_read: Vec<Option<usize>>,
    /// What has been made again and is there.
    made: Vec<u32>,
}

/// A unit that runs again, the outputs wanted of it, and what it reads.
struct Rerun {
    what: What,
    outputs: Vec<u32>,
    inputs: Vec<u32>,
}

impl Schedule<'_> {
    /// The forward steps that make `missing` before backward step `s`.
    fn again(&mut self, s: usize, missing: &[u32]) -> Vec<build::Step> {
        let reruns = self.reruns(s, missing);
        let mut last_use = vec![0; self.g.vars.len()];
        for (i, r) in reruns.iter().enumerate() {
            r.outputs.iter().chain(&r.inputs).for_each(|&v| last_use[v as usize] = i);
        }
        let made: Vec<u32> = reruns.iter().flat_map(|r| r.outputs.iter().copied()).collect();
        let (stay, pass): (Vec<u32>, Vec<u32>) = made.into_iter().partition(|&v| self.last_read[v as usize] >= Some(s));
        let steps = reruns.into_iter().enumerate().map(|(i, r)| {
            let free = pass.iter().copied().filter(|&v| last_use[v as usize] == i).collect();
            build::Step::new(self.g, r.what, free)
        });
        let steps = steps.collect();
        stay.iter().for_each(|&v| self.there[v as usize] = true);
        self.made.extend(stay);
        steps
    }

    /// The units to run, in order: from the last to the first, each asks for what it reads.
    fn reruns(&self, s: usize, missing: &[u32]) -> Vec<Rerun> {
        let mut asked = vec![false; self.g.vars.len()];
        missing.iter().for_each(|&v| asked[v as usize] = true);
        let mut reruns = Vec::new();
        for unit in self.units.iter().rev() {
            let made = || unit.nodes.iter().flat_map(|&n| self.g.nodes[n as usize].y.iter().copied());
            let absent = |v: &u32| !self.there[*v as usize];
            if !made().any(|v| asked[v as usize] && absent(&v)) {
                continue;
            }
            let later = |v: u32| self.last_read[v as usize] >= Some(s);
            let wanted = |v: &u32| absent(v) && (asked[*v as usize] || later(*v) || !unit.elementwise);
            let outputs: Vec<u32> = made().filter(wanted).collect();
            let what = build::what(self.g, unit, |v| self.there[v as usize], outputs.clone());
            let inputs = self.inputs(&what);
            inputs.iter().for_each(|&v| asked[v as usize] = true);
            reruns.push(Rerun { what, outputs, inputs });
        }
        reruns.reverse();
        reruns
    }

    fn inputs(&self, what: &What) -> Vec<u32> {
        match what {
            What::Tile(t) => t.sources.iter().map(|(v, _)| *v).collect(),
            What::Call(n) | What::View(n) => self.g.nodes[*n as usize].x.to_vec(),
        }
    }

    /// What was made again and is read for the last time by step `s`.
    fn ending(&mut self, s: usize) -> SmallVec<[u32; 2]> {
        let (end, stay): (Vec<u32>, Vec<u32>) = self.made.iter().partition(|&&v| self.last_read[v as usize] <= Some(s));
        self.made = stay;
        end.iter().for_each(|&v| self.there[v as usize] = false);
        end.into()
    }
}
