//! The backward runs that go on, with callbacks that add gradients up over ranks.

use super::agreement::Notice;
use super::worker::TaskGroup;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A backward run that goes on, with callbacks of one communicator. Where ranks disagree on one collective of it, all of it
/// ends, with one error. Groups are numbered by their place among all.
pub(super) struct OpenRun {
    run: u64,
    /// What was sent.
    pub(super) tasks: Arc<TaskGroup>,
    state: Mutex<OpenRunState>,
}

#[derive(Default)]
struct OpenRunState {
    /// Of each group that has callbacks in it: the how many-th run of that group this is, the same on all.
    numbers: BTreeMap<usize, u64>,
    error: Option<(ErrorKind, String)>,
    /// Groups in which all know how it has ended.
    settled: BTreeSet<usize>,
    is_given_up: bool,
}

impl OpenRun {
    fn lock(&self) -> MutexGuard<'_, OpenRunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error with which it has ended, if it has.
    pub(super) fn check(&self) -> Result<()> {
        self.lock().error.as_ref().map_or(Ok(()), |(kind, text)| Err(Error::new(*kind, text.clone())))
    }

    /// All ranks of a group know that it has ended, and with which error.
    pub(super) fn settle(&self, group: usize, error: Option<&Error>) {
        let mut state = self.lock();
        state.settled.insert(group);
        if let Some(e) = error {
            state.error.get_or_insert((e.kind(), e.to_string()));
        }
    }

    pub(super) fn is_settled(&self, group: usize) -> bool {
        self.lock().settled.contains(&group)
    }

    /// The first time: what is told of it to others.
    pub(super) fn give_up(&self, why: &str) -> Option<String> {
        let mut state = self.lock();
        let is_first = !std::mem::replace(&mut state.is_given_up, true);
        is_first.then(|| Notice::text(state.numbers.iter().map(|(group, number)| (*group, *number)), why))
    }
}

/// A callback in a backward run that goes on.
pub(super) struct OpenCallback {
    pub(super) run: Arc<OpenRun>,
    pub(super) group: usize,
    /// No other open one of its group has it.
    pub(super) number: usize,
}

/// The runs of one communicator.
#[derive(Default)]
pub(super) struct OpenRuns(Mutex<OpenRunsState>);

#[derive(Default)]
struct OpenRunsState {
    callbacks: Vec<Arc<OpenCallback>>,
    /// How many runs each group has had.
    counts: BTreeMap<usize, u64>,
    /// Groups with collectives of other kinds within runs.
    beside: BTreeSet<usize>,
}

impl OpenRunsState {
    fn open(&self) -> Vec<Arc<OpenRun>> {
        let mut found: Vec<Arc<OpenRun>> = vec![];
        for c in &self.callbacks {
            if !found.iter().any(|run| Arc::ptr_eq(run, &c.run)) {
                found.push(c.run.clone());
            }
        }
        found
    }
}

impl OpenRuns {
    fn lock(&self) -> MutexGuard<'_, OpenRunsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that go on.
    pub(super) fn open(&self) -> Vec<Arc<OpenRun>> {
        self.lock().open()
    }

    /// A callback joins a run that begins. Runs begin and end like brackets, with their callbacks in one order, so its number
    /// is the same on all ranks of its group.
    pub(super) fn join(&self, run: u64, group: usize) -> Arc<OpenCallback> {
        let mut state = self.lock();
        let there = state.callbacks.iter().find(|c| c.run.run == run).map(|c| c.run.clone());
        let joined = there.unwrap_or_else(|| Arc::new(OpenRun { run, tasks: Arc::default(), state: Mutex::default() }));
        joined.lock().numbers.entry(group).or_insert_with(|| {
            let count = state.counts.entry(group).or_default();
            *count += 1;
            *count
        });
        let is_free = |n: &usize| !state.callbacks.iter().any(|c| c.group == group && c.number == *n);
        let number = (0..state.callbacks.len()).find(is_free).unwrap_or(state.callbacks.len());
        let made = Arc::new(OpenCallback { run: joined, group, number });
        state.callbacks.push(made.clone());
        made
    }

