//! A plan's run as a CUDA graph: captured once its arrays have settled, and then replayed with one call.
//!
//! A replay is right only if every array is what it was when the run was captured: the same block, or the same constant.
//! So a captured run knows the arrays as they were before it and as they are after it, keeps their memory, and holds what
//! it frees on the way in an arena of its own. What differs from run to run without being an array, random numbers, lies in
//! device memory (`draws.rs`).

use super::draws::{self, Draws};
use super::driver::Captured;
use super::memory::Arena;
use super::replays::Circumstances;
use super::{Gpu, vendor};
use crate::array::{ContentSnapshot, NdArray, PlanContent};
pub use crate::device::capture::is_capturing;
use crate::device::{DeviceMemory, StreamGuard, capture};
use crate::error::{Error, Result};
use crate::random::Draw;
use crate::saved::{Saved, Saving};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, TryLockError};

/// A captured run.
pub(super) struct Variant {
    gpu: &'static Gpu,
    settings: u8,
    graph: Captured,
    /// The arrays before it; none where that is of no account: the run makes them anew in other memory.
    before: Vec<Option<PlanContent>>,
    /// The arrays that are written, as they are afterwards, and how often their memory had been shared.
    after: Vec<Option<(PlanContent, usize)>>,
    saved: Vec<(Option<Saving>, Option<Saving>)>,
    arena: Arena,
    draws: Draws,
    _tables: Vec<Arc<DeviceMemory>>,
}

/// What a function keeps, but for draws: another one in each run, of which a captured run knows nothing.
fn saving(s: &Saved) -> Option<Saving> {
    s.kept().filter(|(_, v)| !v.is::<Draw>())
}

/// What came of capturing a run.
struct Recorded {
    graph: Captured,
    arena: Arena,
    draws: Draws,
    tables: Vec<Arc<DeviceMemory>>,
    touched: BTreeSet<usize>,
}

