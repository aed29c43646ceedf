//! The backward runs that go on, with callbacks that add gradients up over ranks.
//!
//! Which run another rank speaks of is found by counting: each has a number among those with callbacks of its group, and where
//! it is within another run it is counted there. So what one rank has never begun ends with what is around it, and numbers do
//! not drift apart. Ranks that have no such group in common know a run by where it begins among the collectives of the group
//! in which they speak, and by how many began there before.

use super::agreement::Notice;
use super::packs::PlannedPacks;
use super::run_number::{Begun, OfGroups, RunCounts, RunNumber};
use super::worker::TaskGroup;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A backward run that goes on, with callbacks of one communicator. Where ranks disagree on one collective of it, all of it
/// ends, with one error. Groups are numbered by their place among all.
pub(super) struct OpenRun {
    pub(super) run: u64,
    around: Option<Arc<OpenRun>>,
    /// Of each group: where it begins.
    places: BTreeMap<usize, Begun>,
    /// What was sent.
    pub(super) tasks: Arc<TaskGroup>,
    /// Plans of its callbacks, in their order.
    pub(super) plans: Mutex<Vec<Arc<PlannedPacks>>>,
    state: Mutex<OpenRunState>,
}

#[derive(Default)]
struct OpenRunState {
    numbers: OfGroups,
    /// Its number among those within the one around it whose first callback is of the same group.
    of_first: u64,
    within: RunCounts,
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

    /// Whether the others are to be told: the first time, but where that is told of the run around it, which ends, too.
    pub(super) fn give_up(&self) -> bool {
        let is_first = !std::mem::replace(&mut self.lock().is_given_up, true);
        is_first && self.around.as_ref().is_none_or(|run| run.check().is_ok())
    }

    /// The how many-th it is of those that begin with a callback of the same group.
    pub(super) fn of_first(&self) -> u64 {
        self.lock().of_first
    }

    /// Which it is, in a word of that group.
    fn number_in(&self, group: usize) -> RunNumber {
        let (place, since, of_all) = self.places.get(&group).copied().unwrap_or_default();
        RunNumber { place, since, of_all, of_groups: self.lock().numbers.clone() }
    }

    /// The same, and before it those around it.
    pub(super) fn path(&self, group: usize) -> Vec<RunNumber> {
        let mut path = self.around.as_ref().map_or(vec![], |run| run.path(group));
        path.push(self.number_in(group));
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
    group_name: Arc<str>,
    notice: Notice,
    /// Groups that both ranks are in.
    both: BTreeSet<usize>,
    /// The collective that has met it.
    name: &'static str,
}

impl ToldRun {
    /// Whether it means that run, which ends then; an error where that is unknown.
    fn ends(&self, run: &OpenRun, is_met: bool) -> Result<bool> {
        let (own, told) = (run.path(self.group), &self.notice.path);
        let both = |group| self.both.contains(&group);
        let means: Vec<_> = own.iter().zip(told).map(|(a, b)| a.means(b, both, is_met)).collect();
        if own.len() != told.len() || means.contains(&Some(false)) {
            return Ok(false);
        }
        if means.contains(&None) {
            return Err(self.notice.unclear(self.name, &self.group_name));
        }
        run.settle(self.group, Some(&self.notice.error(self.name, &self.group_name)));
        Ok(true)
    }

    /// Whether it means one of these.
    fn ends_one(&self, open: &[Arc<OpenRun>], is_met: bool) -> Result<bool> {
        let ends = open.iter().map(|run| self.ends(run, is_met)).collect::<Result<Vec<bool>>>()?;
        Ok(ends.contains(&true))
    }
}

/// The runs of one communicator.
#[derive(Default)]
pub(super) struct OpenRuns(Mutex<OpenRunsState>);

#[derive(Default)]
struct OpenRunsState {
    callbacks: Vec<Arc<OpenCallback>>,
    counts: RunCounts,
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

    /// `places`: how many collectives of each group have been asked for.
    fn begin(&mut self, run: u64, places: &OfGroups) -> Arc<OpenRun> {
        let early = std::mem::take(&mut self.early);
        self.early = early.into_iter().filter(|told| self.is_to_come(told, places)).collect();
        // A callback that only hands on what it is told of functions does not know its run, nor when that ends.
        let around = self.open().into_iter().rfind(|r| run > 0 && r.run > 0);
        let places = self.count(around.as_deref(), |counts| counts.begin(places));
        let (tasks, plans, state) = Default::default();
        Arc::new(OpenRun { run, around, places, tasks, plans, state })
    }

    /// What `work` does with the counts of runs within another one, or within none.
    fn count<R>(&mut self, around: Option<&OpenRun>, work: impl FnOnce(&mut RunCounts) -> R) -> R {
        match around {
            Some(run) => work(&mut run.lock().within),
            None => work(&mut self.counts),
        }
    }

