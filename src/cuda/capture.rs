//! Runs of a plan as CUDA graphs: captured once their arrays have settled, and then replayed with one call.
//!
//! A replay is right only if every array is what it was when the run was captured: the same block, or the same constant.
//! So a captured run knows the arrays as they were before it and as they are after it, keeps their memory, and holds what
//! it frees on the way in an arena of its own. Several are kept, since a first backward pass writes gradients and a second
//! adds to them. What differs from run to run without being an array, random numbers, lies in device memory (`draws.rs`).

use super::draws::{self, Draws};
use super::driver::Captured;
use super::memory::Arena;
use super::{Gpu, Memory, vendor};
use crate::array::{Kept, NdArray};
use crate::error::{Error, Result};
use crate::function::Saved;
use crate::random::Draw;
use crate::switch::Switch;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, RwLockReadGuard, TryLockError};

/// Runs with the arrays as they are before one is captured.
const WARM: u32 = 2;
/// Captured runs of one plan at most, and how many in a row may be of no use.
const VARIANTS: usize = 4;
const MISSES: u32 = 16;
/// Captures that fail: the cause may pass (a view of an array that was alive, a limit on memory).
const FAILURES: u32 = 4;

static GRAPHS: Switch = Switch::new("NNRS_CUDA_GRAPHS", true);

/// True if runs are captured. Off by `NNRS_CUDA_GRAPHS=0` or [`set_graphs`].
pub fn graphs() -> bool {
    GRAPHS.get()
}

/// Turns CUDA graphs on or off; gives the old setting. Results are the same.
pub fn set_graphs(on: bool) -> bool {
    GRAPHS.set(on)
}

/// The captured runs of one plan.
pub(crate) struct Replays {
    /// Which of its arrays a run makes before it reads them.
    made: Vec<bool>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    variants: Vec<Variant>,
    /// What the arrays were before the last run that was no replay, and how often in a row.
    before: Vec<usize>,
    seen: u32,
    misses: u32,
    replays: u64,
    failures: u32,
    /// Why the last capture failed.
    failed: Option<String>,
    /// Why nothing is captured any more.
    given_up: Option<String>,
}

/// A captured run.
struct Variant {
    gpu: &'static Gpu,
    settings: u8,
    graph: Captured,
    /// The arrays before it; none where that is of no account: the run makes them anew in other memory.
    before: Vec<Option<Kept>>,
    /// The arrays that are written, as they are afterwards, and how often their memory had been shared.
    after: Vec<Option<(Kept, usize)>>,
    saved: Vec<(Saving, Saving)>,
    arena: Arena,
    draws: Draws,
    _tables: Vec<Arc<Memory>>,
}

type Saving = Option<Arc<dyn Any + Send + Sync>>;

/// What a function keeps, but for draws: another one in each run, of which a captured run knows nothing.
fn saving(s: &Saved) -> Saving {
    s.get().filter(|v| !v.is::<Draw>())
}

/// What came of capturing a run.
struct Recorded {
    graph: Captured,
    arena: Arena,
    draws: Draws,
    tables: Vec<Arc<Memory>>,
    touched: BTreeSet<usize>,
}

/// What a run works on.
pub(crate) struct Circumstances<'a> {
    pub(crate) gpu: &'static Gpu,
    /// All arrays that it reads or writes.
    pub(crate) arrays: &'a [&'a NdArray],
    /// What its functions keep from run to run.
    pub(crate) saved: &'a [&'a Saved],
    /// Whether it reads that.
    pub(crate) reads_saved: bool,
}

