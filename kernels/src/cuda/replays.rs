//! The runs of a plan that may be captured as CUDA graphs: which of them are, and which are replayed.

use super::Gpu;
use super::capture::{Variant, is_capturing, run_settled};
use super::capture_policy::{Advice, CapturePolicy};
use crate::array::{ContentSnapshot, NdArray, PlanContent};
use crate::error::Result;
use crate::saved::Saved;
use crate::switch::Switch;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// Captured runs of one plan at most.
const VARIANTS: usize = 4;

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
pub struct Replays {
    gpu: &'static Gpu,
    /// Which of its arrays a run makes before it reads them.
    made: Vec<bool>,
    /// Some function of it computes in double.
    double: bool,
    state: Arc<Mutex<CaptureState>>,
}

#[derive(Default)]
struct CaptureState {
    variants: Vec<Variant>,
    patience: CapturePolicy,
    /// Where the content goes of arrays that had it elsewhere in each run.
    cells: BTreeMap<usize, Option<PlanContent>>,
    replays: u64,
    /// When the last replay was, in replays of all plans.
    last: u64,
}

/// The plans that have captured runs, which give their memory back when there is no more.
static PLANS: Mutex<Vec<Weak<Mutex<CaptureState>>>> = Mutex::new(Vec::new());
static CLOCK: AtomicU64 = AtomicU64::new(0);

/// What a run works on.
pub struct Circumstances<'a> {
    pub gpu: &'static Gpu,
    /// All arrays that it reads or writes.
    pub arrays: &'a [&'a NdArray],
    /// What its functions keep from run to run.
    pub saved: &'a [&'a Saved],
    /// Whether it reads that.
    pub reads_saved: bool,
}

impl Replays {
    /// Of a plan on `gpu` that makes such arrays anew in each run.
    pub fn new(gpu: &'static Gpu, made: Vec<bool>, double: bool) -> Replays {
        Replays { gpu, made, double, state: Arc::default() }
    }

    /// The GPU on which all of the plan runs.
    pub fn gpu(&self) -> &'static Gpu {
        self.gpu
    }

    fn lock(&self) -> MutexGuard<'_, CaptureState> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Does a run: by `compute`, or by a replay and then `finish`, which does what a run does beside computing.
    pub fn run(
        &self,
        c: &Circumstances,
        compute: &mut dyn FnMut() -> Result<()>,
        finish: &mut dyn FnMut(),
    ) -> Result<()> {
        let mut state = self.lock();
        if !graphs() || is_capturing() || state.patience.rests() || self.settle(&mut state, c).is_err() {
            drop(state);
            return compute();
        }
        let before: Vec<ContentSnapshot> = c.arrays.iter().map(|a| a.storage().keep()).collect();
        if let Some(v) = state.variants.iter().position(|v| v.fits(c, &before)) {
            drop(before);
            return replay(state, v, c, compute, finish);
        }
        let mark = |(i, k): (usize, &ContentSnapshot)| if self.made[i] { 0 } else { k.mark() };
        let marks: Vec<usize> = before.iter().enumerate().map(mark).collect();
        let left = |i: &usize| !self.made[*i] && before[*i].has_left(state.patience.last()[*i]);
        let left: Vec<usize> = (0..state.patience.last().len()).filter(left).collect();
        for i in left {
            state.cells.entry(i).or_default();
        }
        match state.patience.meet(marks) {
            Advice::Capture => (),
            advice => {
                let given_up = if advice == Advice::GiveUp { state.give_up() } else { Vec::new() };
                drop(state);
                drop((given_up, before)); // what the run gives up on the way is to be free at once
                return run_settled(advice == Advice::RunSettled, compute);
            }
        }
        match Variant::capture(c, &self.made, before, compute) {
            Ok(v) => {
                state.add(v, &self.state);
                let newest = state.variants.len() - 1;
                replay(state, newest, c, compute, finish)
            }
            Err(e) => {
                state.patience.failed(e.to_string());
                drop(state);
                compute()
            }
        }
    }

    /// Brings arrays that had their content elsewhere in each run to one place.
    fn settle(&self, state: &mut CaptureState, c: &Circumstances) -> Result<()> {
        for (&i, cell) in &mut state.cells {
            if let Some(k) = cell {
                // What the run makes anew may have been the same memory: a reshaped input.
                let made = c.arrays.iter().zip(&self.made).filter(|(_, made)| **made).map(|(a, _)| a.storage());
                made.filter(|s| s.keep().has_memory_of(k)).for_each(|s| drop(s.release()));
            }
            c.arrays[i].storage().settle(cell, c.gpu, self.double)?;
        }
        Ok(())
    }

    /// What became of the plan's runs, in words.
    pub fn report(&self) -> String {
        let state = self.lock();
        match state.patience.why().filter(|_| state.variants.is_empty()) {
            Some(why) => format!("not captured: {why}"),
            None if !graphs() => "not captured: CUDA graphs are off".into(),
            None if state.variants.is_empty() => "not captured: no run with the same arrays came a third time".into(),
            None => format!("{} captured, replayed {} times", state.variants.len(), state.replays),
        }
    }
}

/// Replays a variant that fits, or runs as ever if an array has left for another GPU meanwhile.
fn replay(
    mut state: MutexGuard<'_, CaptureState>,
    variant: usize,
    c: &Circumstances,
    compute: &mut dyn FnMut() -> Result<()>,
    finish: &mut dyn FnMut(),
) -> Result<()> {
    if state.variants[variant].bring(c).is_err() {
        drop(state);
        return compute();
    }
    state.patience.replayed();
    state.replays += 1;
    state.last = CLOCK.fetch_add(1, Relaxed);
    state.variants[variant].replay(c, finish)
}

impl CaptureState {
    /// Adds a captured run; `own` is where this state is.
    fn add(&mut self, v: Variant, own: &Arc<Mutex<CaptureState>>) {
        if self.variants.is_empty() {
            let mut plans = PLANS.lock().unwrap_or_else(|e| e.into_inner());
            plans.retain(|p| p.strong_count() > 0 && !std::ptr::eq(p.as_ptr(), Arc::as_ptr(own)));
            plans.push(Arc::downgrade(own));
        }
        if self.variants.len() == VARIANTS {
            self.variants.remove(0);
        }
        self.variants.push(v);
        self.patience.captured();
        self.last = CLOCK.fetch_add(1, Relaxed);
    }

    /// What was captured, to be dropped without the lock.
    fn give_up(&mut self) -> Vec<Variant> {
        self.cells.clear();
        std::mem::take(&mut self.variants)
    }
}

/// Gives back the memory that a plan's captured runs keep on a device: of the plan that was replayed longest ago, and is
/// not at work now. False if there is none.
pub(super) fn give_back(gpu: &Gpu) -> bool {
    let plans: Vec<Arc<Mutex<CaptureState>>> =
        PLANS.lock().unwrap_or_else(|e| e.into_inner()).iter().filter_map(Weak::upgrade).collect();
    let last = |p: &Arc<Mutex<CaptureState>>| {
        let state = p.try_lock().ok()?;
        state.variants.iter().any(|v| v.is_of(gpu)).then_some(state.last)
    };
    let oldest = plans.iter().filter_map(|p| Some((last(p)?, p))).min_by_key(|found| found.0);
    let Some(mut state) = oldest.and_then(|(_, p)| p.try_lock().ok()) else { return false };
    let given = state.give_up();
    state.patience.leave_alone("its memory was needed by others".into());
    drop(state);
    !given.is_empty()
}
