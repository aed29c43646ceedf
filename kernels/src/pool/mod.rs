//! The thread pool: persistent workers, one published job, chunks claimed dynamically.
//!
//! A job's chunks lie in ranges, one for each thread or for some neighbours, from which a thread claims them in their order: so it meets the
//! same part of an array in one job as in another, and finds in its cache what it has put there. A thread whose range is empty claims the last
//! chunk of another one, so a worker that the system has descheduled holds up no other. An empty region costs about a microsecond.
//! Workers start at the first run that needs them, spin for a short while after each job and then sleep.
//! A run that finds the pool busy (it is nested in a job, or another thread is running one) is done by its caller alone: nothing ever waits
//! for the pool. After a fork the child builds a pool of its own; forking inside a job's own function is not supported.

mod stop;
pub mod tasks;
mod threads;

use crate::fork::at_fork;
use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
pub use stop::{End, Pace, check, contained, is_to_stop, refuse, unstoppable};
use threads::available_cpus;
pub use threads::{num_threads, set_num_threads};

/// How long a worker looks for the next job, and a caller for the end of its own, before going to sleep.
const SPIN: Duration = Duration::from_micros(50);
/// Ranges that a job is cut into, at most.
const RANGES: usize = 16;

/// Calls `f(i)` once for each `i` in `0..chunks`, on the pool's threads and the caller's.
///
/// # Panics
/// With the first panic of `f`, once every chunk that had begun is over; chunks not begun by then are left out. Likewise where
/// the caller is [`contained`] and is to stop.
pub fn run(chunks: usize, f: &(dyn Fn(usize) + Sync)) {
    let threads = if chunks <= 1 { 1 } else { num_threads() };
    if threads <= 1 || chunks > u32::MAX as usize {
        return alone(chunks, f);
    }
    let pool = current(threads);
    if pool.busy.swap(true, Acquire) {
        return alone(chunks, f);
    }
    pool.run(chunks, f);
}

/// Runs a job on the caller's thread.
fn alone(chunks: usize, f: &(dyn Fn(usize) + Sync)) {
    for i in 0..chunks {
        if i > 0 {
            check();
        }
        f(i);
    }
}

/// The pool in use. Pools are never freed (a few hundred bytes for each change of the thread count, and for each fork),
/// because a thread may hold a reference while another one replaces the pool.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());

/// A value with a pair of cache lines to itself (the prefetcher fetches them in pairs).
#[repr(align(128))]
struct OwnLines<T>(T);

/// Chunks `low .. high` that are not claimed yet, in one word.
struct ChunkRange(AtomicU64);

impl ChunkRange {
    fn set(&self, low: usize, high: usize) {
        self.0.store((high as u64) << 32 | low as u64, Release);
    }

    /// Claims the first chunk or the last.
    fn claim(&self, last: bool) -> Option<usize> {
        let take = |word: u64| {
            let (low, high) = (word & u32::MAX as u64, word >> 32);
            (low < high).then(|| if last { word - (1 << 32) } else { word + 1 })
        };
        let word = self.0.fetch_update(AcqRel, Acquire, take).ok()?;
        Some(if last { (word >> 32) as usize - 1 } else { word as u32 as usize })
    }

    /// Claims all; gives how many there were.
    fn empty(&self) -> usize {
        let word = self.0.swap(0, AcqRel);
        (word >> 32) as usize - word as u32 as usize
    }
}

struct Pool {
    threads: usize,
    spin: Duration,
    /// Whether some thread is running a job: it alone may write `job`.
    busy: AtomicBool,
    /// Chunks of the job that are not claimed yet.
    unclaimed: Vec<OwnLines<ChunkRange>>,
    /// How many jobs there have been.
    jobs: OwnLines<AtomicUsize>,
    /// Chunks of the job not reported as done yet. While it is above zero, `job` stays valid.
    unfinished: OwnLines<AtomicUsize>,
    job: UnsafeCell<*const (dyn Fn(usize) + Sync)>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// The job is to end: chunks that have begun, too, where they check.
    ends: AtomicBool,
    /// Set when another pool has taken this one's place: the workers end.
    retired: AtomicBool,
    /// Workers asleep on `wake`, and whether the caller sleeps on `done`; both with `gate` locked.
    sleepers: AtomicUsize,
    caller_sleeps: AtomicBool,
    gate: Mutex<()>,
    wake: Condvar,
    done: Condvar,
}