    /// Whether another rank's run has yet to begin here, or a collective that belongs to it has yet to come.
    fn is_to_come(&mut self, told: &ToldRun, places: &OfGroups) -> bool {
        let (open, mut around) = (self.open(), None::<Arc<OpenRun>>);
        let both = |group| told.both.contains(&group);
        for number in &told.notice.path {
            let is_around = |r: &OpenRun| r.around.as_ref().map(Arc::as_ptr) == around.as_ref().map(Arc::as_ptr);
            let run = open.iter().find(|r| is_around(r)).cloned();
            let mut common = number.of_groups.iter().filter(|(group, _)| both(**group)).peekable();
            if common.peek().is_none() {
                let place = places.get(&told.group).copied().unwrap_or(0);
                let (place, since) = match &run {
                    Some(run) => {
                        run.places.get(&told.group).map(|&(place, since, _)| (place, since)).unwrap_or_default()
                    }
                    None => (place, self.count(around.as_deref(), |counts| counts.behind(told.group, place))),
                };
                return (number.place, number.since) >= (place, since);
            }
            let is_after = |counts: &mut RunCounts| {
                common.any(|(group, &n)| n > counts.of_groups.get(group).copied().unwrap_or(0))
            };
            if self.count(around.as_deref(), is_after) {
                return true;
            }
            match run.filter(|run| run.number_in(told.group).means(number, both, false) == Some(true)) {
                Some(run) => around = Some(run),
                None => return false,
            }
        }
        false
    }
}

impl OpenRuns {
    fn lock(&self) -> MutexGuard<'_, OpenRunsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that go on as something is asked for, and how many have begun that are within no other one.
    pub(super) fn asked_within(&self) -> Result<(Vec<Arc<OpenRun>>, OfGroups)> {
        let state = self.lock();
        let open = state.open();
        for told in &state.early {
            told.ends_one(&open, false)?;
        }
        Ok((open, state.counts.of_groups.clone()))
    }

    /// A callback joins a run that begins. Runs begin and end like brackets, with their callbacks in one order. `of`: its group,
    /// and whether this rank is in that. `places`: how many collectives of each group have been asked for.
    pub(super) fn join(&self, run: u64, of: (usize, bool), places: &OfGroups) -> Arc<OpenCallback> {
        let (mut state, (group, is_in)) = (self.lock(), of);
        let there = state.callbacks.iter().find(|c| c.run.run == run).map(|c| c.run.clone());
        let joined = there.unwrap_or_else(|| state.begin(run, places));
        let is_first = joined.of_first() == 0;
        let is_counted = if is_in { joined.lock().numbers.contains_key(&group) } else { !is_first };
        if !is_counted {
            let number = state.count(joined.around.as_deref(), |counts| {
                let counts = if is_in { &mut counts.of_groups } else { &mut counts.beside };
                let count = counts.entry(group).or_default();
                *count += 1;
                *count
            });
            let mut own = joined.lock();
            own.of_first = if is_first { number } else { own.of_first };
            if is_in {
                own.numbers.insert(group, number);
            }
        }
        let group = is_in.then_some(group);
        let is_free = |n: &usize| !state.callbacks.iter().any(|c| c.group == group && c.number == *n);
        let number = (0..state.callbacks.len()).find(is_free).unwrap_or(state.callbacks.len());
        let made = Arc::new(OpenCallback { run: joined, group, number });
        state.callbacks.push(made.clone());
        made
    }

    /// A callback has come to the end of its run; whether it was in one.
    pub(super) fn leave(&self, callback: &Arc<OpenCallback>) -> bool {
        self.lock().callbacks.extract_if(.., |c| Arc::ptr_eq(c, callback)).count() > 0
    }

    /// Others have given runs up, which they say in a group. `is_met`: whether what has met that is a collective of the program,
    /// and no such word.
    pub(super) fn hear(
        &self,
        (group, group_name): (usize, &Arc<str>),
        name: &'static str,
        notices: &[Notice],
        places: &OfGroups,
        is_met: bool,
    ) -> Result<()> {
        let mut state = self.lock();
        let open = state.open();
        for notice in notices {
            let both = places.keys().filter(|group| notice.groups.contains(group)).copied().collect();
            let told = ToldRun { group, group_name: group_name.clone(), notice: notice.clone(), both, name };
            if !told.ends_one(&open, is_met)? && state.is_to_come(&told, places) {
                state.early.push(told);
            }
        }
        Ok(())
    }

    /// What was told in a group too early meets a collective now.
    pub(super) fn recall(&self, group: usize) -> Result<()> {
        let state = self.lock();
        let open = state.open();
        state.early.iter().filter(|told| told.group == group).try_for_each(|told| told.ends_one(&open, true).map(drop))
    }

