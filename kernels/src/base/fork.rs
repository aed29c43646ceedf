//! Forks. A lock that another thread holds while the process forks stays locked in the child, whose first allocation would
//! wait for it for ever. So the engine's global locks are taken before a fork and given back after it, on both sides, and
//! what is made on first use is not in the making then. The child forgets the workers of the thread pool, and knows that
//! what other threads ran is over. Locks of single variables and functions stay as they are, so a fork waits for threads
//! that are [`working`] in the engine (for those of Python, whenever they have released the GIL), but for no more than
//! [`PATIENCE`]; a Rust program's child runs graphs of its own, or those that no other thread was at work on.
//!
//! A module that has something to do around a fork says so where it is ([`at_fork`]).

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64};
use std::sync::{Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::time::{Duration, Instant};

type ForkGuard = Box<dyn Any>;

/// What a file has to do around each fork.
pub enum AtFork {
    /// Before it: make what is made on first use, or wait for the thread that does.
    Ready(fn()),
    /// Take a lock, and hold it until the fork is over. None of these is taken while another one is held.
    Hold(fn() -> ForkGuard),
    /// Take a lock that may be wanted under the others, after them.
    HoldInner(fn() -> ForkGuard),
    /// In the child, under the locks: other threads are gone.
    InChild(fn()),
}

inventory::collect!(AtFork);

/// `at_fork!(Hold, lock())`: what to do around each fork, see [`AtFork`].
#[macro_export]
macro_rules! at_fork {
    (Ready, $ready:expr) => {
        $crate::inventory::submit! { $crate::fork::AtFork::Ready(|| { let _ = $ready; }) }
    };
    (InChild, $act:expr) => {
        $crate::inventory::submit! { $crate::fork::AtFork::InChild($act) }
    };
    ($hold:ident, $guard:expr) => {
        $crate::inventory::submit! { $crate::fork::AtFork::$hold(|| Box::new($guard)) }
    };
}
pub use at_fork;

static COUNT: AtomicU64 = AtomicU64::new(0);
static FILLING: Mutex<()> = Mutex::new(());

fn filling() -> MutexGuard<'static, ()> {
    FILLING.lock().unwrap_or_else(|e| e.into_inner())
}

/// The content of a cell, which `make` makes on first use, never across a fork. It must not fill another cell.
#[inline]
pub fn fill<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    cell.get().unwrap_or_else(|| {
        let _one = filling();
        cell.get_or_init(make)
    })
}

/// How long a fork waits for the work of other threads.
const PATIENCE: Duration = Duration::from_secs(10);

/// Threads at work share it; a fork has it alone. The child of a fork that could not wait so long has another one: no thread
/// gives back what threads had that are gone.
static WORK: AtomicPtr<RwLock<()>> = AtomicPtr::new(&raw const FIRST as *mut _);
static FIRST: RwLock<()> = RwLock::new(());

fn work() -> &'static RwLock<()> {
    // SAFETY: a static, or a box that is never freed; both are shared only.
    unsafe { &*WORK.load(Acquire) }
}

at_fork!(InChild, || {
    let is_free = HELD.try_with(|held| held.borrow().iter().any(|h| h.is::<RwLockWriteGuard<'static, ()>>()));
    if is_free != Ok(true) {
        let mine = share();
        WORK.store(Box::leak(Box::new(RwLock::new(()))), Release);
        if mine.is_some() {
            begin_work();
        }
    }
});

thread_local! {
    static WORKING: Cell<Option<RwLockReadGuard<'static, ()>>> = const { Cell::new(None) };
}

/// This thread's share, taken out; none if it is not at work (or at its end).
fn share() -> Option<RwLockReadGuard<'static, ()>> {
    WORKING.try_with(Cell::take).ok().flatten()
}

fn begin_work() {
    let share = work().read().unwrap_or_else(|e| e.into_inner());
    let _ = WORKING.try_with(|working| working.set(Some(share)));
}

/// Does a piece of work, which is no part of another one: no fork comes in between.
#[inline]
pub fn working<R>(f: impl FnOnce() -> R) -> R {
    begin_work();
    let _end = OnDrop(|| drop(share()));
    f()
}

/// Does something that may wait for another thread, the one that forks included.
pub fn resting<R>(f: impl FnOnce() -> R) -> R {
    let is_working = share().is_some();
    let _end = OnDrop(|| {
        if is_working {
            begin_work()
        }
    });
    f()
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    #[inline]
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Other threads are at rest, or do not come to it.
fn all_at_rest() -> Option<RwLockWriteGuard<'static, ()>> {
    let begin = Instant::now();
    loop {
        match work().try_write() {
            Ok(alone) => return Some(alone),
            Err(TryLockError::Poisoned(e)) => return Some(e.into_inner()),
            Err(TryLockError::WouldBlock) if begin.elapsed() > PATIENCE => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_micros(50)),
        }
    }
}

