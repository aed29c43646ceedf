//! Ending a kernel in its middle: the thread that runs a job is asked between chunks whether to stop, and a kernel that gets
//! no memory cannot go on.

use crate::error::Error;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long `stop` is not asked again.
pub(super) const PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy)]
struct Ask {
    stop: fn() -> bool,
    last: Instant,
}

thread_local! {
    static ASK: Cell<Option<Ask>> = const { Cell::new(None) };
    /// Says that the pool's job, which this thread works on, is to end.
    static ENDS: Cell<Option<&'static AtomicBool>> = const { Cell::new(None) };
}

/// Why a kernel was unwound.
pub enum End {
    Stopped,
    /// Something that it needs was refused.
    Refused(Error),
}

/// Runs `f`. Between chunks of its jobs `stop`, where there is one, is asked now and then, on this thread; where it says
/// true, or a kernel [refuses](refuse) to go on, `f` is unwound: what it was about to write is unfinished.
pub fn contained<R>(stop: Option<fn() -> bool>, f: impl FnOnce() -> R) -> Result<R, End> {
    let f = || catch_unwind(AssertUnwindSafe(f));
    let done = match stop {
        Some(stop) => with(Some(Ask { stop, last: Instant::now() }), f),
        None => f(),
    };
    done.map_err(|payload| *payload.downcast::<End>().unwrap_or_else(|other| resume_unwind(other)))
}

/// Unwinds the kernel that calls it.
#[cold]
pub fn refuse(e: Error) -> ! {
    resume_unwind(Box::new(End::Refused(e)))
}

/// Runs `f` to its end: a script's or library's code, which may not be unwound.
pub fn unstoppable<R>(f: impl FnOnce() -> R) -> R {
    with(None, f)
}

fn with<R>(ask: Option<Ask>, f: impl FnOnce() -> R) -> R {
    struct RestoreAsk(Option<Ask>);
    impl Drop for RestoreAsk {
        fn drop(&mut self) {
            ASK.set(self.0);
        }
    }
    let _restore = RestoreAsk(ASK.replace(ask));
    f()
}

/// Asks whether to stop, if it is time to.
pub fn is_to_stop() -> bool {
    let Some(ask) = ASK.get() else { return false };
    let now = Instant::now();
    if now - ask.last < PAUSE {
        return false;
    }
    ASK.set(Some(Ask { last: now, ..ask }));
    unstoppable(ask.stop)
}

/// Whether this thread asks.
pub(super) fn asks() -> bool {
    ASK.get().is_some()
}

/// Runs `f`, a part of a pool's job, which `ends` tells to end.
pub(super) fn in_job<R>(ends: &'static AtomicBool, f: impl FnOnce() -> R) -> R {
    let before = ENDS.replace(Some(ends));
    let done = f();
    ENDS.set(before);
    done
}

/// Between two chunks, or in the middle of a long one: unwinds the job if it is to stop.
pub fn check() {
    if ENDS.get().is_some_and(|ends| ends.load(Relaxed)) || is_to_stop() {
        resume_unwind(Box::new(End::Stopped));
    }
}

/// [Checks](check) in a long loop, after every so much work.
pub struct Pace {
    left: usize,
}

impl Pace {
    /// Multiplications, or what takes as long, between two checks.
    const WORK: usize = 1 << 22;

    #[allow(clippy::new_without_default)] // begins to count
    pub fn new() -> Pace {
        Pace { left: Pace::WORK }
    }

    /// Before the next `work` multiplications.
    #[inline(always)]
    pub fn step(&mut self, work: usize) {
        match self.left.checked_sub(work) {
            Some(left) => self.left = left,
            None => self.check(),
        }
    }

    #[cold]
    #[inline(never)]
    fn check(&mut self) {
        check();
        self.left = Pace::WORK;
    }
}
