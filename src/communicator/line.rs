//! The line in which a communicator's collectives stand: one runs at a time, in the order in which they were asked for,
//! whichever thread runs them. That order is the same on each rank, whatever the times are, so their moves meet. A notice, what
//! a rank says of a run that it has given up, keeps its place in its group alone: it does not know in which group the others
//! come to it first.

use super::agreement::Stop;
use super::transport::{CollectiveCall, Transport};
use nnrs_kernels::error::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct LineState {
    /// The number of the next one that is asked for.
    next: u64,
    /// Those that are not over.
    waiting: BTreeMap<u64, WaitingCollective>,
    /// Collectives so far of each group.
    counts: HashMap<Arc<str>, u64>,
    /// Those of each group that all ranks have come to, notices apart.
    agreed: HashMap<Arc<str>, u64>,
    /// Why the communicator has ended.
    failed: Option<String>,
}

struct WaitingCollective {
    group: Arc<str>,
    is_notice: bool,
    is_agreed: bool,
}

/// See above.
#[derive(Default)]
pub(super) struct CollectiveLine {
    state: Mutex<LineState>,
    turn: Condvar,
}

/// A place in the line; to drop it gives it up.
pub(super) struct CollectiveTicket {
    line: Arc<CollectiveLine>,
    number: u64,
    name: &'static str,
    group: Arc<str>,
}

impl CollectiveLine {
    fn lock(&self) -> MutexGuard<'_, LineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place behind all others.
    pub(super) fn ticket(
        self: &Arc<Self>,
        name: &'static str,
        group: &Arc<str>,
        is_notice: bool,
    ) -> Result<CollectiveTicket> {
        let mut state = self.lock();
        check(&state)?;
        let number = state.next;
        state.next += 1;
        state.waiting.insert(number, WaitingCollective { group: group.clone(), is_notice, is_agreed: false });
        Ok(CollectiveTicket { line: self.clone(), number, name, group: group.clone() })
    }

    /// How many collectives of a group have been asked for: all ranks of it have done those, or will.
    pub(super) fn place(&self, group: &Arc<str>) -> u64 {
        let state = self.lock();
        let waiting = state.waiting.values().filter(|w| w.group == *group && !w.is_notice && !w.is_agreed).count();
        state.agreed.get(group).copied().unwrap_or(0) + waiting as u64
    }

    /// All ranks have come to one.
    pub(super) fn note_agreed(&self, number: u64) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(one) = state.waiting.get_mut(&number).filter(|one| !one.is_notice) {
            one.is_agreed = true;
            *state.agreed.entry(one.group.clone()).or_default() += 1;
        }
    }

    /// Ends the communicator; the first reason counts.
    pub(super) fn fail(&self, why: &str) {
        self.lock().failed.get_or_insert_with(|| why.to_string());
        self.turn.notify_all();
    }

    fn over(&self, number: u64) {
        self.lock().waiting.remove(&number);
        self.turn.notify_all();
    }
}

impl LineState {
    fn is_turn(&self, number: u64) -> bool {
        let Some(own) = self.waiting.get(&number) else { return true };
        let is_apart = |other: &WaitingCollective| other.group != own.group && (other.is_notice || own.is_notice);
        self.waiting.range(..number).all(|(_, before)| is_apart(before))
    }
}

fn check(state: &LineState) -> Result<()> {
    match &state.failed {
        Some(why) => Err(Error::new(ErrorKind::Communicator, format!("this communicator has ended: {why}"))),
        None => Ok(()),
    }
}

impl CollectiveTicket {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Runs the moves of the collective when its turn has come, if it is still wanted then. An error of theirs ends the
    /// communicator, but for one that all ranks get. `rank`: this one's number in the world.
    pub(super) fn run<R>(
        self,
        transport: &dyn Transport,
        rank: usize,
        is_wanted: impl Fn() -> Result<()>,
        moves: impl FnOnce() -> Result<R, Stop>,
    ) -> Result<R> {
        let call = self.wait(is_wanted).inspect_err(|e| {
            if e.kind() == ErrorKind::Communicator {
                self.line.fail(&e.to_string());
                transport.leave(&format!("failed ({e})"));
            }
        })?;
        transport.begin(&call);
        match catch_unwind(AssertUnwindSafe(moves)) {
            Ok(Ok(found)) => {
                transport.end(&call);
                Ok(found)
            }
            Ok(Err(Stop::Disagreement(e))) => {
                transport.end(&call);
                Err(e)
            }
            Ok(Err(Stop::Failure(e))) => Err(self.failed(&call, transport, rank, &e.to_string())),
            Err(panic) => {
                self.failed(&call, transport, rank, "it panicked");
                resume_unwind(panic)
            }
        }
    }