thread_local! {
    static HELD: RefCell<Vec<ForkGuard>> = const { RefCell::new(Vec::new()) };
}

extern "C" fn before() {
    let all = || inventory::iter::<AtFork>.into_iter();
    all().for_each(|act| {
        if let AtFork::Ready(ready) = act {
            ready()
        }
    });
    // A thread without its locals is at its end, and forks without the locks.
    let _ = HELD.try_with(|held| {
        let mut held = held.borrow_mut();
        held.extend(all_at_rest().map(|alone| Box::new(alone) as ForkGuard));
        held.push(Box::new(filling()));
        held.extend(all().filter_map(|act| if let AtFork::Hold(take) = act { Some(take()) } else { None }));
        held.extend(all().filter_map(|act| if let AtFork::HoldInner(take) = act { Some(take()) } else { None }));
    });
}

extern "C" fn after() {
    let _ = HELD.try_with(|held| held.borrow_mut().clear());
}

extern "C" fn after_in_child() {
    COUNT.fetch_add(1, Relaxed);
    inventory::iter::<AtFork>.into_iter().for_each(|act| {
        if let AtFork::InChild(act) = act {
            act()
        }
    });
    after();
}

/// How often this process is a fork of the one that first watched: what other threads held before the last one, no thread
/// holds now.
#[inline]
pub fn count() -> u64 {
    COUNT.load(Relaxed)
}

/// Sees to it that forks from now on find the engine usable in the child. To be called before any other thread may be at
/// work in the engine: a fork that has begun does not see it.
pub fn watch() {
    #[cfg(unix)]
    {
        static REGISTERED: std::sync::Once = std::sync::Once::new();
        // SAFETY: both handlers are functions of this library, which is never unloaded.
        REGISTERED.call_once(|| unsafe {
            libc::pthread_atfork(Some(before), Some(after), Some(after_in_child));
        });
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A child that gives what `f` gives, asked for by its parent.
    fn in_child(f: impl FnOnce() -> i32) -> i32 {
        // SAFETY: the child does no more than `f`.
        match unsafe { libc::fork() } {
            // SAFETY: ends the child, without the handlers of its parent.
            0 => unsafe { libc::_exit(f()) },
            child => {
                let mut status = 0;
                // SAFETY: waits for a child of this thread.
                unsafe { libc::waitpid(child, &mut status, 0) };
                if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 }
            }
        }
    }

    unit_test!(what_a_fork_gave_up_waiting_for_is_over_in_the_child);
    /// Work that lasts longer than a fork waits is over in the child, whose own forks do not wait for it.
    fn what_a_fork_gave_up_waiting_for_is_over_in_the_child() {
        watch();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let long = std::thread::spawn(move || working(|| ended.recv().is_err()));
        while work().try_write().is_ok() {
            std::thread::yield_now();
        }
        let forks_at_once = || {
            let begin = Instant::now();
            let codes = [in_child(|| 0), in_child(|| 0)];
            i32::from(codes != [0, 0] || begin.elapsed() > PATIENCE)
        };
        let code = in_child(forks_at_once);
        drop(end);
        assert!(long.join().unwrap() && code == 0);
    }
}
