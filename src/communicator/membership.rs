//! The ranks of a communicator and its groups, and how a collective comes to its turn.

use super::agreement::{Stop, agree};
use super::arrays::KeptMemory;
use super::line::{CollectiveLine, CollectiveTicket};
use super::open_runs::OpenRuns;
use super::transport::Transport;
use super::worker::Worker;
use nnrs_kernels::error::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// The group of all ranks.
pub const WORLD: &str = "world";

/// A group of ranks.
#[derive(Clone)]
pub(super) struct GroupMember {
    pub(super) name: Arc<str>,
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
}

impl Membership {
    pub(super) fn new(world: Arc<dyn Transport>) -> Membership {
        let ranks = (0..world.size()).collect();
        let all = GroupMember { name: WORLD.into(), ranks, transport: Some(world.clone()) };
        let (line, memory, worker, runs) = Default::default();
        Membership { world, groups: Mutex::new(vec![all]), line, memory, worker, runs }
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

    pub(super) fn add(&self, member: GroupMember) {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).push(member);
    }

    /// Runs the moves of a collective, if this rank is in the group, when all of its ranks have said the same.
    pub(super) fn collective<R>(
        &self,
        name: &'static str,
        group: &GroupMember,
        said: &str,
        moves: impl FnOnce(&dyn Transport, &mut KeptMemory) -> Result<R>,
    ) -> Result<Option<R>> {
        let Some(t) = &group.transport else { return Ok(None) };
        let ticket = self.line.ticket(name, &group.name)?;
        self.run(ticket, &**t, Some((name, said)), moves).map(Some)
    }

    /// Runs the moves of a collective that stands in the line; `said`, if it begins with a word on what it is.
    pub(super) fn run<R>(
        &self,
        ticket: CollectiveTicket,
        t: &dyn Transport,
        said: Option<(&'static str, &str)>,
        moves: impl FnOnce(&dyn Transport, &mut KeptMemory) -> Result<R>,
    ) -> Result<R> {
        ticket.run(t, self.world.rank(), || {
            if let Some((name, said)) = said {
                agree(t, name, said)?;
            }
            let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
            moves(t, &mut memory).map_err(Stop::Failure)
        })
    }

    /// This rank takes part in nothing more.
    pub(super) fn leave(&self, why: &str) {
        self.line.fail(&format!("this rank {why}"));
        self.groups().iter().filter_map(|g| g.transport.as_ref()).for_each(|t| t.leave(why));
    }
}