// SAFETY: `job` is written only by the thread that set `busy`, while no chunk is unfinished, and read only by those who claimed a chunk
// (an acquiring read of a range, which is released after `job` is written). The function in it is `Sync`.
unsafe impl Sync for Pool {}
// SAFETY: as above.
unsafe impl Send for Pool {}
/// The pool in use, which is replaced if it has another number of threads.
fn current(threads: usize) -> &'static Pool {
    let old = POOL.load(Acquire);
    // SAFETY: a pool is never freed once it has been in POOL.
    let pool = unsafe { old.as_ref() };
    match pool {
        Some(pool) if pool.threads == threads => pool,
        _ => replace(old, pool, threads),
    }
}

#[cold]
fn replace(old: *mut Pool, retired: Option<&'static Pool>, threads: usize) -> &'static Pool {
    crate::fork::watch();
    let new = Box::into_raw(Box::new(Pool::new(threads)));
    if let Err(other) = POOL.compare_exchange(old, new, AcqRel, Acquire) {
        // SAFETY: `new` was made two lines above and no other thread has seen it.
        drop(unsafe { Box::from_raw(new) });
        // SAFETY: POOL holds no pool that is ever freed. It is null only in a child that was forked right here.
        return unsafe { other.as_ref() }.unwrap_or_else(|| replace(other, None, threads));
    }
    if let Some(pool) = retired {
        pool.retired.store(true, SeqCst);
        let _gate = lock(&pool.gate);
        pool.wake.notify_all();
    }
    // SAFETY: from here on the pool is never freed.
    let pool: &'static Pool = unsafe { &*new };
    pool.start_workers();
    pool
}

// The child of a fork has none of the workers, and perhaps locked mutexes, so it starts afresh. Only writes to an atomic,
// which is allowed there.
at_fork!(InChild, || POOL.store(std::ptr::null_mut(), SeqCst));

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    fn new(threads: usize) -> Pool {
        // Threads that outnumber the CPUs would spin in the way of those that work.
        let spin = if threads <= available_cpus() { SPIN } else { Duration::ZERO };
        Pool {
            threads,
            spin,
            busy: AtomicBool::new(false),
            unclaimed: (0..threads.min(RANGES)).map(|_| OwnLines(ChunkRange(AtomicU64::new(0)))).collect(),
            jobs: OwnLines(AtomicUsize::new(0)),
            unfinished: OwnLines(AtomicUsize::new(0)),
            job: UnsafeCell::new(&|_: usize| {}),
            panic: Mutex::new(None),
            ends: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            caller_sleeps: AtomicBool::new(false),
            gate: Mutex::new(()),
            wake: Condvar::new(),
            done: Condvar::new(),
        }
    }

    /// Where the system has no more threads to give, the pool has fewer workers and works all the same.
    fn start_workers(&'static self) {
        for i in 1..self.threads {
            let worker = std::thread::Builder::new().name(format!("nnrs-{i}"));
            if worker.spawn(move || self.work_forever(i)).is_err() {
                break;
            }
        }
    }

    /// Runs one job as its caller, which has set `busy`.
    fn run(&'static self, chunks: usize, f: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only the lifetime is erased; this function does not return before the last chunk has been reported as done.
        let f: &'static (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(f) };
        // SAFETY: `busy` is ours and no chunk is unfinished, so no other thread looks at the job.
        unsafe { *self.job.get() = f };
        self.ends.store(false, Relaxed);
        self.unfinished.0.store(chunks, Relaxed);
        let first = |i: usize| (i * chunks).div_ceil(self.unclaimed.len());
        self.unclaimed.iter().enumerate().for_each(|(i, range)| range.0.set(first(i), first(i + 1)));
        self.jobs.0.fetch_add(1, SeqCst);
        self.wake_workers(chunks - 1);
        self.work(0);
        self.wait_until_done();
        let panic = lock(&self.panic).take();
        self.busy.store(false, Release);
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
    }

    fn wake_workers(&self, wanted: usize) {
        let asleep = self.sleepers.load(SeqCst);
        if asleep == 0 {
            return;
        }
        let _gate = lock(&self.gate);
        (0..wanted.min(asleep)).for_each(|_| self.wake.notify_one());
    }

    /// As thread number `me`, claims chunks and does them until none is left, then reports them all at once.
    fn work(&'static self, me: usize) {
        let mut finished = 0;
        while let Some(i) = self.claim(me) {
            // SAFETY: a claimed chunk is unfinished until it is reported below, which keeps the job valid and unchanged.
            let f = unsafe { &**self.job.get() };
            let chunk = || {
                check();
                f(i)
            };
            if let Err(payload) = stop::in_job(&self.ends, || catch_unwind(AssertUnwindSafe(chunk))) {
                finished += self.end(payload);
            }
            finished += 1;
        }
        if finished > 0 && self.unfinished.0.fetch_sub(finished, SeqCst) == finished && self.caller_sleeps.load(SeqCst)
        {
            let _gate = lock(&self.gate);
            self.done.notify_one();
        }
    }

    /// Ends the job early. Gives the number of chunks that no thread will begin: they count as done by the caller.
    fn end(&self, payload: Box<dyn Any + Send>) -> usize {
        lock(&self.panic).get_or_insert(payload);
        self.ends.store(true, Relaxed);
        self.unclaimed.iter().map(|range| range.0.empty()).sum()
    }

    /// Takes a chunk of the thread's own range, or else of another.
    fn claim(&self, me: usize) -> Option<usize> {
        let ranges = &self.unclaimed;
        let own = me * ranges.len() / self.threads;
        let (before, from) = ranges.split_at(own);
        let others = || from[1..].iter().chain(before).find_map(|range| range.0.claim(true));
        from[0].0.claim(false).or_else(others)
    }

    fn wait_until_done(&self) {
        if spin_until(self.spin, || self.unfinished.0.load(Acquire) == 0) {
            return;
        }
        // Only workers have chunks now. Where the caller is asked whether to stop, it goes on asking, and they check.
        let asks = stop::asks();
        let mut gate = lock(&self.gate);
        self.caller_sleeps.store(true, SeqCst);
        while self.unfinished.0.load(SeqCst) != 0 {
            if !asks || self.ends.load(Relaxed) {
                gate = self.done.wait(gate).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            gate = self.done.wait_timeout(gate, stop::PAUSE).unwrap_or_else(PoisonError::into_inner).0;
            drop(gate);
            if is_to_stop() {
                self.end(Box::new(End::Stopped)); // all chunks are claimed
            }
            gate = lock(&self.gate);
        }
        self.caller_sleeps.store(false, Relaxed);
    }

    fn work_forever(&'static self, me: usize) {
        let mut seen = 0;
        while !self.retired.load(Relaxed) {
            if !spin_until(self.spin, || self.has_news(seen, Relaxed)) {
                self.sleep(seen);
            }
            seen = self.jobs.0.load(Acquire);
            self.work(me);
        }
    }

    /// Whether there is something to do for a worker that has seen so many jobs: look for chunks of another, or end.
    fn has_news(&self, seen: usize, order: std::sync::atomic::Ordering) -> bool {
        self.jobs.0.load(order) != seen || self.retired.load(order)
    }

    /// A worker counts itself as asleep before it looks for the last time and a caller publishes before it counts the sleepers,
    /// so one of the two always notices the other.
    fn sleep(&self, seen: usize) {
        let mut gate = lock(&self.gate);
        self.sleepers.fetch_add(1, SeqCst);
        while !self.has_news(seen, SeqCst) {
            gate = self.wake.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }
}

/// Whether `ready` came true within the time.
fn spin_until(time: Duration, ready: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    loop {
        for _ in 0..32 {
            if ready() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() >= time {
            return false;
        }
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    /// The tests change the number of threads of the whole process: one at a time.
    fn with_threads<R>(n: usize, f: impl FnOnce() -> R) -> R {
        static ONE: Mutex<()> = Mutex::new(());
        let _one = lock(&ONE);
        set_num_threads(n);
        f()
    }

    fn assert_each_once(chunks: usize) {
        let hits: Vec<AtomicU32> = (0..chunks).map(|_| AtomicU32::new(0)).collect();
        run(chunks, &|i| {
            hits[i].fetch_add(1, Relaxed);
        });
        assert!(hits.iter().all(|h| h.load(Relaxed) == 1));
    }

    unit_test!(every_chunk_once_for_any_number_of_threads);
    fn every_chunk_once_for_any_number_of_threads() {
        for n in [1, 2, 3, 8, 2] {
            with_threads(n, || (0..300).chain([5000]).for_each(assert_each_once));
        }
    }

    unit_test!(a_sleeping_pool_wakes);
    fn a_sleeping_pool_wakes() {
        with_threads(4, || {
            for _ in 0..20 {
                assert_each_once(16);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    }

    unit_test!(thread_counts_are_clamped);
    fn thread_counts_are_clamped() {
        assert_eq!([0, usize::MAX].map(|n| with_threads(n, num_threads)), [1, 1024]);
    }

    unit_test!(nested_runs_and_several_callers);
    fn nested_runs_and_several_callers() {
        let count = AtomicUsize::new(0);
        let nested = || {
            run(7, &|_| {
                run(5, &|_| {
                    count.fetch_add(1, Relaxed);
                })
            })
        };
        with_threads(3, || {
            std::thread::scope(|s| (0..4).for_each(|_| drop(s.spawn(|| (0..200).for_each(|_| nested())))))
        });
        assert_eq!(count.load(Relaxed), 4 * 200 * 35);
    }

    unit_test!(a_job_is_stopped_between_chunks);
    fn a_job_is_stopped_between_chunks() {
        for threads in [1, 3] {
            with_threads(threads, || {
                let begun = AtomicUsize::new(0);
                let slow = |_| {
                    begun.fetch_add(1, Relaxed);
                    std::thread::sleep(Duration::from_millis(20));
                };
                let stop = |on: bool| Some((if on { || true } else { || false }) as fn() -> bool);
                assert!(matches!(contained(stop(true), || run(1000, &slow)), Err(End::Stopped)));
                assert!(begun.load(Relaxed) < 1000);
                assert!(contained(stop(false), || run(10, &slow)).is_ok());
                assert!(contained(stop(true), || unstoppable(|| run(10, &slow))).is_ok());
                assert_each_once(50);
            });
        }
    }

    unit_test!(a_chunk_that_refuses_ends_the_job);
    fn a_chunk_that_refuses_ends_the_job() {
        with_threads(3, || {
            let job = |i| {
                if i == 20 {
                    refuse(crate::Error::graph("no"))
                }
            };
            let Err(End::Refused(e)) = contained(None, || run(50, &job)) else { panic!("nothing was refused") };
            assert!(e.to_string().contains("no"));
            assert_each_once(50);
        });
    }

    unit_test!(a_panic_reaches_the_caller_and_the_pool_survives);
    fn a_panic_reaches_the_caller_and_the_pool_survives() {
        with_threads(4, || {
            for bad in [0, 20, 49] {
                let job = || run(50, &|i| assert!(i != bad, "chunk {i}"));
                let payload = catch_unwind(job).expect_err("must panic");
                assert_eq!(*payload.downcast::<String>().unwrap(), format!("chunk {bad}"));
                assert_each_once(50);
            }
        });
    }

    /// Forks; the child runs jobs and says by its exit status whether all went well (SIGALRM ends one that hangs).
    #[cfg(unix)]
    fn fork_and_run() {
        // SAFETY: the child runs only the pool and leaves by _exit.
        let status = unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::alarm(20);
                let good = catch_unwind(|| (0..100).for_each(assert_each_once)).is_ok();
                libc::_exit(if good { 0 } else { 1 });
            }
            let mut status = -1;
            libc::waitpid(child, &mut status, 0);
            status
        };
        assert_eq!(status, 0);
    }

    #[cfg(unix)]
    unit_test!(a_forked_child_has_a_pool_of_its_own);
    #[cfg(unix)]
    fn a_forked_child_has_a_pool_of_its_own() {
        with_threads(3, || {
            assert_each_once(100);
            fork_and_run();
            let stop = AtomicBool::new(false);
            std::thread::scope(|s| {
                s.spawn(|| {
                    while !stop.load(Relaxed) {
                        run(64, &|_| std::thread::sleep(Duration::from_micros(20)))
                    }
                });
                (0..10).for_each(|_| fork_and_run());
                stop.store(true, Relaxed);
            });
            assert_each_once(100);
        });
    }

    unit_test!(latency, ignore = "prints a measurement");
    /// Not a test of a bound (those depend on the machine): `cargo test --release --features emulate -- --ignored --nocapture latency`.
    fn latency() {
        let show = |what: &str, job: &dyn Fn()| {
            let mut times: Vec<_> = (0..20000).map(|_| (Instant::now(), job()).0.elapsed()).collect();
            times.sort();
            println!("{what}: median {:?}, 99 % {:?}", times[10000], times[19800]);
        };
        let arrived = AtomicUsize::new(0);
        let meet = |_| {
            let both = arrived.fetch_add(1, SeqCst) / 2 * 2 + 2;
            while arrived.load(SeqCst) < both {
                std::hint::spin_loop();
            }
        };
        with_threads(2, || {
            show("empty region of 2 chunks", &|| run(2, &|_| {}));
            show("2 chunks that wait for each other", &|| run(2, &meet));
        });
    }
}
