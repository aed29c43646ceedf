//! Since when the runs of a function have made the same: so what another root's run has overwritten or dropped can be told
//! from what it would be now.
//!
//! A plan notes before a run which leaves have changed since the one before. What that means for its functions is worked
//! out on demand (`settle`): when another plan takes functions over, when the plan goes, or when a value is wanted
//! that was there before a later run.

use super::build::{ForwardPlan, PlanNode, PlanSlot};
use super::recompute::{changed, is_unchanged};
use crate::graph::node::FnNode;
use nnrs_kernels::array::{NdArray, next_time, now};
use nnrs_kernels::error::Result;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What a plan knows of its runs.
pub(super) struct Changes {
    /// When the last run began; 0 before the first, and where other plans have run functions since.
    began: AtomicU64,
    /// When the last run ended that came to its end.
    ended: AtomicU64,
    is_new: AtomicBool,
    /// What the runs begin with, or what the script may write over what they make; and when the first run began since which
    /// all runs found the same.
    sources: Vec<(u32, AtomicU64)>,
    /// Nodes that may make something else in each run, even where the leaves stay as they are.
    varying: Vec<u32>,
    /// Some function is user code, which says itself when it has made something else.
    has_user_code: bool,
    /// The functions have not been told all.
    is_unsettled: AtomicBool,
    /// The script may have written something in the middle of the run.
    is_written: AtomicBool,
}

impl Changes {
    pub(super) fn new(sources: &[u32], varying: Vec<u32>, has_user_code: bool) -> Changes {
        Changes {
            began: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            is_new: AtomicBool::new(true),
            sources: sources.iter().map(|&v| (v, AtomicU64::new(0))).collect(),
            varying,
            has_user_code,
            is_unsettled: AtomicBool::new(false),
            is_written: AtomicBool::new(false),
        }
    }

    /// A run has come to its end.
    pub(super) fn note_end(&self) {
        self.ended.store(now(), Relaxed);
    }

    /// Other plans have run functions since: the next run looks at each.
    pub(super) fn begin_anew(&self) {
        self.began.store(0, Relaxed);
    }
}

impl ForwardPlan {
    /// Before a run.
    pub(super) fn note_changes(&self) {
        let c = &self.changes;
        let began = next_time(); // later than all that ran before
        let before = c.began.swap(began, Relaxed);
        if before == 0 || !self.is_last() {
            return self.compare();
        }
        let ended = c.ended.load(Relaxed);
        for (v, since) in &c.sources {
            let slot = &self.slots[*v as usize];
            let is_same = match &slot.maker {
                Some(_) => (!self.key.hooked && slot.data.storage().is_as_at(ended)) || slot.is_as_made(),
                None => is_unchanged(&slot.data.storage(), before, None),
            };
            if !is_same {
                since.store(began, Relaxed);
                c.is_unsettled.store(true, Relaxed);
            }
        }
        if c.has_user_code || !c.varying.is_empty() {
            c.is_unsettled.store(true, Relaxed);
        }
    }

    /// In the middle of a run: the script may have written something.
    pub(super) fn note_written(&self) {
        self.changes.is_written.store(true, Relaxed);
    }

    /// After a run: where the script wrote in its middle, the functions behind did not make what other runs make.
    pub(super) fn note_what_was_written(&self) {
        if !self.changes.is_written.swap(false, Relaxed) {
            return;
        }
        let mut written: Vec<bool> = (0..self.slots.len()).map(|v| self.was_written(v)).collect();
        for n in &self.nodes {
            if n.x.iter().chain(&n.y).any(|&v| written[v as usize]) {
                n.f.note_change();
                n.y.iter().for_each(|&y| written[y as usize] = true);
            }
        }
    }

    /// A slot was written since the run began, and not by the functions of the run.
    fn was_written(&self, v: usize) -> bool {
        let slot = &self.slots[v];
        if slot.maker.is_some() {
            return !slot.is_as_made();
        }
        let storage = slot.data.storage();
        if storage.is_as_at(self.changes.began.load(Relaxed)) {
            return false;
        }
        let writes = |n: &PlanNode, i: usize| n.f.function.updates_input(i) || n.f.rewrites() == Some(i);
        let is_updated = |n: &PlanNode| n.x.iter().enumerate().any(|(i, &x)| x as usize == v && writes(n, i));
        let is_made = |other: &PlanSlot| other.maker.is_some() && Arc::ptr_eq(&other.data.storage(), &storage);
        !self.nodes.iter().any(is_updated) && !self.slots.iter().any(is_made)
    }

