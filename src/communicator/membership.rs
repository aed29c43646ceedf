//! The ranks of a communicator and its groups, and how a collective comes to its turn.

use super::agreement::{Notice, Stop, agree};
use super::arrays::KeptMemory;
use super::line::{CollectiveLine, CollectiveTicket};
use super::open_runs::{OpenCallback, OpenRun, OpenRuns};
use super::run_number::OfGroups;
use super::standing::{self, LateRun, RunPlace, Standing, World};
use super::transport::Transport;
use super::worker::{TaskGroup, Worker};
use nnrs_kernels::error::{Error, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The group of all ranks.
pub const WORLD: &str = "world";

/// A group of ranks.
#[derive(Clone)]
pub(super) struct GroupMember {
    pub(super) name: Arc<str>,
    /// Its place among all groups, in the order in which they were made.
    pub(super) number: usize,
    /// Ranks of the world.
    pub(super) ranks: Vec<usize>,
    /// `None` where this rank is not in it.
    pub(super) transport: Option<Arc<dyn Transport>>,
}

/// What a communicator and its callbacks share.
pub(super) struct Membership {
    pub(super) world: Arc<dyn Transport>,
    /// Which rank of which world it is.
    rank: World,
    groups: Mutex<Vec<GroupMember>>,
    pub(super) line: Arc<CollectiveLine>,
    /// Only that collective uses it whose turn it is.
    memory: Mutex<KeptMemory>,
    pub(super) worker: Worker,
    pub(super) runs: OpenRuns,
    /// What this rank says of runs that it has given up, and has not yet said.
    pub(super) notices: Arc<TaskGroup>,
    /// The last failed run of this rank that each group knows of, also of those with no callback of this communicator's.
    told: Mutex<HashMap<usize, u64>>,
    /// What all ranks call this communicator.
    name: Arc<str>,
}

/// What a collective of a group is, for the word with which it begins.
pub(super) struct Asked<'a> {
    pub(super) name: &'static str,
    pub(super) group: &'a GroupMember,
    pub(super) said: &'a str,
    /// The backward run that it adds gradients up for.
    pub(super) run: Option<&'a OpenRun>,
}

/// A place in the line, and within which backward runs it was taken.
pub(super) struct CollectivePlace {
    ticket: CollectiveTicket,
    runs: Vec<Arc<OpenRun>>,
    /// How many runs had begun.
    counts: OfGroups,
    /// Those of the thread.
    position: Vec<(u64, RunPlace)>,
    is_notice: bool,
}

impl Membership {
    pub(super) fn new(world: Arc<dyn Transport>) -> Membership {
        let ranks = (0..world.size()).collect();
        let all = GroupMember { name: WORLD.into(), number: 0, ranks, transport: Some(world.clone()) };
        let told = Mutex::new([(0, standing::failures())].into());
        let mut rank = (world.world_id(), world.size(), world.rank());
        let count = standing::count_communicator(rank);
        if world.size() == 1 {
            rank.0 = rank.0.or(Some(count)); // ranks of several worlds may each have such a one
        }
        standing::note_made(rank);
        let name = world.world_id().map_or(format!("{}.{count}", world.size()), |id| id.to_string()).into();
        let (line, memory, worker, runs, notices) = Default::default();
        Membership { world, rank, groups: Mutex::new(vec![all]), line, memory, worker, runs, notices, told, name }
    }

    pub(super) fn groups(&self) -> Vec<GroupMember> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn find(&self, group: &str) -> Option<GroupMember> {
        self.groups().into_iter().find(|g| &*g.name == group)
    }

    /// The group of that name; the error is one of `here`.
    pub(super) fn member(&self, here: &str, group: &str) -> Result<GroupMember> {
        let wrong = || {
            let names: Vec<String> = self.groups().iter().map(|g| format!("'{}'", g.name)).collect();
            let e = Error::arg("group", format!("one of {}", names.join(", "))).actual(format!("'{group}'"));
            e.function(format!("Communicator::{here}"))
        };
        self.find(group).ok_or_else(wrong)
    }

    pub(super) fn add(&self, name: Arc<str>, ranks: Vec<usize>, transport: Option<Arc<dyn Transport>>) {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let number = groups.len();
        self.told().insert(number, standing::failures());
        groups.push(GroupMember { name, number, ranks, transport });
    }

    /// A callback of a group joins a run that begins.
    pub(super) fn join_run(&self, run: u64, group: &GroupMember) -> Arc<OpenCallback> {
        let callback = self.runs.join(run, (group.number, group.transport.is_some()), &self.places());
        let place = RunPlace { of: self.name.clone(), number: callback.run.of_first() };
        standing::join(self.rank, run, place);
        callback
    }

    /// A callback has come to the end of its run.
    pub(super) fn leave_run(&self, callback: &Arc<OpenCallback>) {
        if self.runs.leave(callback) {
            standing::leave(callback.run.run);
        }
    }

    /// A group knows of a failed run, if it knows of the one before.
    fn note_told(&self, group: usize, before: u64, failed: u64) {
        if let Some(told) = self.told().get_mut(&group).filter(|told| **told >= before) {
            *told = failed.max(*told);
        }
    }

    fn told(&self) -> MutexGuard<'_, HashMap<usize, u64>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the moves of a collective, if this rank is in the group, when all of its ranks have said the same.
    pub(super) fn collective<R>(
        &self,
        name: &'static str,
        group: &GroupMember,
        said: &str,
        moves: impl FnOnce(&dyn Transport, &mut KeptMemory) -> Result<R>,
    ) -> Result<Option<R>> {
        if group.transport.is_none() {
            return Ok(None);
        }
        let place = self.place(name, group)?;
        self.run(place, &Asked { name, group, said, run: None }, moves).map(Some)
    }