    /// Another rank has begun so many, and comes to what this one comes to: some were never begun here.
    pub(super) fn catch_up(&self, others: &OfGroups) {
        self.lock().counts.catch_up(others);
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    fn notice(path: &[&str]) -> Notice {
        let path: Vec<RunNumber> = path.iter().map(|text| RunNumber::read(text).unwrap()).collect();
        Notice::read(1, &format!("x of {}", Notice::text(&path, &[0, 3, 5].into(), "oh"))).unwrap()
    }

    fn join(runs: &OpenRuns, run: u64, group: usize) -> Arc<OpenCallback> {
        runs.join(run, (group, true), &places())
    }

    fn places() -> OfGroups {
        [(0, 0), (3, 0), (5, 0)].into()
    }

    fn text(run: &OpenRun) -> Vec<String> {
        run.path(0).iter().map(RunNumber::to_string).collect()
    }

    nnrs_kernels::unit_test!(callbacks_of_a_run_are_numbered_by_their_group);
    fn callbacks_of_a_run_are_numbered_by_their_group() {
        let runs = OpenRuns::default();
        let all = [join(&runs, 7, 0), join(&runs, 7, 0), join(&runs, 8, 0), join(&runs, 7, 1)];
        assert_eq!(all.each_ref().map(|c| c.number), [0, 1, 2, 0]);
        let shares = |i: usize| Arc::ptr_eq(&all[0].run, &all[i].run);
        assert_eq!([shares(1), shares(2), shares(3)], [true, false, true]);
        assert_eq!(runs.asked_within().unwrap().0.len(), 2);
        runs.leave(&all[0]);
        let more = [join(&runs, 9, 0), join(&runs, 9, 0)];
        assert_eq!(more.each_ref().map(|c| c.number), [0, 3]); // 1 and 2 are still open
        all[1..].iter().chain(&more).for_each(|c| assert!(runs.leave(c)));
        assert!(runs.asked_within().unwrap().0.is_empty());
    }

    nnrs_kernels::unit_test!(a_run_that_another_rank_has_given_up_ends_here);
    fn a_run_that_another_rank_has_given_up_ends_here() {
        let runs = OpenRuns::default();
        let hear = |group, path: &[&str]| {
            runs.hear((group, &"pair".into()), "barrier", &[notice(path)], &places(), true).unwrap();
        };
        let [outer, inner, other] = [join(&runs, 1, 0), join(&runs, 2, 0), join(&runs, 2, 3)];
        for elsewhere in [&["0 1 1 0:2"][..], &["0 0 0 0:1", "0 1 1 0:2"], &["0 0 0 0:1", "0 0 0 0:1", "0 0 0 "]] {
            hear(0, elsewhere);
            assert!(outer.run.check().is_ok() && inner.run.check().is_ok(), "{elsewhere:?}");
        }
        hear(5, &["0 0 0 0:1", "0 0 0 3:1"]);
        let error = inner.run.check().unwrap_err().to_string();
        assert!(error.contains("rank 1 of group 'pair' has given its backward run up: oh"), "{error}");
        assert!(outer.run.check().is_ok() && inner.run.is_settled(5) && !inner.run.is_settled(0));
        assert_eq!(text(&inner.run), ["0 0 0 0:1", "0 0 0 0:1 3:1"]);
        assert_eq!([inner.run.give_up(), inner.run.give_up()], [true, false]);
        [inner, other].iter().for_each(|c| assert!(runs.leave(c)));
        let second = join(&runs, 3, 0); // of which was told before it began
        assert!(runs.asked_within().unwrap().0[1].check().is_err() && second.run.is_settled(0));
        outer.run.settle(0, Some(&Error::graph("it ends")));
        assert!(!second.run.give_up());
        [second, outer].iter().for_each(|c| assert!(runs.leave(c)));
        let next = join(&runs, 4, 0);
        assert!(runs.asked_within().unwrap().0[0].check().is_err());
        assert_eq!(text(&next.run), ["0 1 1 0:2"]);
        runs.leave(&next);
        runs.catch_up(&[(0, 4)].into());
        assert_eq!(text(&join(&runs, 5, 0).run), ["0 2 2 0:5"]);
    }

    nnrs_kernels::unit_test!(ranks_without_a_group_in_common_know_a_run_by_its_place);
    fn ranks_without_a_group_in_common_know_a_run_by_its_place() {
        let runs = OpenRuns::default();
        let hear = |path: &[&str]| runs.hear((5, &"pair".into()), "barrier", &[notice(path)], &places(), true);
        let run = runs.join(1, (2, false), &places());
        for other in ["1 0 0 8:1", "0 0 0 3:1"] {
            hear(&[other]).unwrap();
            assert!(run.run.check().is_ok());
        }
        let unclear = hear(&["0 1 1 8:1"]).unwrap_err().to_string();
        assert!(unclear.contains("whether this collective is of it is unknown"), "{unclear}");
        hear(&["0 0 0 8:1"]).unwrap();
        assert!(run.run.check().is_err());
    }
}
