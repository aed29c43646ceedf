//! The line in which a communicator's collectives stand: one runs at a time, in the order in which they were asked for,
//! whichever thread runs them. That order is the same on each rank, whatever the times are, so their moves meet.

use super::agreement::Stop;
use super::transport::{CollectiveCall, Transport};
use nnrs_kernels::error::{Error, ErrorKind, Result};
use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct LineState {
    /// The number of the next one that is asked for, and of that whose turn it is.
    next: u64,
    serving: u64,
    /// Numbers behind `serving` that are over: they were given up.
    over: BTreeSet<u64>,
    /// Collectives so far of each group.
    counts: HashMap<Arc<str>, u64>,
    /// Why the communicator has ended.
    failed: Option<String>,
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
    pub(super) fn ticket(self: &Arc<Self>, name: &'static str, group: &Arc<str>) -> Result<CollectiveTicket> {
        let mut state = self.lock();
        check(&state)?;
        let number = state.next;
        state.next += 1;
        Ok(CollectiveTicket { line: self.clone(), number, name, group: group.clone() })
    }

    /// Ends the communicator; the first reason counts.
    pub(super) fn fail(&self, why: &str) {
        self.lock().failed.get_or_insert_with(|| why.to_string());
        self.turn.notify_all();
    }

    fn over(&self, number: u64) {
        let mut state = self.lock();
        state.over.insert(number);
        while state.over.first().copied() == Some(state.serving) {
            state.over.pop_first();
            state.serving += 1;
        }
        drop(state);
        self.turn.notify_all();
    }
}

fn check(state: &LineState) -> Result<()> {
    match &state.failed {
        Some(why) => Err(Error::new(ErrorKind::Communicator, format!("this communicator has ended: {why}"))),
        None => Ok(()),
    }
}

impl CollectiveTicket {
    /// Runs the moves of the collective when its turn has come. An error of theirs ends the communicator, but for one that
    /// all ranks get. `rank`: this one's number in the world.
    pub(super) fn run<R>(
        self,
        transport: &dyn Transport,
        rank: usize,
        moves: impl FnOnce() -> Result<R, Stop>,
    ) -> Result<R> {
        let call = self.wait()?;
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
    fn wait(&self) -> Result<CollectiveCall> {
        let mut state = self.line.lock();
        while state.serving != self.number {
            check(&state)?;
            state = self.line.turn.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        check(&state)?;
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

#[cfg(test)]
mod tests {
    use super::super::Alone;
    use super::*;

    fn run(ticket: CollectiveTicket, moves: impl FnOnce() -> Result<(), Stop>) -> Result<()> {
        ticket.run(&Alone, 0, moves)
    }

    #[test]
    fn one_after_the_other_in_the_order_of_tickets() {
        let (line, group) = (Arc::new(CollectiveLine::default()), Arc::from("world"));
        let tickets: Vec<_> = (0..3).map(|_| line.ticket("barrier", &group).unwrap()).collect();
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

    #[test]
    fn a_failure_is_the_end_and_a_disagreement_is_not() {
        let (line, group) = (Arc::new(CollectiveLine::default()), Arc::from("world"));
        let ticket = || line.ticket("bcast", &group);
        let other = run(ticket().unwrap(), || Err(Stop::Disagreement(Error::graph("not the same"))));
        assert_eq!(other.unwrap_err().to_string(), "not the same");
        let (failing, behind) = (ticket().unwrap(), ticket().unwrap());
        let failed = run(failing, || Err(Error::graph("no network").into())).unwrap_err();
        assert_eq!(failed.to_string(), "rank 0 in bcast (call 2, group 'world'): no network");
        let ended = "this communicator has ended: rank 0 in bcast (call 2, group 'world'): no network";
        assert_eq!(run(behind, || Ok(())).unwrap_err().to_string(), ended);
        assert_eq!(ticket().err().unwrap().to_string(), ended);
    }

    #[test]
    fn a_panic_is_the_end_too() {
        let (line, group) = (Arc::new(CollectiveLine::default()), Arc::from("world"));
        let ticket = line.ticket("bcast", &group).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| run(ticket, || panic!("oh")))).is_err());
        assert!(line.ticket("bcast", &group).err().unwrap().to_string().contains("it panicked"));
    }
}