    /// How many collectives have been asked for of each group with others.
    pub(super) fn places(&self) -> OfGroups {
        let with_others = |g: &GroupMember| g.transport.as_ref().is_some_and(|t| t.size() > 1);
        self.groups().iter().filter(|g| with_others(g)).map(|g| (g.number, self.line.place(&g.name))).collect()
    }

    /// A place in the line for a collective within the backward runs that go on.
    pub(super) fn place(&self, name: &'static str, group: &GroupMember) -> Result<CollectivePlace> {
        let (runs, counts) = self.runs.asked_within()?;
        runs.iter().try_for_each(|run| run.check())?;
        if let Some(t) = &group.transport {
            t.be_patient(false);
        }
        let (ticket, position) = (self.line.ticket(name, &group.name, false)?, standing::position(self.rank));
        Ok(CollectivePlace { ticket, runs, counts, position, is_notice: false })
    }

    /// Runs the moves of a collective that stands in the line, once all agree on it; but where one of the backward runs has
    /// been given up meanwhile.
    pub(super) fn run<R>(
        &self,
        place: CollectivePlace,
        asked: &Asked,
        moves: impl FnOnce(&dyn Transport, &mut KeptMemory) -> Result<R>,
    ) -> Result<R> {
        let &Asked { name, group, said, run } = asked;
        let t = group.transport.as_deref().ok_or_else(|| Error::graph("this rank is not in the group"))?;
        let CollectivePlace { ticket, runs, counts, position, is_notice } = place;
        let check = || runs.iter().try_for_each(|run| run.check());
        let is_wanted = || {
            if !runs.is_empty() {
                self.runs.recall(group.number)?;
            }
            check()
        };
        let hear = |notices: &[Notice], late: Option<&LateRun>, all: &[Standing]| {
            self.runs.hear((group.number, &group.name), name, notices, &self.places(), !is_notice)?;
            if !is_notice {
                // A notice meets others that have come further.
                let begun = notices.iter().filter_map(|n| n.path.first()).map(|number| &number.of_groups);
                begun.chain(all.iter().map(|s| &s.counts)).for_each(|others| self.runs.catch_up(others));
            }
            let Some(late) = late.filter(|late| late.position.iter().eq(position.iter().map(|(_, p)| p))) else {
                return Ok(check().err());
            };
            let error = late.error(name, &group.name);
            let is_over = |run: &OpenRun| position[late.level..].iter().any(|(over, _)| *over == run.run);
            runs.iter().filter(|run| is_over(run)).for_each(|run| run.settle(group.number, Some(&error)));
            Ok(Some(error))
        };
        let number = ticket.number();
        ticket.run(t, self.world.rank(), is_wanted, || {
            let failed = standing::last_failed(self.rank);
            let is_told = is_notice || self.told().get(&group.number).is_none_or(|told| *told >= failed.number);
            let why = (!is_told).then_some(failed.why);
            let places = position.iter().map(|(_, place)| place.clone()).collect();
            let standing = Standing { counts, position: places, failed: why };
            let agreed = agree(t, name, said, &standing, hear).map_err(|stop| match stop {
                // Who has left hears nothing, and nobody here waits for him.
                Stop::Failure(e) if is_notice => Stop::Disagreement(e),
                stop => stop,
            });
            if let (Err(Stop::Disagreement(e)), Some(run)) = (&agreed, run) {
                run.settle(group.number, Some(e));
            }
            agreed?;
            self.line.note_agreed(number);
            if !is_notice {
                self.note_told(group.number, 0, failed.number);
            }
            let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
            moves(t, &mut memory).map_err(Stop::Failure)
        })
    }

    /// Ends a run that has failed here, when no array of its is on its way any more. The others are told in the place of
    /// their next collectives within it, so that they do not wait, nor take what comes for those: in all groups, for which of
    /// them they come to first none knows. Nobody waits until they have heard.
    pub(super) fn give_up(self: &Arc<Self>, run: &Arc<OpenRun>, name: &'static str, why: &str) {
        let _ = run.tasks.wait(); // the run has an error already
        if std::thread::panicking() {
            return; // which ends the communicator, and that says it better
        }
        if !run.give_up() {
            return;
        }
        let own = self.places().into_keys().collect();
        let failed = standing::note_failed(self.rank, run.run, why);
        for group in self.groups() {
            self.note_told(group.number, failed.before, failed.number);
            let Some(t) = group.transport.as_ref().filter(|t| t.size() > 1 && !run.is_settled(group.number)) else {
                continue;
            };
            let Ok(ticket) = self.line.ticket(name, &group.name, true) else { return };
            t.be_patient(true);
            let (runs, counts, position) = Default::default();
            let place = CollectivePlace { ticket, runs, counts, position, is_notice: true };
            let (members, said) = (self.clone(), Notice::text(&run.path(group.number), &own, why));
            let say = move || {
                let asked = Asked { name, group: &group, said: &said, run: None };
                members.run(place, &asked, |_, _| Ok(()))
            };
            self.notices.submit(&Worker::default(), say); // a thread of its own: groups do not wait for each other
        }
    }

    /// Others need not wait until this rank has heard what they say of their runs.
    pub(super) fn prepare_to_leave(&self) {
        self.groups().iter().filter_map(|g| g.transport.as_ref()).for_each(|t| t.prepare_to_leave());
        let _ = self.notices.wait(); // others wait for what it says; what comes of that is theirs
    }

    /// This rank takes part in nothing more.
    pub(super) fn leave(&self, why: &str) {
        self.line.fail(&format!("this rank {why}"));
        self.groups().iter().filter_map(|g| g.transport.as_ref()).for_each(|t| t.leave(why));
    }
}