impl Variant {
    pub(super) fn capture(
        c: &Circumstances,
        made: &[bool],
        before: Vec<ContentSnapshot>,
        compute: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Variant> {
        let counts: Vec<u64> = c.arrays.iter().map(|a| a.modification_count()).collect();
        let saved: Vec<Option<Saving>> = c.saved.iter().map(|s| saving(s)).collect();
        // What the host wrote goes to the device before, not in the middle.
        c.arrays.iter().zip(&before).try_for_each(|(a, k)| k.bring(c.gpu, a))?;
        let (done, recorded) = c.gpu.record(c.saved, compute);
        let written = |(a, count): (&&NdArray, &u64)| (a.modification_count() != *count).then(|| a.storage().keep());
        let after: Vec<Option<ContentSnapshot>> = c.arrays.iter().zip(&counts).map(written).collect();
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
        let of_account =
            |(i, k): (usize, ContentSnapshot)| (!made[i] || k.is_among(&touched)).then(|| PlanContent::new(k));
        let before = before.into_iter().enumerate().map(of_account).collect();
        let with_shares = |k: ContentSnapshot| {
            let shares = k.shares();
            (PlanContent::new(k), shares)
        };
        let after = after.into_iter().map(|k| k.map(with_shares)).collect();
        Ok(Variant { gpu, settings, graph, before, after, saved, arena, draws, _tables: tables })
    }

    pub(super) fn is_of(&self, gpu: &Gpu) -> bool {
        self.gpu == gpu
    }

    /// True if all arrays are what they were when the run was captured.
    pub(super) fn fits(&self, c: &Circumstances, now: &[ContentSnapshot]) -> bool {
        self.gpu == c.gpu
            && self.settings == vendor::settings()
            && self.before.len() == now.len()
            && self.before.iter().zip(&self.after).zip(now).all(|((before, after), now)| is_as(before, after, now))
            && (!c.reads_saved || self.saved.iter().zip(c.saved).all(|(then, s)| keeps(then, &saving(s))))
    }

    /// Brings what the host has written to where the run reads it.
    pub(super) fn bring(&self, c: &Circumstances) -> Result<()> {
        let before = c.arrays.iter().zip(&self.before);
        before.filter_map(|(a, k)| Some((a, k.as_ref()?))).try_for_each(|(a, k)| k.bring(c.gpu, a))
    }

    /// Does the run again, with arrays that were brought.
    pub(super) fn replay(&self, c: &Circumstances, finish: &mut dyn FnMut()) -> Result<()> {
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
                a.storage().note_whole();
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
fn is_as(before: &Option<PlanContent>, after: &Option<(PlanContent, usize)>, now: &ContentSnapshot) -> bool {
    let same = |k: &PlanContent| k.is(now) && (after.is_none() || !now.is_shared() || k.is_shared());
    before.as_ref().is_none_or(same) && after.as_ref().is_none_or(|(k, shares)| k.shares() == *shares)
}

/// True if what a function keeps is `now` what it was before a captured run, or after it.
fn keeps((before, after): &(Option<Saving>, Option<Saving>), now: &Option<Saving>) -> bool {
    let same = |then: &Option<Saving>| match (then, now) {
        (Some((_, a)), Some((_, b))) => Arc::ptr_eq(a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    same(before) || same(after)
}

impl Drop for Variant {
    fn drop(&mut self) {
        if self.gpu.check_fork().is_ok() {
            self.gpu.driver.forget(self.graph);
            self.gpu.dissolve(&self.arena);
        }
    }
}

thread_local! {
    /// This thread does the last run before one is captured.
    static SETTLED: Cell<bool> = const { Cell::new(false) };
    /// Tables that the kernels of the run read.
    static TABLES: RefCell<Vec<Arc<DeviceMemory>>> = const { RefCell::new(Vec::new()) };
}

/// An ordinary run; `settled`: the next one will be captured.
pub(super) fn run_settled(settled: bool, compute: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    SETTLED.set(settled);
    let done = catch_unwind(AssertUnwindSafe(compute));
    SETTLED.set(false);
    done.unwrap_or_else(|panic| resume_unwind(panic))
}

/// True if this thread's next run will be captured, so that all it needs must be there.
pub(super) fn settled() -> bool {
    SETTLED.get()
}

/// For the engine.
#[doc(hidden)]
impl Gpu {
    /// Leave to use the stream: not while another thread captures what goes through it.
    pub(super) fn turn(&self) -> Result<Option<StreamGuard<'_>>> {
        self.check_fork()?;
        Ok((!is_capturing()).then(|| self.capturing.read().unwrap_or_else(|e| e.into_inner())))
    }

    /// As [`turn`](Gpu::turn), for what waits for the device or brings data from the host: never in a captured run.
    pub(super) fn turn_with_host(&self) -> Result<StreamGuard<'_>> {
        self.may_move_data()?;
        Ok(self.capturing.read().unwrap_or_else(|e| e.into_inner()))
    }

    /// As [`turn_with_host`](Gpu::turn_with_host), for a caller that holds what the capturing thread may want: `None` while there is one.
    pub(super) fn try_turn(&self) -> Result<Option<StreamGuard<'_>>> {
        self.may_move_data()?;
        match self.capturing.try_read() {
            Ok(turn) => Ok(Some(turn)),
            Err(TryLockError::Poisoned(e)) => Ok(Some(e.into_inner())),
            Err(TryLockError::WouldBlock) => Ok(None),
        }
    }

    fn may_move_data(&self) -> Result<()> {
        self.check_fork()?;
        match is_capturing() {
            true => Err(Error::graph("data moves between host and GPU in the middle of the run")),
            false => Ok(()),
        }
    }

    /// Keeps a table for as long as the run that is being captured.
    pub(super) fn keep_table(&self, table: &Arc<DeviceMemory>) {
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
        capture::begin();
        let done = catch_unwind(AssertUnwindSafe(compute));
        let touched = capture::end();
        let arena = self.close_arena();
        let (tables, draws) = (TABLES.take(), draws::recorded());
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
