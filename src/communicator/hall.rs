//! Where ranks that are threads leave letters for each other, and how one that has gone ends the others.

use super::transport::CollectiveCall;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What one rank sends in a move: who reads it takes what is for him.
#[derive(Clone)]
pub(super) struct Letter {
    /// The move, which has to be the reader's too.
    pub(super) kind: &'static str,
    pub(super) bytes: Arc<Vec<u8>>,
    /// How many ranks will read it.
    pub(super) readers: usize,
}

/// The letters of a group by the number of the move and the sender's place, and which places have been left, and why.
#[derive(Default)]
struct HallGroup {
    letters: HashMap<(u64, usize), Letter>,
    /// Places about to be left.
    leaving: HashSet<usize>,
    left: HashMap<usize, String>,
}

/// What a rank does, for messages.
#[derive(Clone, Default)]
enum Whereabouts {
    #[default]
    Outside,
    In(CollectiveCall),
    After(CollectiveCall),
}

impl std::fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Whereabouts::Outside => f.write_str("is in no collective"),
            Whereabouts::In(call) => write!(f, "is in {call}"),
            Whereabouts::After(call) => write!(f, "is in no collective since {call}"),
        }
    }
}

struct HallState {
    groups: HashMap<Arc<str>, HallGroup>,
    /// Of each rank of the world.
    whereabouts: Vec<Whereabouts>,
    /// Why all is over.
    broken: Option<String>,
}

/// The meeting place of all ranks of a world.
pub(super) struct Hall {
    /// No other one of this process has it.
    pub(super) id: u64,
    state: Mutex<HallState>,
    news: Condvar,
    timeout: Duration,
}

/// A place in a group: whose letters are read.
pub(super) struct HallPlace<'a> {
    pub(super) group: &'a Arc<str>,
    /// The ranks of the world in the group.
    pub(super) members: &'a [usize],
    pub(super) own: usize,
    /// Whether nobody waits for its moves here.
    pub(super) is_patient: &'a AtomicBool,
}

impl HallPlace<'_> {
    fn rank(&self) -> usize {
        self.members[self.own]
    }
}

fn over(text: &str) -> Error {
    Error::new(ErrorKind::Communicator, text)
}

impl Hall {
    pub(super) fn new(size: usize, timeout: Duration) -> Hall {
        let whereabouts = vec![Whereabouts::Outside; size];
        let state = HallState { groups: HashMap::new(), whereabouts, broken: None };
        static HALLS: AtomicU64 = AtomicU64::new(1 << 32); // beyond what programs call their worlds
        Hall { id: HALLS.fetch_add(1, Relaxed), state: Mutex::new(state), news: Condvar::new(), timeout }
    }

    fn lock(&self) -> MutexGuard<'_, HallState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self, rank: usize, call: &CollectiveCall) {
        self.lock().whereabouts[rank] = Whereabouts::In(call.clone());
    }

    pub(super) fn end(&self, rank: usize, call: &CollectiveCall) {
        self.lock().whereabouts[rank] = Whereabouts::After(call.clone());
    }

    /// A place of a group is left, for the first reason that is given.
    pub(super) fn leave(&self, group: &Arc<str>, place: usize, why: &str) {
        let mut state = self.lock();
        let left = &mut state.groups.entry(group.clone()).or_default().left;
        left.entry(place).or_insert_with(|| why.to_string());
        drop(state);
        self.news.notify_all();
    }

    /// A place of a group will be left, but for what its moves that go on wait for.
    pub(super) fn prepare_to_leave(&self, group: &Arc<str>, place: usize) {
        self.lock().groups.entry(group.clone()).or_default().leaving.insert(place);
        self.news.notify_all();
    }

    /// Something has changed of what those that wait look at.
    pub(super) fn wake(&self) {
        drop(self.lock()); // so that none is about to wait
        self.news.notify_all();
    }

    /// Leaves a letter.
    pub(super) fn post(&self, place: &HallPlace, number: u64, letter: Letter) -> Result<()> {
        let mut state = self.lock();
        if let Some(why) = &state.broken {
            return Err(over(why));
        }
        let group = state.groups.entry(place.group.clone()).or_default();
        group.letters.insert((number, place.own), letter);
        drop(state);
        self.news.notify_all();
        Ok(())
    }

    /// The letter of the group's rank `from` in that move, which is waited for.
    pub(super) fn take(&self, place: &HallPlace, number: u64, kind: &'static str, from: usize) -> Result<Arc<Vec<u8>>> {
        let mut begin = Instant::now();
        let mut state = self.lock();
        loop {
            if let Some(why) = &state.broken {
                return Err(over(why));
            }
            let group = state.groups.entry(place.group.clone()).or_default();
            if let Some(why) = group.left.get(&place.own) {
                return Err(over(&format!("this rank {why}")));
            }
            if let Some(letter) = group.take((number, from)) {
                return match letter.kind == kind {
                    true => Ok(letter.bytes),
                    false => Err(self.fail(state, place, &other_move(place, from, letter.kind))),
                };
            }
            let is_patient = place.is_patient.load(Relaxed);
            if let Some(why) = group.left.get(&from) {
                let text = format!("rank {} {why} without coming to it", place.members[from]);
                return Err(if is_patient { over(&text) } else { self.fail(state, place, &text) });
            }
            if is_patient {
                if group.leaving.contains(&place.own) && group.leaving.contains(&from) {
                    return Err(over(&format!("rank {} is about to leave, too", place.members[from])));
                }
                begin = Instant::now();
            }
            let waited = begin.elapsed();
            if waited >= self.timeout {
                let text = self.late(&state, place, from);
                return Err(self.fail(state, place, &text));
            }
            state = self.news.wait_timeout(state, self.timeout - waited).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn late(&self, state: &HallState, place: &HallPlace, from: usize) -> String {
        let rank = place.members[from];
        let seconds = self.timeout.as_secs_f64();
        format!("not over after {seconds} s: rank {rank} did not come to it; it {}", state.whereabouts[rank])
    }

    /// Ends the moves of all ranks; gives the error of this one.
    fn fail(&self, mut state: MutexGuard<'_, HallState>, place: &HallPlace, text: &str) -> Error {
        let (rank, at) = (place.rank(), &state.whereabouts[place.rank()]);
        let told = match at {
            Whereabouts::In(call) => format!("rank {rank} has given up in {call}: {text}"),
            _ => format!("rank {rank} has given up: {text}"),
        };
        state.broken = Some(told);
        drop(state);
        self.news.notify_all();
        over(text)
    }
}

impl HallGroup {
    /// A letter, which goes with its last reader.
    fn take(&mut self, at: (u64, usize)) -> Option<Letter> {
        let letter = self.letters.get_mut(&at)?;
        letter.readers = letter.readers.saturating_sub(1);
        if letter.readers > 0 { Some(letter.clone()) } else { self.letters.remove(&at) }
    }
}

fn other_move(place: &HallPlace, from: usize, kind: &str) -> String {
    format!("rank {} makes another move, {kind}", place.members[from])
}