impl Replays {
    /// Of a plan that makes such arrays anew in each run.
    pub(crate) fn new(made: Vec<bool>) -> Replays {
        Replays { made, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Does a run: by `compute`, or by a replay and then `finish`, which does what a run does beside computing.
    pub(crate) fn run(
        &self,
        c: &Circumstances,
        compute: &mut dyn FnMut() -> Result<()>,
        finish: &mut dyn FnMut(),
    ) -> Result<()> {
        let mut state = self.lock();
        if !graphs() || state.given_up.is_some() || is_capturing() {
            drop(state);
            return compute();
        }
        let before: Vec<Kept> = c.arrays.iter().map(|a| a.storage().keep()).collect();
        if let Some(v) = state.variants.iter().position(|v| v.fits(c, &before)) {
            (state.misses, state.seen) = (0, 0);
            state.replays += 1;
            return state.variants[v].replay(c, finish);
        }
        let mark = |(i, k): (usize, &Kept)| if self.made[i] { 0 } else { k.mark() };
        let marks: Vec<usize> = before.iter().enumerate().map(mark).collect();
        state.seen = if marks == state.before { state.seen + 1 } else { 0 };
        state.before = marks;
        state.misses += 1;
        if state.misses > MISSES {
            state.given_up = Some("its arrays are others in each run".into());
            state.variants.clear();
        }
        if state.seen < WARM {
            let last = state.seen + 1 == WARM;
            drop(state);
            SETTLED.set(last);
            let done = catch_unwind(AssertUnwindSafe(compute));
            SETTLED.set(false);
            return done.unwrap_or_else(|panic| resume_unwind(panic));
        }
        match Variant::capture(c, &self.made, before, compute) {
            Ok(v) => {
                if state.variants.len() == VARIANTS {
                    state.variants.remove(0);
                }
                state.variants.push(v);
                (state.failures, state.failed) = (0, None);
                state.seen = 0;
                state.variants.last().map_or(Ok(()), |v| v.replay(c, finish))
            }
            Err(e) => {
                (state.failures, state.seen) = (state.failures + 1, 0);
                state.failed = Some(e.to_string());
                if state.failures == FAILURES {
                    state.given_up = state.failed.take();
                }
                drop(state);
                compute()
            }
        }
    }

    /// What became of the plan's runs, for people.
    pub(crate) fn report(&self) -> String {
        let state = self.lock();
        match state.given_up.as_ref().or(state.failed.as_ref().filter(|_| state.variants.is_empty())) {
            Some(why) => format!("not captured: {why}"),
            None if !graphs() => "not captured: CUDA graphs are off".into(),
            None => format!("{} captured, replayed {} times", state.variants.len(), state.replays),
        }
    }
}

impl Variant {
    fn capture(
        c: &Circumstances,
        made: &[bool],
        before: Vec<Kept>,
        compute: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Variant> {
        let counts: Vec<u64> = c.arrays.iter().map(|a| a.modification_count()).collect();
        let saved: Vec<Saving> = c.saved.iter().map(|s| saving(s)).collect();
        // What the host wrote goes to the device before, not in the middle.
        c.arrays.iter().zip(&before).try_for_each(|(a, k)| k.bring(c.gpu, a))?;
        let (done, recorded) = c.gpu.record(c.saved, compute);
        let written = |(a, count): (&&NdArray, &u64)| (a.modification_count() != *count).then(|| a.storage().keep());
        let after: Vec<Option<Kept>> = c.arrays.iter().zip(&counts).map(written).collect();
        // Nothing was computed yet: the run that follows begins with the arrays as they were.
        for ((a, k), after) in c.arrays.iter().zip(&before).zip(&after) {
            if after.is_some() || !a.storage().keep().is(k) {
                a.storage().restore(k);
            }
        }
        let Recorded { graph, arena, draws, tables, touched } = match (done, recorded) {
            (Ok(()), Ok(recorded)) => recorded,
            (Err(e), recorded) => {
                if let Ok(r) = recorded {
                    c.gpu.driver.forget(r.graph);
                    c.gpu.dissolve(&r.arena);
                }
                return Err(e);
            }
            (_, Err(e)) => return Err(e),
        };
        let saved = saved.into_iter().zip(c.saved.iter().map(|s| saving(s))).collect();
        let (gpu, settings) = (c.gpu, vendor::settings());
        let of_account = |(i, k): (usize, Kept)| (!made[i] || k.is_among(&touched)).then_some(k);
        let before = before.into_iter().enumerate().map(of_account).collect();
        let after = after.into_iter().map(|k| k.map(|k| (k.shares(), k)).map(|(n, k)| (k, n))).collect();
        Ok(Variant { gpu, settings, graph, before, after, saved, arena, draws, _tables: tables })
    }

    /// True if all arrays are what they were when the run was captured.
    fn fits(&self, c: &Circumstances, now: &[Kept]) -> bool {
        self.gpu == c.gpu
            && self.settings == vendor::settings()
            && self.before.len() == now.len()
            && self.before.iter().zip(&self.after).zip(now).all(|((before, after), now)| is_as(before, after, now))
            && (!c.reads_saved || self.saved.iter().zip(c.saved).all(|(then, s)| keeps(then, &saving(s))))
    }

    fn replay(&self, c: &Circumstances, finish: &mut dyn FnMut()) -> Result<()> {
        let before = c.arrays.iter().zip(&self.before);
        before.filter_map(|(a, k)| Some((a, k.as_ref()?))).try_for_each(|(a, k)| k.bring(c.gpu, a))?;
        self.draws.make(c.saved)?;
        {
            let _turn = self.gpu.turn()?;
            // SAFETY: the memory that the graph works on is kept by this value, and the arrays were found to have it.
            unsafe { self.gpu.driver.replay(self.graph)? };
        }
        finish();
        for (a, k) in c.arrays.iter().zip(&self.after) {
            if let Some((k, _)) = k {
                a.storage().restore(k);
                k.written_on(c.gpu)?;
            }
        }
        for (s, (_, after)) in c.saved.iter().zip(&self.saved) {
            if after.is_some() || saving(s).is_some() {
                s.restore(after.clone());
            }
        }
        Ok(())
    }
}

/// True if an array is `now` as it was `before` a captured run, whose writing it no other storage will notice.
fn is_as(before: &Option<Kept>, after: &Option<(Kept, usize)>, now: &Kept) -> bool {
    let same = |k: &Kept| k.is(now) && (after.is_none() || !now.is_shared() || k.is_shared());
    before.as_ref().is_none_or(same) && after.as_ref().is_none_or(|(k, shares)| k.shares() == *shares)
}

/// True if what a function keeps is `now` what it was before a captured run, or after it.
fn keeps((before, after): &(Saving, Saving), now: &Saving) -> bool {
    let same = |then: &Saving| match (then, now) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    same(before) || same(after)
}

impl Drop for Variant {
    fn drop(&mut self) {
        if self.gpu.check_fork().is_ok() {
            let _turn = self.gpu.turn();
            self.gpu.driver.forget(self.graph);
            self.gpu.dissolve(&self.arena);
        }
    }
}

thread_local! {
    /// This thread is capturing.
    static CAPTURING: Cell<bool> = const { Cell::new(false) };
    /// This thread does the last run before one is captured.
    static SETTLED: Cell<bool> = const { Cell::new(false) };
    /// Tables that the kernels of the run read.
    static TABLES: RefCell<Vec<Arc<Memory>>> = const { RefCell::new(Vec::new()) };
    /// Addresses of the blocks that the run has worked on.
    static TOUCHED: RefCell<BTreeSet<usize>> = const { RefCell::new(BTreeSet::new()) };
}

/// True while this thread captures a run: then nothing is compiled, loaded or waited for.
pub(crate) fn is_capturing() -> bool {
    CAPTURING.get()
}

/// Notes that a block is worked on, if a run is being captured.
pub(crate) fn touch(block: usize) {
    if is_capturing() {
        TOUCHED.with_borrow_mut(|t| t.insert(block));
    }
}

/// True if this thread's next run will be captured, so that all it needs must be there.
pub(super) fn settled() -> bool {
    SETTLED.get()
}

/// Leave to use a stream.
pub(crate) type Turn<'a> = RwLockReadGuard<'a, ()>;

impl Gpu {
    /// Leave to use the stream: not while another thread captures what goes through it.
    pub(super) fn turn(&self) -> Result<Option<Turn<'_>>> {
        self.check_fork()?;
        Ok((!is_capturing()).then(|| self.capturing.read().unwrap_or_else(|e| e.into_inner())))
    }

    /// As [`turn`](Gpu::turn), for what waits for the device or brings data from the host: never in a captured run.
    pub(super) fn turn_with_host(&self) -> Result<Turn<'_>> {
        self.may_move_data()?;
        Ok(self.capturing.read().unwrap_or_else(|e| e.into_inner()))
    }

    /// As [`turn_with_host`](Gpu::turn_with_host), for who holds what the capturing thread may want: `None` while there is one.
    pub(crate) fn try_turn(&self) -> Result<Option<Turn<'_>>> {
        self.may_move_data()?;
        match self.capturing.try_read() {
            Ok(turn) => Ok(Some(turn)),
            Err(TryLockError::Poisoned(e)) => Ok(Some(e.into_inner())),
            Err(TryLockError::WouldBlock) => Ok(None),
        }
    }

