//! Where a rank is that comes to a collective, for communicators that were not told of a failed backward run: a run tells
//! those alone whose callbacks it has, and a hook may use others.

use super::run_number::{OfGroups, groups_text, read_groups};
use nnrs_kernels::error::{Error, ErrorKind, Result};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// A backward run of a thread, with callbacks of any communicators.
struct RunHere {
    run: u64,
    number: u64,
    callbacks: usize,
}

thread_local! {
    static HERE: RefCell<Vec<RunHere>> = const { RefCell::new(vec![]) };
}

/// A callback joins a run. `number`: of the run, in the callback's communicator; that of the first counts.
pub(super) fn join(run: u64, number: u64) {
    HERE.with_borrow_mut(|open| match open.iter_mut().find(|r| r.run == run) {
        Some(there) => there.callbacks += 1,
        None => open.push(RunHere { run, number, callbacks: 1 }),
    });
}

/// A callback has come to the end of its run.
pub(super) fn leave(run: u64) {
    HERE.with_borrow_mut(|open| {
        open.iter_mut().filter(|r| r.run == run).for_each(|r| r.callbacks -= 1);
        open.retain(|r| r.callbacks > 0);
    });
}

/// The runs of this thread that go on: what they are called, and their numbers.
pub(super) fn position() -> Vec<(u64, u64)> {
    HERE.with_borrow(|open| open.iter().map(|r| (r.run, r.number)).collect())
}

/// How many runs have failed, and why the last one did.
#[derive(Clone, Default)]
pub(super) struct FailedRuns {
    pub(super) count: u64,
    pub(super) why: String,
    run: u64,
}

/// Of each rank of this process, by its number in the world.
static FAILED: Mutex<BTreeMap<usize, FailedRuns>> = Mutex::new(BTreeMap::new());

/// A run has failed; each communicator says so whose callbacks it has.
pub(super) fn note_failed(rank: usize, run: u64, why: &str) -> u64 {
    let mut all = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
    let failed = all.entry(rank).or_default();
    if failed.count == 0 || failed.run != run {
        *failed = FailedRuns { count: failed.count + 1, why: why.into(), run };
    }
    failed.count
}

pub(super) fn failed(rank: usize) -> FailedRuns {
    FAILED.lock().unwrap_or_else(PoisonError::into_inner).get(&rank).cloned().unwrap_or_default()
}

/// See above.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Standing {
    /// Of each group that has callbacks: how many such runs have begun within no other one.
    pub(super) counts: OfGroups,
    /// Within which runs of its thread: their numbers, each among those within the one before that begin with the same
    /// communicator.
    pub(super) position: Vec<u64>,
    /// Why a run has failed of which this communicator was not told.
    pub(super) failed: Option<String>,
}

impl Standing {
    /// One line.
    pub(super) fn text(&self) -> String {
        let position: Vec<String> = self.position.iter().map(u64::to_string).collect();
        let failed = self.failed.as_ref().map(|why| format!("|{}", why.replace('\n', " "))).unwrap_or_default();
        format!("{}|{}{failed}", groups_text(&self.counts), position.join(" "))
    }

    /// What [`text`](Standing::text) has made.
    pub(super) fn read(text: &str) -> Option<Standing> {
        let mut parts = text.splitn(3, '|');
        let counts = read_groups(parts.next()?)?;
        let numbers = parts.next()?.split(' ').filter(|n| !n.is_empty());
        let position = numbers.map(|n| n.parse().ok()).collect::<Option<_>>()?;
        Some(Standing { counts, position, failed: parts.next().map(str::to_string) })
    }

    /// The outermost of another rank's runs that is over here.
    fn ends(&self, other: &Standing) -> Option<usize> {
        let (own, theirs) = (&self.position, &other.position);
        let level = own.iter().zip(theirs).take_while(|(a, b)| a == b).count();
        theirs.get(level).filter(|&b| own.get(level).is_none_or(|a| a > b)).map(|_| level)
    }
}

/// A run that has failed on ranks that others, which are within it still, meet behind it.
#[derive(Debug, PartialEq)]
pub(super) struct LateRun<'a> {
    pub(super) rank: usize,
    pub(super) why: &'a str,
    /// Where those are who are within it.
    pub(super) position: &'a [u64],
    /// It is the how many-th of their runs, from 0 on.
    pub(super) level: usize,
}

