//! The end of the interpreter. Python ends a thread that wants the GIL back by then, which Rust's frames on its stack do not
//! survive: such a thread stays where it is instead ([`stay`]), as all threads do from Python 3.14 on. So does one that comes
//! back from engine code after the end has begun; the end waits for those that are on the way then.
//!
//! It begins when all functions of Python's `atexit` have been called: these may still wait for other threads.

use super::stay;
use nnrs_kernels::fork::{self, at_fork};
use nnrs_kernels::pool;
use pyo3::prelude::*;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How long the end waits for threads on the way to Python. They need the GIL, which others may want too.
const PATIENCE: Duration = Duration::from_secs(2);

static ENDS: AtomicBool = AtomicBool::new(false);
/// How many threads are on the way to Python: they have not got the GIL yet.
static UNDERWAY: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// In engine code without the GIL.
    static IS_DETACHED: Cell<bool> = const { Cell::new(false) };
    /// The thread that ends the interpreter.
    static IS_LAST: Cell<bool> = const { Cell::new(false) };
}

/// A thread on its way to Python.
struct ReturningThread;

impl ReturningThread {
    fn begin() -> ReturningThread {
        UNDERWAY.fetch_add(1, SeqCst);
        if IS_DETACHED.get() && is_over() {
            UNDERWAY.fetch_sub(1, SeqCst);
            stay::for_ever();
        }
        ReturningThread
    }
}

/// The interpreter ends, and not by this thread.
pub(super) fn is_over() -> bool {
    ENDS.load(SeqCst) && !IS_LAST.try_with(Cell::get).unwrap_or(false)
}

impl Drop for ReturningThread {
    fn drop(&mut self) {
        UNDERWAY.fetch_sub(1, SeqCst);
    }
}

/// Sets whether the thread is without the GIL until it is dropped.
struct Detached(bool);

impl Detached {
    fn set(now: bool) -> Detached {
        Detached(IS_DETACHED.replace(now))
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        IS_DETACHED.set(self.0);
    }
}

/// Runs engine code with the GIL released.
pub(crate) fn detached<R: Send>(py: Python<'_>, f: impl FnOnce() -> R + Send) -> R {
    stay::mark();
    let (found, _way) = py.detach(|| {
        let _detached = Detached::set(true);
        let found = fork::working(f);
        (found, ReturningThread::begin())
    });
    found
}

/// Runs Python code out of engine code, which may have been called without the GIL.
pub(crate) fn attached<R>(f: impl FnOnce(Python<'_>) -> R) -> R {
    stay::mark();
    let way = ReturningThread::begin();
    let _detached = Detached::set(false);
    let there = |py: Python<'_>| {
        drop(way);
        f(py)
    };
    pool::unstoppable(|| fork::resting(|| Python::attach(there)))
}

/// Calls Python code with the GIL held.
pub(crate) fn calling<R>(_: Python<'_>, f: impl FnOnce() -> R) -> R {
    stay::mark();
    f()
}

// In the child of a fork no other thread is underway.
at_fork!(InChild, || UNDERWAY.store(0, SeqCst));

/// `atexit` lets go of it when all functions have been called.
#[pyclass(frozen)]
struct Last {
    was_called: AtomicBool,
}

#[pymethods]
impl Last {
    fn __call__(&self) {
        self.was_called.store(true, SeqCst);
    }
}

impl Drop for Last {
    fn drop(&mut self) {
        if self.was_called.load(SeqCst) {
            Python::attach(finish);
        }
    }
}

/// The interpreter is about to end.
fn finish(py: Python<'_>) {
    IS_LAST.set(true);
    ENDS.store(true, SeqCst);
    let begin = Instant::now();
    while UNDERWAY.load(SeqCst) > 0 && begin.elapsed() < PATIENCE {
        py.detach(|| std::thread::sleep(Duration::from_micros(200)));
    }
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    stay::register();
    let last = Bound::new(m.py(), Last { was_called: AtomicBool::new(false) })?;
    m.py().import("atexit")?.call_method1("register", (last,)).map(drop)
}
