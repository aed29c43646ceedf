//! The end of the interpreter. Python ends a thread that wants the GIL back by then, by unwinding its stack, which Rust's
//! frames do not survive. So a thread that comes back from engine code after the end has begun waits for ever instead (as
//! all threads do from Python 3.14 on), and the end waits until no thread is on the way back.

use nnrs_kernels::fork::{self, at_fork};
use nnrs_kernels::pool;
use pyo3::prelude::*;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How long the end waits for Python code that engine code has called: hooks, functions in Python.
const PATIENCE: Duration = Duration::from_secs(2);

static ENDS: AtomicBool = AtomicBool::new(false);
/// How often a thread is on the way to Python, or in Python code that engine code has called.
static UNDERWAY: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MINE: Cell<usize> = const { Cell::new(0) };
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
        MINE.set(MINE.get() + 1);
        if IS_DETACHED.get() && is_over() {
            wait_for_ever();
        }
        ReturningThread
    }
}

/// The interpreter ends, and not by this thread.
fn is_over() -> bool {
    ENDS.load(SeqCst) && !IS_LAST.get()
}

fn wait_for_ever() {
    UNDERWAY.fetch_sub(MINE.get(), SeqCst);
    fork::resting(|| {
        loop {
            std::thread::park();
        }
    })
}

impl Drop for ReturningThread {
    fn drop(&mut self) {
        MINE.set(MINE.get() - 1);
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
    let (found, _way) = py.detach(|| {
        let _detached = Detached::set(true);
        let found = fork::working(f);
        (found, ReturningThread::begin())
    });
    found
}

/// Runs Python code out of engine code, which may have been called without the GIL.
pub(crate) fn attached<R>(f: impl FnOnce(Python<'_>) -> R) -> R {
    let _way = ReturningThread::begin();
    let _detached = Detached::set(false);
    pool::unstoppable(|| fork::resting(|| Python::attach(f)))
}

/// Calls Python code with the GIL held.
pub(crate) fn calling<R>(py: Python<'_>, f: impl FnOnce() -> R) -> R {
    let _way = ReturningThread::begin();
    if is_over() {
        py.detach(wait_for_ever);
    }
    f()
}

// In the child of a fork no other thread is underway.
at_fork!(InChild, || {
    let _ = MINE.try_with(|mine| UNDERWAY.store(mine.get(), SeqCst));
});

/// The interpreter is about to end.
#[pyfunction]
fn finish(py: Python<'_>) {
    IS_LAST.set(true);
    ENDS.store(true, SeqCst);
    let begin = Instant::now();
    while UNDERWAY.load(SeqCst) > 0 && begin.elapsed() < PATIENCE {
        py.detach(|| std::thread::sleep(Duration::from_micros(200)));
    }
}

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.py().import("atexit")?.call_method1("register", (wrap_pyfunction!(finish, m)?,)).map(drop)
}
