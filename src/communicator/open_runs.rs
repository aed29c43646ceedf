//! The backward runs that go on, with callbacks that add gradients up over ranks.
//!
//! Which run another rank speaks of is found by counting: each has a number among those with callbacks of its group, and one
//! among all, and where it is within another run it is counted there. So what one rank has never begun ends with what is
//! around it, and numbers do not drift apart.

use super::agreement::Notice;
use super::packs::PlannedPacks;
use super::run_number::RunNumber;
use super::worker::TaskGroup;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A backward run that goes on, with callbacks of one communicator. Where ranks disagree on one collective of it, all of it
/// ends, with one error. Groups are numbered by their place among all.
pub(super) struct OpenRun {
    run: u64,
    around: Option<Arc<OpenRun>>,
    /// What was sent.
    pub(super) tasks: Arc<TaskGroup>,
    /// Plans of its callbacks, in their order.
    pub(super) plans: Mutex<Vec<Arc<PlannedPacks>>>,
    state: Mutex<OpenRunState>,
}

#[derive(Default)]
struct OpenRunState {
    number: RunNumber,
    /// How many runs have begun within it.
    within: RunNumber,
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

    /// The first time: what is told of it to others; but where that is told of the run around it, which ends, too.
    pub(super) fn give_up(&self, why: &str) -> Option<String> {
        let is_first = !std::mem::replace(&mut self.lock().is_given_up, true);
        let is_told = self.around.as_ref().is_some_and(|run| run.check().is_err());
        (is_first && !is_told).then(|| Notice::text(&self.path(), why))
    }

    /// Which run it is: the numbers of those around it, and its own.
    fn path(&self) -> Vec<RunNumber> {
        let mut path = self.around.as_ref().map_or(vec![], |run| run.path());
        path.push(self.lock().number.clone());
        path
    }
}

/// A callback in a backward run that goes on; without a group where this rank is not in that.
pub(super) struct OpenCallback {
    pub(super) run: Arc<OpenRun>,
    pub(super) group: Option<usize>,
    /// No other open one of its group has it.
    pub(super) number: usize,
}

/// What another rank has said, in a group, of a run that it has given up.
struct ToldRun {
    group: usize,
    path: Vec<RunNumber>,
    error: Error,
}

impl ToldRun {
    /// Whether it means that run, which ends then.
    fn ends(&self, run: &OpenRun) -> bool {
        let own = run.path();
        let is_meant = own.len() == self.path.len() && own.iter().zip(&self.path).all(|(a, b)| a.is_that_of(b));
        if is_meant {
            run.settle(self.group, Some(&self.error));
        }
        is_meant
    }
}

/// The runs of one communicator.
#[derive(Default)]
pub(super) struct OpenRuns(Mutex<OpenRunsState>);

#[derive(Default)]
struct OpenRunsState {
    callbacks: Vec<Arc<OpenCallback>>,
    /// How many runs have begun that are within no other one.
    counts: RunNumber,
    /// Of runs that have not begun here: words of several groups overtake each other.
    early: Vec<ToldRun>,
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

    fn begin(&mut self, run: u64) -> Arc<OpenRun> {
        let early = std::mem::take(&mut self.early);
        self.early = early.into_iter().filter(|told| self.is_to_come(&told.path)).collect();
        // A callback that only hands on what it is told of functions does not know its run, nor when that ends.
        let around = self.open().into_iter().rfind(|r| run > 0 && r.run > 0);
        let of_all = self.count(around.as_deref(), |counts| {
            counts.of_all += 1;
            counts.of_all
        });
        let state = OpenRunState { number: RunNumber { of_all, ..Default::default() }, ..Default::default() };
        let (tasks, plans) = Default::default();
        Arc::new(OpenRun { run, around, tasks, plans, state: Mutex::new(state) })
    }

    /// What `work` does with the counts of runs within another one, or within none.
    fn count<R>(&mut self, around: Option<&OpenRun>, work: impl FnOnce(&mut RunNumber) -> R) -> R {
        match around {
            Some(run) => work(&mut run.lock().within),
            None => work(&mut self.counts),
        }
    }

    /// Whether another rank's run has yet to begin here.
    fn is_to_come(&self, path: &[RunNumber]) -> bool {
        let (open, mut around) = (self.open(), None::<Arc<OpenRun>>);
        for number in path {
            let is_after = match &around {
                Some(run) => number.is_after(&run.lock().within),
                None => number.is_after(&self.counts),
            };
            if is_after {
                return true;
            }
            let is_around = |r: &OpenRun| r.around.as_ref().map(Arc::as_ptr) == around.as_ref().map(Arc::as_ptr);
            let next = open.iter().find(|r| is_around(r) && r.lock().number.is_that_of(number)).cloned();
            if next.is_none() {
                return false;
            }
            around = next;
        }
        false
    }
}

