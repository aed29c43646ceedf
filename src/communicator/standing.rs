//! Where a rank is that comes to a collective, for communicators that were not told of a failed backward run: a run tells
//! those alone whose callbacks it has, and a hook may use others.

use super::run_number::{OfGroups, groups_text, read_groups};
use nnrs_kernels::error::{Error, ErrorKind, Result};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A rank: what its world is called, how many that has, and which it is there. A thread is several in several worlds; worlds
/// without a name of their own are one.
pub(super) type World = (Option<u64>, usize, usize);

/// Which run it is: the how many-th of those within the one around it whose first callback is of that group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunPlace {
    /// The communicator of its first callback, as all of its ranks call it.
    pub(super) of: Arc<str>,
    pub(super) number: u64,
}

/// A backward run of a thread, with callbacks of any communicators.
struct RunHere {
    run: u64,
    place: RunPlace,
    callbacks: usize,
}

thread_local! {
    static HERE: RefCell<Vec<RunHere>> = const { RefCell::new(vec![]) };
    static WORLD_HERE: Cell<Option<World>> = const { Cell::new(None) };
    static MADE_HERE: RefCell<BTreeMap<(usize, usize), World>> = const { RefCell::new(BTreeMap::new()) };
}

/// A callback joins a run. `place`: of the run, by that callback; that of the first counts.
pub(super) fn join(world: World, run: u64, place: RunPlace) {
    stand_for(world);
    HERE.with_borrow_mut(|open| match open.iter_mut().find(|r| r.run == run) {
        Some(there) => there.callbacks += 1,
        None => open.push(RunHere { run, place, callbacks: 1 }),
    });
}

/// A callback has come to the end of its run.
pub(super) fn leave(run: u64) {
    HERE.with_borrow_mut(|open| {
        open.iter_mut().filter(|r| r.run == run).for_each(|r| r.callbacks -= 1);
        open.retain(|r| r.callbacks > 0);
    });
}

/// The runs of this thread, which stands for that rank, that go on: what they are called, and which they are.
pub(super) fn position(world: World) -> Vec<(u64, RunPlace)> {
    stand_for(world);
    HERE.with_borrow(|open| open.iter().map(|r| (r.run, r.place.clone())).collect())
}

/// This thread uses communicators of that rank: all that it uses are of one.
fn stand_for(world: World) {
    match WORLD_HERE.get() {
        Some(first) if first == world => {}
        Some(first) => lock().are_one(first, world),
        None => WORLD_HERE.set(Some(world)),
    }
}

/// A communicator of that rank is made by this thread: the ranks of a number that it makes are one, in worlds of one size.
pub(super) fn note_made(world: World) {
    let first = MADE_HERE.with_borrow_mut(|made| *made.entry((world.1, world.2)).or_insert(world));
    if first != world {
        lock().are_one(first, world);
    }
}

/// The last run that has failed on a rank: its number among all of this process, and that of the one before.
#[derive(Clone, Default)]
pub(super) struct FailedRun {
    pub(super) number: u64,
    pub(super) before: u64,
    pub(super) why: String,
    run: u64,
}

struct Ranks {
    failed: BTreeMap<World, FailedRun>,
    /// Ranks that are one with another one.
    same: BTreeMap<World, World>,
    communicators: BTreeMap<World, u64>,
    failures: u64,
}

impl Ranks {
    fn root(&self, world: World) -> World {
        self.same.get(&world).map_or(world, |&same| self.root(same))
    }

    fn are_one(&mut self, a: World, b: World) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            self.same.insert(b, a);
            let (other, kept) = (self.failed.remove(&b).unwrap_or_default(), self.failed.entry(a).or_default());
            if other.number > kept.number {
                *kept = other;
            }
        }
    }
}

static RANKS: Mutex<Ranks> =
    Mutex::new(Ranks { failed: BTreeMap::new(), same: BTreeMap::new(), communicators: BTreeMap::new(), failures: 0 });

fn lock() -> MutexGuard<'static, Ranks> {
    RANKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A run has failed; each communicator says so whose callbacks it has.
