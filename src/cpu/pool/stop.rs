//! Stopping in the middle of a job: the thread that runs it is asked between chunks.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// How long nobody is asked again.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy)]
struct Ask {
    stop: fn() -> bool,
    last: Instant,
}

thread_local! {
    static ASK: Cell<Option<Ask>> = const { Cell::new(None) };
}

/// What a stopped job unwinds with.
struct Stopped;

/// Runs `f`. Between chunks of its jobs `stop` is asked now and then, on this thread; where it says true, `f` is unwound, and
/// nothing comes back: what it was about to write is unfinished.
pub fn stoppable<R>(stop: fn() -> bool, f: impl FnOnce() -> R) -> Option<R> {
    match with(Some(Ask { stop, last: Instant::now() }), || catch_unwind(AssertUnwindSafe(f))) {
        Ok(done) => Some(done),
        Err(payload) if payload.is::<Stopped>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Runs `f` to its end: somebody else's code, which nobody may unwind.
pub fn unstoppable<R>(f: impl FnOnce() -> R) -> R {
    with(None, f)
}

fn with<R>(ask: Option<Ask>, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Ask>);
    impl Drop for Restore {
        fn drop(&mut self) {
            ASK.set(self.0);
        }
    }
    let _restore = Restore(ASK.replace(ask));
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

/// Between two chunks: unwinds the job if it is to stop.
pub(super) fn check() {
    if is_to_stop() {
        resume_unwind(Box::new(Stopped));
    }
}