impl<'a> LateRun<'a> {
    /// What those have to hear who are behind; `None` where all are at one place, as they are where no run has failed.
    pub(super) fn find(name: &str, all: &'a [Standing]) -> Result<Option<LateRun<'a>>> {
        let Some((rank, why)) = all.iter().enumerate().find_map(|(rank, s)| Some((rank, s.failed.as_ref()?))) else {
            return Ok(None);
        };
        let other = all.iter().find(|s| s.position != all[0].position);
        let Some(other) = other else { return Ok(None) };
        for (ahead, behind) in [(&all[0], other), (other, &all[0])] {
            let is_there = |s: &Standing| s.position == ahead.position;
            let is_clear =
                all.iter().all(|s| if is_there(s) { s.failed.is_some() } else { s.position == behind.position });
            if let (true, Some(level)) = (is_clear, ahead.ends(behind)) {
                let rank = all.iter().position(is_there).unwrap_or(rank);
                let why = all[rank].failed.as_deref().unwrap_or(why);
                return Ok(Some(LateRun { rank, why, position: &behind.position, level }));
            }
        }
        let text = format!(
            "rank {rank} of the group has given a backward run up ({why}) of which this communicator was not told, and the \
             ranks are within different runs: which of them this collective belongs to is unknown"
        );
        Err(Error::new(ErrorKind::Communicator, text)
            .function(format!("Communicator::{name}"))
            .hint("use the communicators of a backward run in the thread that runs it alone"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(position: &[u64], failed: bool) -> Standing {
        Standing { counts: [(0, 3)].into(), position: position.into(), failed: failed.then(|| "a|b".into()) }
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        for one in [standing(&[], false), standing(&[3], true), standing(&[3, 1], false), Standing::default()] {
            assert_eq!(Standing::read(&one.text()), Some(one));
        }
        assert_eq!(["", "0:1", "a|", "0:1|x"].map(Standing::read), [const { None }; 4]);
    }

    #[test]
    fn who_is_within_a_run_that_is_over_elsewhere_is_late() {
        let late = |all: &[(&[u64], bool)]| {
            let all: Vec<Standing> = all.iter().map(|(position, failed)| standing(position, *failed)).collect();
            LateRun::find("bcast", &all).map(|l| l.map(|l| (l.rank, l.position.to_vec(), l.level))).map_err(drop)
        };
        assert_eq!(late(&[(&[3], false), (&[], false)]), Ok(None)); // nothing has failed: that is theirs
        assert_eq!(late(&[(&[3], true), (&[3], false)]), Ok(None));
        assert_eq!(late(&[(&[3], false), (&[], true)]), Ok(Some((1, vec![3], 0))));
        assert_eq!(late(&[(&[], true), (&[3], true), (&[3], false)]), Ok(Some((0, vec![3], 0))));
        assert_eq!(late(&[(&[3, 1], false), (&[3], true)]), Ok(Some((1, vec![3, 1], 1))));
        assert_eq!(late(&[(&[3], true), (&[2], true)]), Ok(Some((0, vec![2], 0))));
        assert_eq!(late(&[(&[3, 2], true), (&[3, 1], false)]), Ok(Some((0, vec![3, 1], 1))));
        for unknown in [[&[3][..], &[2], &[]], [&[3], &[], &[2]]] {
            assert_eq!(late(&unknown.map(|position| (position, true))), Err(()));
        }
        assert_eq!(late(&[(&[3], true), (&[], false)]), Err(()));
    }

    #[test]
    fn runs_of_a_thread_end_with_their_last_callback() {
        [(7, 3), (7, 5), (8, 1)].into_iter().for_each(|(run, number)| join(run, number));
        assert_eq!((position(), std::thread::spawn(position).join().unwrap()), (vec![(7, 3), (8, 1)], vec![]));
        [8, 7].into_iter().for_each(leave);
        assert_eq!(position(), [(7, 3)]);
        leave(7);
        assert_eq!(position(), []);
    }

    #[test]
    fn a_run_fails_once() {
        let rank = 1 << 40; // no other test's
        assert_eq!([1, 1, 2].map(|run| note_failed(rank, run, "oh")), [1, 1, 2]);
        assert_eq!((failed(rank).count, failed(rank).why), (2, "oh".into()));
    }
}