    /// Waits until no other thread captures.
    pub(crate) fn await_capture(&self) {
        drop(self.capturing.read());
    }

    fn may_move_data(&self) -> Result<()> {
        self.check_fork()?;
        match is_capturing() {
            true => Err(Error::graph("data moves between host and GPU in the middle of the run")),
            false => Ok(()),
        }
    }

    /// Keeps a table for as long as the run that is being captured.
    pub(super) fn keep_table(&self, table: &Arc<Memory>) {
        if is_capturing() {
            TABLES.with_borrow_mut(|t| t.push(table.clone()));
        }
    }

    /// Captures what `compute` does; nothing of it is executed. `saved` is what the plan's nodes keep.
    fn record(
        &'static self,
        saved: &[&Saved],
        compute: &mut dyn FnMut() -> Result<()>,
    ) -> (Result<()>, Result<Recorded>) {
        let _alone = self.capturing.write().unwrap_or_else(|e| e.into_inner());
        // No work is on its way: tables that are sent meanwhile may lie where it has worked.
        if let Err(e) = self.wait().and_then(|()| self.driver.begin_capture()) {
            return (Err(e), Err(Error::graph("nothing was captured")));
        }
        self.pool().arena = Some(Arena::default());
        draws::record(self, saved);
        CAPTURING.set(true);
        let done = catch_unwind(AssertUnwindSafe(compute));
        CAPTURING.set(false);
        let arena = self.close_arena();
        let (tables, touched, draws) = (TABLES.take(), TOUCHED.take(), draws::recorded());
        let graph = self.driver.end_capture();
        if graph.is_err() || done.is_err() {
            self.dissolve(&arena);
        }
        let done = done.unwrap_or_else(|panic| {
            graph.iter().for_each(|g| self.driver.forget(*g));
            resume_unwind(panic)
        });
        (done, graph.map(|graph| Recorded { graph, arena, draws, tables, touched }))
    }
}