    /// When its turn has come it gets its number among those of its group: one that was given up has none on any rank.
    fn wait(&self, is_wanted: impl Fn() -> Result<()>) -> Result<CollectiveCall> {
        let mut state = self.line.lock();
        while !state.is_turn(self.number) {
            check(&state)?;
            is_wanted()?; // its turn may not come: another run has left something before it
            state = self.line.turn.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        check(&state)?;
        is_wanted()?;
        let count = state.counts.entry(self.group.clone()).or_default();
        *count += 1;
        Ok(CollectiveCall { name: self.name, group: self.group.clone(), number: *count })
    }

    fn failed(&self, call: &CollectiveCall, transport: &dyn Transport, rank: usize, text: &str) -> Error {
        let told = format!("rank {rank} in {call}: {text}");
        self.line.fail(&told);
        transport.leave(&format!("failed ({text})"));
        Error::new(ErrorKind::Communicator, told)
    }
}

impl Drop for CollectiveTicket {
    fn drop(&mut self) {
        self.line.over(self.number);
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::super::Alone;
    use super::*;

    fn run(ticket: CollectiveTicket, moves: impl FnOnce() -> Result<(), Stop>) -> Result<()> {
        ticket.run(&Alone, 0, || Ok(()), moves)
    }

    nnrs_kernels::unit_test!(one_after_the_other_in_the_order_of_tickets);
    fn one_after_the_other_in_the_order_of_tickets() {
        let (line, group) = (Arc::new(CollectiveLine::default()), Arc::from("world"));
        let tickets: Vec<_> = (0..3).map(|_| line.ticket("barrier", &group, false).unwrap()).collect();
        let done = Mutex::new(vec![]);
        std::thread::scope(|s| {
            for (i, ticket) in tickets.into_iter().enumerate().rev() {
                let done = &done;
                match i {
                    1 => drop(ticket), // it is given up
                    _ => drop(s.spawn(move || {
                        let note = || {
                            done.lock().unwrap().push(i);
                            Ok(())
                        };
                        run(ticket, note)
                    })),
                }
            }
        });
        assert_eq!(*done.lock().unwrap(), [0, 2]);
    }

    nnrs_kernels::unit_test!(a_notice_waits_for_its_own_group_alone);
    fn a_notice_waits_for_its_own_group_alone() {
        let (line, a, b) = (Arc::new(CollectiveLine::default()), Arc::from("a"), Arc::from("b"));
        let kinds = [(&a, false), (&b, false), (&a, true), (&b, true), (&a, false)];
        let mut tickets: Vec<_> = kinds.map(|(group, is_notice)| line.ticket("x", group, is_notice).ok()).into();
        let turns =
            || (0..5).filter(|&i| line.lock().waiting.contains_key(&i) && line.lock().is_turn(i)).collect::<Vec<_>>();
        assert_eq!(turns(), [0]);
        tickets[0] = None;
        assert_eq!(turns(), [1, 2]);
        tickets[1] = None;
        assert_eq!(turns(), [2, 3]);
        tickets[2] = None;
        assert_eq!(turns(), [3, 4]);
    }

    nnrs_kernels::unit_test!(a_wait_for_what_is_not_wanted_any_more_has_no_number);
    fn a_wait_for_what_is_not_wanted_any_more_has_no_number() {
        let (line, group) = (Arc::new(CollectiveLine::default()), Arc::from("world"));
        let dropped = line.ticket("bcast", &group, false).unwrap();
        let told = dropped.run(&Alone, 0, || Err(Error::graph("no more")), || -> Result<(), Stop> { unreachable!() });
        assert_eq!(told.unwrap_err().to_string(), "no more");
        let next = line.ticket("bcast", &group, false).unwrap();
        assert_eq!(next.wait(|| Ok(())).unwrap().number, 1);
    }

    nnrs_kernels::unit_test!(a_failure_is_the_end_and_a_disagreement_is_not);
    fn a_failure_is_the_end_and_a_disagreement_is_not() {
        let (line, group) = (Arc::new(CollectiveLine::default()), Arc::from("world"));
        let ticket = || line.ticket("bcast", &group, false);
        let other = run(ticket().unwrap(), || Err(Stop::Disagreement(Error::graph("not the same"))));
        assert_eq!(other.unwrap_err().to_string(), "not the same");
        let (failing, behind) = (ticket().unwrap(), ticket().unwrap());
        let failed = run(failing, || Err(Error::graph("no network").into())).unwrap_err();
        assert_eq!(failed.to_string(), "rank 0 in bcast (call 2, group 'world'): no network");
        let ended = "this communicator has ended: rank 0 in bcast (call 2, group 'world'): no network";
        assert_eq!(run(behind, || Ok(())).unwrap_err().to_string(), ended);
        assert_eq!(ticket().err().unwrap().to_string(), ended);
    }

    nnrs_kernels::unit_test!(a_panic_is_the_end_too);
    fn a_panic_is_the_end_too() {
        let (line, group) = (Arc::new(CollectiveLine::default()), Arc::from("world"));
        let ticket = line.ticket("bcast", &group, false).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| run(ticket, || panic!("oh")))).is_err());
        assert!(line.ticket("bcast", &group, false).err().unwrap().to_string().contains("it panicked"));
    }
}