pub(super) fn note_failed(world: World, run: u64, why: &str) -> FailedRun {
    let mut ranks = lock();
    let root = ranks.root(world);
    let last = ranks.failed.get(&root).cloned().unwrap_or_default();
    if last.number > 0 && last.run == run {
        return last;
    }
    ranks.failures += 1;
    let failed = FailedRun { number: ranks.failures, before: last.number, why: why.into(), run };
    ranks.failed.insert(root, failed.clone());
    failed
}

pub(super) fn last_failed(world: World) -> FailedRun {
    let ranks = lock();
    ranks.failed.get(&ranks.root(world)).cloned().unwrap_or_default()
}

/// How many runs have failed in this process.
pub(super) fn failures() -> u64 {
    lock().failures
}

/// The how many-th communicator of a rank over so many is made.
pub(super) fn count_communicator(world: World) -> u64 {
    let mut ranks = lock();
    let count = ranks.communicators.entry(world).or_default();
    *count += 1;
    *count
}

/// See above.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Standing {
    /// Of each group that has callbacks: how many such runs have begun within no other one.
    pub(super) counts: OfGroups,
    /// Within which runs of its thread, the outermost first.
    pub(super) position: Vec<RunPlace>,
    /// Why a run has failed of which this communicator was not told.
    pub(super) failed: Option<String>,
}

impl Standing {
    /// One line.
    pub(super) fn text(&self) -> String {
        let position: Vec<String> = self.position.iter().map(|p| format!("{}:{}", p.of, p.number)).collect();
        let failed = self.failed.as_ref().map(|why| format!("|{}", why.replace('\n', " "))).unwrap_or_default();
        format!("{}|{}{failed}", groups_text(&self.counts), position.join(" "))
    }

    /// What [`text`](Standing::text) has made.
    pub(super) fn read(text: &str) -> Option<Standing> {
        let mut parts = text.splitn(3, '|');
        let counts = read_groups(parts.next()?)?;
        let places = parts.next()?.split(' ').filter(|n| !n.is_empty()).map(|place| place.split_once(':'));
        let place = |(of, number): (&str, &str)| Some(RunPlace { of: of.into(), number: number.parse().ok()? });
        let position = places.map(|parts| place(parts?)).collect::<Option<_>>()?;
        Some(Standing { counts, position, failed: parts.next().map(str::to_string) })
    }

    /// The outermost of another rank's runs that is over here; `None` where there is none, or none knows.
    fn ends(&self, other: &Standing) -> Option<usize> {
        let (own, theirs) = (&self.position, &other.position);
        let level = own.iter().zip(theirs).take_while(|(a, b)| a == b).count();
        let is_behind = |a: &RunPlace, b: &RunPlace| a.of == b.of && a.number > b.number;
        theirs.get(level).filter(|&b| own.get(level).is_none_or(|a| is_behind(a, b))).map(|_| level)
    }
}