    /// A callback has come to the end of its run.
    pub(super) fn leave(&self, callback: &Arc<OpenCallback>) {
        self.lock().callbacks.retain(|c| !Arc::ptr_eq(c, callback));
    }

    /// A group has collectives of other kinds within runs.
    pub(super) fn note_beside(&self, group: usize) {
        self.lock().beside.insert(group);
    }

    /// Groups in which others may wait for this rank within a run, and do not know how it has ended.
    pub(super) fn groups(&self, run: &Arc<OpenRun>) -> BTreeSet<usize> {
        let state = self.lock();
        let of_run = state.callbacks.iter().filter(|c| Arc::ptr_eq(&c.run, run)).map(|c| c.group);
        let groups: BTreeSet<usize> = of_run.chain(state.beside.iter().copied()).collect();
        &groups - &run.lock().settled
    }

    /// Others have given runs up, which they say in a group; gives the error for those that go on here.
    pub(super) fn hear(&self, (group, group_name): (usize, &str), name: &str, notices: &[Notice]) -> Option<Error> {
        let mut state = self.lock();
        let mut heard = None;
        for notice in notices {
            let is_meant = |run: &Arc<OpenRun>| {
                let own = run.lock();
                notice.runs.iter().any(|(group, number)| own.numbers.get(group) == Some(number))
            };
            for run in state.open().into_iter().filter(is_meant) {
                run.settle(group, Some(&notice.error(name, group_name)));
                heard = heard.or_else(|| run.check().err());
            }
            for &(group, number) in &notice.runs {
                let count = state.counts.entry(group).or_default(); // a run that was begun nowhere else counts all the same
                *count = number.max(*count);
            }
        }
        heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(runs: &[(usize, u64)]) -> Notice {
        let text = format!("x of {}", Notice::text(runs.iter().copied(), "oh"));
        Notice::read(1, &text).unwrap()
    }

    #[test]
    fn callbacks_of_a_run_are_numbered_by_their_group() {
        let runs = OpenRuns::default();
        let all = [runs.join(7, 0), runs.join(7, 0), runs.join(8, 0), runs.join(7, 1)];
        assert_eq!(all.each_ref().map(|c| c.number), [0, 1, 2, 0]);
        let shares = |i: usize| Arc::ptr_eq(&all[0].run, &all[i].run);
        assert_eq!([shares(1), shares(2), shares(3)], [true, false, true]);
        assert_eq!(runs.open().len(), 2);
        runs.leave(&all[0]);
        let more = [runs.join(9, 0), runs.join(9, 0)];
        assert_eq!(more.each_ref().map(|c| c.number), [0, 3]); // 1 and 2 are still open
        all[1..].iter().chain(&more).for_each(|c| runs.leave(c));
        assert!(runs.open().is_empty());
    }

    #[test]
    fn a_run_that_another_rank_has_given_up_ends_here() {
        let runs = OpenRuns::default();
        let [outer, inner, other] = [runs.join(1, 0), runs.join(2, 0), runs.join(2, 3)];
        runs.note_beside(5);
        assert!(runs.hear((0, "world"), "barrier", &[notice(&[(0, 3)])]).is_none()); // it has begun there alone
        let error = runs.hear((5, "pair"), "barrier", &[notice(&[(0, 2)])]).unwrap().to_string();
        assert!(error.contains("rank 1 of group 'pair' has given its backward run up: oh"), "{error}");
        assert!(outer.run.check().is_ok() && inner.run.check().is_err());
        assert_eq!(runs.groups(&inner.run), [0, 3].into()); // those in which it has not been heard
        assert_eq!(inner.run.give_up("why"), Some("nothing more of 0:2 3:1; why".into()));
        assert_eq!(inner.run.give_up("why"), None);
        [outer, inner, other].iter().for_each(|c| runs.leave(c));
        assert_eq!(runs.join(3, 0).run.give_up(""), Some("nothing more of 0:4; ".into()));
    }
}