impl OpenRuns {
    fn lock(&self) -> MutexGuard<'_, OpenRunsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that go on as something is asked for, and how many have begun that are within no other one.
    pub(super) fn asked_within(&self) -> (Vec<Arc<OpenRun>>, RunNumber) {
        let state = self.lock();
        let open = state.open();
        for told in &state.early {
            open.iter().any(|run| told.ends(run));
        }
        (open, state.counts.clone())
    }

    /// A callback joins a run that begins. Runs begin and end like brackets, with their callbacks in one order.
    pub(super) fn join(&self, run: u64, group: Option<usize>) -> Arc<OpenCallback> {
        let mut state = self.lock();
        let there = state.callbacks.iter().find(|c| c.run.run == run).map(|c| c.run.clone());
        let joined = there.unwrap_or_else(|| state.begin(run));
        if let Some(group) = group
            && !joined.lock().number.of_groups.contains_key(&group)
        {
            let number = state.count(joined.around.as_deref(), |counts| {
                let count = counts.of_groups.entry(group).or_default();
                *count += 1;
                *count
            });
            joined.lock().number.of_groups.insert(group, number);
        }
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

    /// Others have given runs up, which they say in a group.
    pub(super) fn hear(&self, (group, group_name): (usize, &str), name: &str, notices: &[Notice]) {
        let mut state = self.lock();
        let open = state.open();
        for notice in notices {
            let told = ToldRun { group, path: notice.path.clone(), error: notice.error(name, group_name) };
            if !open.iter().any(|run| told.ends(run)) && state.is_to_come(&told.path) {
                state.early.push(told);
            }
        }
    }

    /// Another rank has begun so many, and comes to what this one comes to: some were never begun here.
    pub(super) fn catch_up(&self, others: &RunNumber) {
        self.lock().counts.catch_up(others);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(path: &[&str]) -> Notice {
        let path: Vec<RunNumber> = path.iter().map(|text| RunNumber::read(text).unwrap()).collect();
        Notice::read(1, &format!("x of {}", Notice::text(&path, "oh"))).unwrap()
    }

    #[test]
    fn callbacks_of_a_run_are_numbered_by_their_group() {
        let (runs, world, pair) = (OpenRuns::default(), Some(0), Some(1));
        let all = [runs.join(7, world), runs.join(7, world), runs.join(8, world), runs.join(7, pair)];
        assert_eq!(all.each_ref().map(|c| c.number), [0, 1, 2, 0]);
        let shares = |i: usize| Arc::ptr_eq(&all[0].run, &all[i].run);
        assert_eq!([shares(1), shares(2), shares(3)], [true, false, true]);
        assert_eq!(runs.asked_within().0.len(), 2);
        runs.leave(&all[0]);
        let more = [runs.join(9, world), runs.join(9, world)];
        assert_eq!(more.each_ref().map(|c| c.number), [0, 3]); // 1 and 2 are still open
        all[1..].iter().chain(&more).for_each(|c| runs.leave(c));
        assert!(runs.asked_within().0.is_empty());
    }

    #[test]
    fn a_run_that_another_rank_has_given_up_ends_here() {
        let runs = OpenRuns::default();
        let [outer, inner, other] = [runs.join(1, Some(0)), runs.join(2, Some(0)), runs.join(2, Some(3))];
        for elsewhere in [&["2 0:2"][..], &["1 0:1", "2 0:2"], &["1 0:1", "1 0:1", "1"]] {
            runs.hear((0, "world"), "barrier", &[notice(elsewhere)]);
            assert!(outer.run.check().is_ok() && inner.run.check().is_ok(), "{elsewhere:?}");
        }
        runs.hear((5, "pair"), "barrier", &[notice(&["1 0:1", "1 3:1"])]);
        let error = inner.run.check().unwrap_err().to_string();
        assert!(error.contains("rank 1 of group 'pair' has given its backward run up: oh"), "{error}");
        assert!(outer.run.check().is_ok() && inner.run.is_settled(5) && !inner.run.is_settled(0));
        assert_eq!(inner.run.give_up("why"), Some("nothing more of 1 0:1/1 0:1 3:1; why".into()));
        assert_eq!(inner.run.give_up("why"), None);
        [inner, other].iter().for_each(|c| runs.leave(c));
        let second = runs.join(3, Some(0)); // of which was told before it began
        assert!(runs.asked_within().0[1].check().is_err() && second.run.is_settled(0));
        outer.run.settle(0, Some(&Error::graph("it ends")));
        assert_eq!(second.run.give_up(""), None);
        [second, outer].iter().for_each(|c| runs.leave(c));
        let next = runs.join(4, Some(0));
        assert!(runs.asked_within().0[0].check().is_err());
        assert_eq!(next.run.give_up(""), Some("nothing more of 2 0:2; ".into()));
        runs.leave(&next);
        runs.catch_up(&RunNumber::read("4 0:3").unwrap());
        assert_eq!(runs.join(5, Some(0)).run.give_up(""), Some("nothing more of 5 0:4; ".into()));
    }
}