/// A run that has failed on ranks that others, which are within it still, meet behind it.
#[derive(Debug, PartialEq)]
pub(super) struct LateRun<'a> {
    pub(super) rank: usize,
    pub(super) why: &'a str,
    /// Where those are who are within it.
    pub(super) position: &'a [RunPlace],
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

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<RunPlace> {
        Standing::read(&format!("|{text}")).unwrap().position
    }

    fn standing(position: &str, failed: bool) -> Standing {
        Standing { counts: [(0, 3)].into(), position: places(position), failed: failed.then(|| "a|b".into()) }
    }

    nnrs_kernels::unit_test!(a_line_is_read_as_it_was_written);
    fn a_line_is_read_as_it_was_written() {
        for one in [standing("", false), standing("2.1:3", true), standing("2.1:3 4.1:1", false), Standing::default()] {
            assert_eq!(Standing::read(&one.text()), Some(one));
        }
        assert_eq!(["", "0:1", "a|", "0:1|x", "0:1|2.1:x"].map(Standing::read), [const { None }; 5]);
    }

    nnrs_kernels::unit_test!(who_is_within_a_run_that_is_over_elsewhere_is_late);
    fn who_is_within_a_run_that_is_over_elsewhere_is_late() {
        let late = |all: &[(&str, bool)]| {
            let all: Vec<Standing> = all.iter().map(|(position, failed)| standing(position, *failed)).collect();
            let found = LateRun::find("bcast", &all).map_err(drop)?;
            Ok(found.map(|l| (l.rank, l.position.to_vec(), l.level)))
        };
        assert_eq!(late(&[("a:3", false), ("", false)]), Ok(None)); // nothing has failed: that is theirs
        assert_eq!(late(&[("a:3", true), ("a:3", false)]), Ok(None));
        assert_eq!(late(&[("a:3", false), ("", true)]), Ok(Some((1, places("a:3"), 0))));
        assert_eq!(late(&[("", true), ("a:3", true), ("a:3", false)]), Ok(Some((0, places("a:3"), 0))));
        assert_eq!(late(&[("a:3 b:1", false), ("a:3", true)]), Ok(Some((1, places("a:3 b:1"), 1))));
        assert_eq!(late(&[("a:3", true), ("a:2", true)]), Ok(Some((0, places("a:2"), 0))));
        assert_eq!(late(&[("a:3 b:2", true), ("a:3 b:1", false)]), Ok(Some((0, places("a:3 b:1"), 1))));
        for unknown in [["a:3", "a:2", ""], ["a:3", "", "a:2"], ["a:3", "b:3", "b:3"], ["a:4", "b:3", "a:4"]] {
            assert_eq!(late(&unknown.map(|position| (position, true))), Err(()));
        }
        assert_eq!(late(&[("a:3", true), ("", false)]), Err(()));
    }

    nnrs_kernels::unit_test!(runs_of_a_thread_end_with_their_last_callback);
    fn runs_of_a_thread_end_with_their_last_callback() {
        let world = (None, 1 << 40, 0); // no other test's
        let place = |number| places(&format!("a:{number}")).remove(0);
        [(7, 3), (7, 5), (8, 1)].into_iter().for_each(|(run, number)| join(world, run, place(number)));
        let elsewhere = std::thread::spawn(move || position(world)).join().unwrap();
        assert_eq!((position(world), elsewhere), (vec![(7, place(3)), (8, place(1))], vec![]));
        [8, 7].into_iter().for_each(leave);
        assert_eq!(position(world), [(7, place(3))]);
        leave(7);
        assert_eq!(position(world), []);
    }

    nnrs_kernels::unit_test!(a_run_fails_once_and_on_all_that_are_one_rank);
    fn a_run_fails_once_and_on_all_that_are_one_rank() {
        let [a, b, c] = [0, 1, 2].map(|rank| (None, 1 << 41, rank)); // no other test's
        let noted = [1, 1, 2].map(|run| note_failed(a, run, "oh"));
        assert!(noted[0].number == noted[1].number && noted[2].before == noted[0].number);
        assert_eq!(
            (last_failed(a).number, last_failed(a).why, last_failed(b).number),
            (noted[2].number, "oh".into(), 0)
        );
        std::thread::spawn(move || [b, a, b].map(position)).join().unwrap();
        assert_eq!(last_failed(b).number, noted[2].number);
        let last = note_failed(b, 3, "no").number;
        assert_eq!([a, b, c].map(|world| last_failed(world).number), [last, last, 0]);
        assert!(failures() >= last);
    }
    nnrs_kernels::unit_test!(worlds_are_apart_until_a_thread_is_in_both);
    fn worlds_are_apart_until_a_thread_is_in_both() {
        let [a, b, c] = [0, 1, 2].map(|id| (Some(id), 1 << 42, 1)); // no other test's
        let failed = note_failed(a, 1, "oh").number;
        let seen = || [a, b, c].map(|world| last_failed(world).number);
        assert_eq!(seen(), [failed, 0, 0]);
        let made = move || [a, b, (Some(2), 1 << 42, 2)].map(note_made); // of one thread, and another rank
        std::thread::spawn(made).join().unwrap();
        assert_eq!(seen(), [failed, failed, 0]);
        std::thread::spawn(move || [b, c].map(position)).join().unwrap();
        assert_eq!(seen(), [failed; 3]);
        assert_eq!(last_failed((Some(2), 1 << 42, 2)).number, 0);
    }
}
