//! The ranks of a communicator and its groups, and how a collective comes to its turn.

use super::agreement::{Stop, agree};
use super::arrays::KeptMemory;
use super::line::{CollectiveLine, CollectiveTicket};
use super::open_runs::{OpenRun, OpenRuns};
use super::transport::Transport;
use super::worker::{TaskGroup, Worker};
use nnrs_kernels::error::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};

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
    groups: Mutex<Vec<GroupMember>>,
    pub(super) line: Arc<CollectiveLine>,
    /// Only that collective uses it whose turn it is.
    memory: Mutex<KeptMemory>,
    pub(super) worker: Worker,
    pub(super) runs: OpenRuns,
    /// What this rank says of runs that it has given up, and has not yet said.
    pub(super) notices: Arc<TaskGroup>,
}

/// What a collective of a group is, for the word with which it begins.
pub(super) struct Asked<'a> {
    pub(super) name: &'static str,
    pub(super) group: &'a GroupMember,
    pub(super) said: &'a str,
    /// The backward run that it adds gradients up for.
    pub(super) run: Option<&'a OpenRun>,
}

impl Membership {
    pub(super) fn new(world: Arc<dyn Transport>) -> Membership {
        let ranks = (0..world.size()).collect();
        let all = GroupMember { name: WORLD.into(), number: 0, ranks, transport: Some(world.clone()) };
        let (line, memory, worker, runs, notices) = Default::default();
        Membership { world, groups: Mutex::new(vec![all]), line, memory, worker, runs, notices }
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
        groups.push(GroupMember { name, number, ranks, transport });
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
        let runs = self.runs.open();
        if !runs.is_empty() {
            self.runs.note_beside(group.number);
        }
        let ticket = self.ticket(name, group, &runs)?;
        self.run(ticket, &runs, &Asked { name, group, said, run: None }, moves).map(Some)
    }

    /// A place in the line for a collective within those backward runs.
    pub(super) fn ticket(
        &self,
        name: &'static str,
        group: &GroupMember,
        runs: &[Arc<OpenRun>],
    ) -> Result<CollectiveTicket> {
        runs.iter().try_for_each(|run| run.check())?;
        self.line.ticket(name, &group.name, false)
    }

    /// Runs the moves of a collective that stands in the line, once all agree on it; but where one of the backward runs has
    /// been given up meanwhile.
    pub(super) fn run<R>(
        &self,
        ticket: CollectiveTicket,
        runs: &[Arc<OpenRun>],
        asked: &Asked,
        moves: impl FnOnce(&dyn Transport, &mut KeptMemory) -> Result<R>,
    ) -> Result<R> {
        let &Asked { name, group, said, run } = asked;
        let t = group.transport.as_deref().ok_or_else(|| Error::graph("this rank is not in the group"))?;
        let is_wanted = || runs.iter().try_for_each(|run| run.check());
        ticket.run(t, self.world.rank(), is_wanted, || {
            let agreed = agree(t, name, said, |notices| self.runs.hear((group.number, &group.name), name, notices));
            if let (Err(Stop::Disagreement(e)), Some(run)) = (&agreed, run) {
                run.settle(group.number, Some(e));
            }
            agreed?;
            let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
            moves(t, &mut memory).map_err(Stop::Failure)
        })
    }

    /// Ends a run that has failed here, when no array of its is on its way any more. The others are told in the place of
    /// their next collectives within it, so that they do not wait, nor take what comes for those; nobody waits until they
    /// have heard.
    pub(super) fn give_up(self: &Arc<Self>, run: &Arc<OpenRun>, name: &'static str, why: &str) {
        let _ = run.tasks.wait(); // the run has an error already
        if std::thread::panicking() {
            return; // which ends the communicator, and that says it better
        }
        let Some(said) = run.give_up(why) else { return };
        let groups = self.groups();
        for group in self.runs.groups(run).into_iter().map(|number| groups[number].clone()) {
            let Ok(ticket) = self.line.ticket(name, &group.name, true) else { return };
            let (members, said) = (self.clone(), said.clone());
            let say = move || {
                let asked = Asked { name, group: &group, said: &said, run: None };
                members.run(ticket, &[], &asked, |_, _| Ok(()))
            };
            self.notices.submit(&Worker::default(), say); // a thread of its own: groups do not wait for each other
        }
    }

    /// This rank takes part in nothing more.
    pub(super) fn leave(&self, why: &str) {
        self.line.fail(&format!("this rank {why}"));
        self.groups().iter().filter_map(|g| g.transport.as_ref()).for_each(|t| t.leave(why));
    }
}
