//! Exclusive use of functions: two threads that run one graph take turns.

use crate::graph::node::FnNode;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::fork::{self, at_fork};
use nnrs_kernels::stack;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// Some functions that no other thread runs meanwhile.
pub(crate) struct Turn<'a> {
    nodes: Vec<&'a FnNode>,
}

static NEXT_RUNNER: AtomicU64 = AtomicU64::new(1);
/// Below it the number of the thread, above it how many forks ago.
const FORKS_SHIFT: u32 = 48;
/// How often a thread that waits looks without a pause.
const EAGER: usize = 100;
const PAUSE: Duration = Duration::from_micros(50);

/// So many runs of a thread may be in the middle of each other: the stack ends somewhere.
const MAX_DEPTH: usize = 500;

thread_local! {
    static RUNNER: Cell<u64> = Cell::new(NEXT_RUNNER.fetch_add(1, Ordering::Relaxed));
    /// The turns that the thread has, in hooks of each other.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A thread that waits for another one's turn. It may have turns itself, and is in a hook of theirs then.
struct Wait {
    thread: u64,
    /// When it began to wait, and when it last looked: numbers of [`Waits::clock`].
    since: u64,
    looked: u64,
    /// Who had a function that it wants when it last looked.
    owner: u64,
}

/// All that have waited for a while. They try again under the lock only, so that what one of them is seen to have it keeps
/// while it waits.
struct Waits {
    list: Vec<Wait>,
    clock: u64,
}

static WAITS: Mutex<Waits> = Mutex::new(Waits { list: Vec::new(), clock: 0 });

fn waits() -> MutexGuard<'static, Waits> {
    WAITS.lock().unwrap_or_else(|e| e.into_inner())
}

at_fork!(Hold, waits());

impl<'a> Turn<'a> {
    /// Waits until no other thread runs these nodes; an error if this thread does, or if another one does that waits, with
    /// others or alone, for what this thread runs.
    pub(crate) fn take(nodes: impl Iterator<Item = &'a FnNode> + Clone) -> Result<Turn<'a>> {
        let depth = DEPTH.get();
        if depth >= MAX_DEPTH || (depth > 0 && stack::left() <= STACK) {
            return Err(too_deep(depth));
        }
        let me = Turn::me();
        for _ in 0..EAGER {
            match Turn::try_all(nodes.clone(), me) {
                Ok(turn) => return Ok(turn),
                Err(owner) if is_same(owner, me) => return Err(nested()),
                Err(_) => fork::resting(std::thread::yield_now),
            }
        }
        loop {
            let found = waits().look(me, || Turn::try_all(nodes.clone(), me));
            if let Some(found) = found {
                return found;
            }
            fork::resting(|| std::thread::sleep(PAUSE));
        }
    }

    /// For work that may come in the middle of a run: what this thread runs already is not taken, and where others do not
    /// end soon, nothing is, lest two wait for each other.
    pub(crate) fn take_soon(nodes: impl Iterator<Item = &'a FnNode> + Clone) -> Option<Turn<'a>> {
        let me = Turn::me();
        for _ in 0..200 {
            let others = nodes.clone().filter(|f| !is_same(f.turn.busy.load(Ordering::Relaxed), me));
            if let Ok(turn) = Turn::try_all(others, me) {
                return Some(turn);
            }
            fork::resting(|| std::thread::sleep(PAUSE));
        }
        None
    }

    /// This thread, and after how many forks: in a child the other threads' turns are over.
    fn me() -> u64 {
        RUNNER.with(Cell::get) | (fork::count() << FORKS_SHIFT)
    }

    /// All of the nodes, or the run that has one of them.
    fn try_all(nodes: impl Iterator<Item = &'a FnNode>, me: u64) -> Result<Turn<'a>, u64> {
        let mut turn = Turn { nodes: Vec::with_capacity(nodes.size_hint().0) };
        DEPTH.set(DEPTH.get() + 1);
        for f in nodes {
            let mut free = 0;
            while let Err(owner) = f.turn.busy.compare_exchange(free, me, Ordering::Acquire, Ordering::Relaxed) {
                let is_gone = owner >> FORKS_SHIFT != me >> FORKS_SHIFT && !is_same(owner, me);
                if owner != 0 && !is_gone {
                    return Err(owner);
                }
                free = owner;
            }
            turn.nodes.push(f);
        }
        Ok(turn)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        for f in &self.nodes {
            f.turn.busy.store(0, Ordering::Release);
        }
    }
}

impl Waits {
    /// One more try of a thread that waits; `None` if it has to wait on.
    fn look<T>(&mut self, me: u64, attempt: impl FnOnce() -> Result<T, u64>) -> Option<Result<T>> {
        let found = match attempt() {
            Ok(turn) => Some(Ok(turn)),
            Err(owner) if is_same(owner, me) => Some(Err(nested())),
            Err(owner) => {
                self.note(me, owner);
                self.is_stuck(me).then(|| Err(stuck()))
            }
        };
        if found.is_some() {
            self.list.retain(|w| w.thread != me);
        }
        found
    }

    /// Notes that `me` has looked, and which run had what it wants.
    fn note(&mut self, me: u64, owner: u64) {
        self.clock += 1;
        let now = self.clock;
        match self.list.iter_mut().find(|w| w.thread == me) {
            Some(w) => (w.looked, w.owner) = (now, owner),
            None => self.list.push(Wait { thread: me, since: now, looked: now, owner }),
        }
    }

    /// Each thread from this one's owner on waits for the next, and the last for this one. Who one waits for is sure if it
    /// has looked since that one waits.
    fn is_stuck(&self, me: u64) -> bool {
        let of = |thread: u64| self.list.iter().find(|w| w.thread == thread);
        let mut at = of(me);
        for _ in 0..self.list.len() {
            let Some((wait, next)) = at.and_then(|w| Some((w, of(w.owner)?))) else { return false };
            if wait.looked < next.since {
                return false;
            }
            if next.thread == me {
                return true;
            }
            at = Some(next);
        }
        false
    }
}

/// Bytes of the stack that a run in the middle of another one finds free, user code included.
const STACK: usize = 192 << 10;

/// The same thread, whatever forks lie between.
fn is_same(owner: u64, me: u64) -> bool {
    (owner ^ me) & ((1 << FORKS_SHIFT) - 1) == 0
}

fn nested() -> Error {
    Error::graph("this graph is running: it cannot be run again from inside a hook or a Python function")
        .hint("run it after the outer forward or backward has returned")
}

fn too_deep(depth: usize) -> Error {
    Error::graph(format!("{depth} runs are in the middle of each other: a hook or a Python function runs itself"))
        .hint("run it after the outer forward or backward has returned")
}

fn stuck() -> Error {
    Error::graph("this graph is running in another thread, which waits for the graph that this hook or Python function belongs to")
        .hint("run it after the outer forward or backward has returned")
}