    /// Looks at each function that ran before: tells those that will make something else.
    fn compare(&self) {
        self.settle();
        let c = &self.changes;
        let is_new = c.is_new.swap(false, Relaxed);
        c.sources.iter().for_each(|(_, since)| since.store(0, Relaxed));
        self.note_varying();
        let mut made = vec![0; self.slots.len()];
        for n in &self.nodes {
            if n.f.same_since() != u64::MAX && self.has_changed(n, is_new, &made) {
                n.f.note_change();
            }
            n.y.iter().for_each(|&y| made[y as usize] = n.f.same_since());
        }
    }

    /// Whether an input is not what it was in the function's last run, or the script has written what that made.
    fn has_changed(&self, n: &PlanNode, is_new: bool, made: &[u64]) -> bool {
        let time = n.f.ran();
        let inputs: SmallVec<[_; 2]> = if is_new { n.f.inputs() } else { SmallVec::new() };
        let is_other = |(i, &x): (usize, &u32)| {
            let slot = &self.slots[x as usize];
            let is_made_later = match &slot.maker {
                Some(_) => made[x as usize] > time,
                None => !is_unchanged(&slot.data.storage(), time, None),
            };
            let was_exchanged = inputs.get(i).is_some_and(|x| !x.has_its_array_since(time));
            !n.f.function.updates_input(i) && (is_made_later || was_exchanged)
        };
        let is_written = |&y: &u32| self.slots[y as usize].is_the_scripts() && !self.slots[y as usize].is_as_made();
        n.x.iter().enumerate().any(is_other) || n.y.iter().any(is_written)
    }

    /// Tells the nodes that may make something else in each run.
    pub(super) fn note_varying(&self) {
        self.changes.varying.iter().for_each(|&n| self.nodes[n as usize].f.note_change());
    }

    /// Tells the functions what the runs since the last comparison have found.
    pub(crate) fn settle(&self) {
        let c = &self.changes;
        if !c.is_unsettled.swap(false, Relaxed) {
            return;
        }
        let mut since = vec![0; self.slots.len()];
        c.sources.iter().for_each(|(v, time)| since[*v as usize] = time.load(Relaxed));
        let mut varying = c.varying.iter().peekable();
        for (i, n) in self.nodes.iter().enumerate() {
            let reads = n.x.iter().enumerate().filter(|(i, _)| !n.f.function.updates_input(*i));
            let found = reads.map(|(_, &x)| x).chain(n.y.iter().copied()).map(|v| since[v as usize]).max().unwrap_or(0);
            let varies = varying.next_if(|&&v| v as usize == i).map_or(0, |_| c.began.load(Relaxed));
            let latest = found.max(varies).max(n.f.same_since());
            if latest > n.f.same_since() && self.owns(&n.f) {
                n.f.set_same_since(latest);
            }
            n.y.iter().for_each(|&y| since[y as usize] = if latest == u64::MAX { found.max(varies) } else { latest });
        }
    }

    /// Before the plan takes its functions over: the plans that ran them last tell them what they know.
    pub(super) fn settle_others(&self) {
        let mut last = std::ptr::null();
        for n in &self.nodes {
            let plan = n.f.lock_plan().as_ptr();
            if plan != std::mem::replace(&mut last, plan)
                && let Some(plan) = n.f.plan()
            {
                plan.settle();
            }
        }
    }
}

impl Drop for ForwardPlan {
    fn drop(&mut self) {
        self.settle();
    }
}

/// User code has run: it may make something else each time. `again`: it was to make what it had made.
pub(super) fn note_made(f: &FnNode, y: &[&NdArray], again: bool) -> Result<()> {
    let sum = y.iter().fold(1, |sum: u64, y| sum.rotate_left(5) ^ y.storage().sum(f.context.dtype()));
    if again {
        return if sum == f.sum.load(Relaxed) { Ok(()) } else { Err(changed()) };
    }
    if f.sum.swap(sum, Relaxed) != sum {
        f.note_change();
    }
    Ok(())
}

/// True if all that `f` made in its runs from `time` on, or in the last one before, is the same.
pub(super) fn made_at(f: &FnNode, time: u64) -> bool {
    if f.ran() <= time {
        return true;
    }
    if let Some(plan) = f.plan() {
        plan.settle();
    }
    f.same_since() <= time
}
