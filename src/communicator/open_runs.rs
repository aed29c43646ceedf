//! The backward runs that go on, with callbacks that add gradients up over ranks.

use super::transport::Transport;
use super::worker::TaskGroup;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What an [`OpenCallback`] waits for that has sent nothing yet, or all.
const BEGIN: i64 = i64::MAX;
pub(super) const NOTHING: i64 = i64::MIN;

/// What the callbacks of one communicator in one backward run share, in one group.
#[derive(Default)]
pub(super) struct SharedRun {
    /// What was sent.
    pub(super) tasks: Arc<TaskGroup>,
    is_given_up: AtomicBool,
}

impl SharedRun {
    /// True the first time.
    pub(super) fn give_up(&self) -> bool {
        !self.is_given_up.swap(true, Relaxed)
    }
}

/// A callback in a backward run that goes on.
pub(super) struct OpenCallback {
    run: u64,
    pub(super) group: Arc<str>,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) shared: Arc<SharedRun>,
    /// No other open one of its group has it.
    pub(super) number: usize,
    /// The rank of the function whose end its next pack waits for; -1: the run's.
    next_rank: AtomicI64,
}

impl OpenCallback {
    pub(super) fn waits_for(&self, rank: i64) {
        self.next_rank.store(rank, Relaxed);
    }

    /// Whether all of its packs have gone.
    pub(super) fn has_sent_all(&self) -> bool {
        self.next_rank.load(Relaxed) == NOTHING
    }
}

/// The runs of one communicator.
#[derive(Default)]
pub(super) struct OpenRuns(Mutex<Vec<Arc<OpenCallback>>>);

impl OpenRuns {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<OpenCallback>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A callback joins a run that begins. Runs begin and end like brackets, with their callbacks in one order, so its number
    /// is the same on all ranks of its group.
    pub(super) fn join(&self, run: u64, group: &Arc<str>, transport: &Arc<dyn Transport>) -> Arc<OpenCallback> {
        let mut open = self.lock();
        let there = open.iter().find(|c| c.run == run && c.group == *group);
        let shared = there.map_or_else(Default::default, |c| c.shared.clone());
        let is_free = |n: &usize| !open.iter().any(|c| c.group == *group && c.number == *n);
        let number = (0..open.len()).find(is_free).unwrap_or(open.len());
        let (group, transport, next_rank) = (group.clone(), transport.clone(), BEGIN.into());
        let made = Arc::new(OpenCallback { run, group, transport, shared, number, next_rank });
        open.push(made.clone());
        made
    }

    /// A callback has come to the end of its run.
    pub(super) fn leave(&self, callback: &Arc<OpenCallback>) {
        self.lock().retain(|c| !Arc::ptr_eq(c, callback));
    }

    /// All callbacks in the run of that one, in the order in which their next packs would go.
    pub(super) fn beside(&self, callback: &OpenCallback) -> Vec<Arc<OpenCallback>> {
        let mut found: Vec<_> = self.lock().iter().filter(|c| c.run == callback.run).cloned().collect();
        found.sort_by_key(|c| Reverse(c.next_rank.load(Relaxed)));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::Alone;
    use super::*;

    #[test]
    fn callbacks_of_a_run_share_what_is_sent_by_group() {
        let (runs, alone): (_, Arc<dyn Transport>) = (OpenRuns::default(), Arc::new(Alone));
        let join = |run, group: &str| runs.join(run, &group.into(), &alone);
        let all = [join(7, "world"), join(7, "world"), join(8, "world"), join(7, "pair")];
        assert_eq!(all.each_ref().map(|c| c.number), [0, 1, 2, 0]);
        let shares = |i: usize| Arc::ptr_eq(&all[0].shared, &all[i].shared);
        assert_eq!([shares(1), shares(2), shares(3)], [true, false, false]);
        assert!(all[0].shared.give_up() && !all[1].shared.give_up() && all[3].shared.give_up());
        [(0, -1), (1, NOTHING), (3, 5)].into_iter().for_each(|(i, rank)| all[i].waits_for(rank));
        assert_eq!(runs.beside(&all[1]).iter().map(|c| c.number).collect::<Vec<_>>(), [0, 0, 1]);
        assert_eq!(all.each_ref().map(|c| c.has_sent_all()), [false, true, false, false]);
        runs.leave(&all[0]);
        let more = [join(9, "world"), join(9, "world")];
        assert_eq!(more.each_ref().map(|c| c.number), [0, 3]); // 1 and 2 are still open
        all[1..].iter().chain(&more).for_each(|c| runs.leave(c));
        assert!(runs.lock().is_empty());
    }
}
