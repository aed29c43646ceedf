//! Which functions will make something else than in their last run: each node knows since when its runs have made the
//! same, so that what another root's run has overwritten or dropped can be told from what it would be now.

use super::build::{Forward, PlanNode};
use crate::array::now;
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;

impl Forward {
    /// Before a run: tells the nodes that will make something else.
    pub(super) fn note_changes(&self) {
        let (began, is_new) = (self.began.swap(now(), Relaxed), self.is_new.swap(false, Relaxed));
        let is_as_at_last_run = |&v: &u32| self.slots[v as usize].data.storage().is_as_at(began);
        if began > 0 && self.varying.is_empty() && self.is_last() && self.leaves.iter().all(is_as_at_last_run) {
            return;
        }
        self.note_varying();
        let mut made = vec![0; self.slots.len()]; // since when, by the functions of the run
        for n in &self.nodes {
            if n.f.same_since() != u64::MAX && self.has_changed(n, is_new, &made) {
                n.f.note_change();
            }
            n.y.iter().for_each(|&y| made[y as usize] = n.f.same_since());
        }
    }

    /// Tells the nodes that may make something else in each run.
    pub(super) fn note_varying(&self) {
        self.varying.iter().for_each(|&n| self.nodes[n as usize].f.note_change());
    }

    /// Whether an input is not what it was in the last run.
    fn has_changed(&self, n: &PlanNode, is_new: bool, made: &[u64]) -> bool {
        let time = n.f.ran();
        let inputs: SmallVec<[_; 2]> = if is_new { n.f.inputs() } else { SmallVec::new() };
        let is_other = |(i, &x): (usize, &u32)| {
            let slot = &self.slots[x as usize];
            let is_made_later =
                if slot.maker.is_some() { made[x as usize] > time } else { !slot.data.storage().is_as_at(time) };
            let was_exchanged = inputs.get(i).is_some_and(|x| !x.has_its_array_since(time));
            !n.f.function.updates_input(i) && (is_made_later || was_exchanged)
        };
        n.x.iter().enumerate().any(is_other)
    }
}
