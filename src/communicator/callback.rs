//! Gradients that are added up over ranks while backward still computes others.

use super::arrays::{KeptMemory, distinct};
use super::membership::{Asked, GroupMember, Membership};
use super::open_runs::OpenCallback;
use super::packs::{PackPlan, PlannedPacks};
use super::reductions::{Summing, all_reduce_arrays};
use super::transport::Transport;
use super::{CallbackOptions, Communicator};
use crate::graph::{CommunicatorBackwardCallback, FunctionRef};
use nnrs_kernels::array::NdArray;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::ordered_sum::SumBy;
use std::borrow::Borrow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const NAME: &str = "all_reduce_callback";

impl Communicator {
    /// A callback for backward runs that adds up gradients while others are computed.
    ///
    /// A gradient goes when the last function that adds to it, or to a view of it, is over, on a thread of the communicator;
    /// parameters that several functions share are no exception. One that no function of the graph has goes at the end of
    /// the run. What a hook adds to a gradient of the graph has to be there before its last function is over. When the run
    /// returns, all have been summed. The gradient of a variable that
    /// is no leaf goes when the function that made it has read it: what flows on is this rank's own. The callback may be used
    /// for any number of runs. All ranks have to send the same gradients in the same order: graphs that differ in it, and a
    /// run that fails on one rank, are an error on all of them, after which they may go on, with that step left out.
    ///
    /// # Errors
    /// A `pack_size` of 0; an unknown group.
    ///
    /// ```
    /// use nnrs::communicator::{CallbackOptions, Threads};
    /// use nnrs::{functions as f, graph::BackwardRun, Variable};
    /// let gradients = Threads::run(2, |comm| {
    ///     let x = Variable::from_slice(&[comm.rank() as f32 + 1.0], [1].into())?.with_need_grad(true);
    ///     let y = f::sum(&(&x * &x)?, f::Sum::default())?;
    ///     let reduced = comm.all_reduce_callback(&[x.grad()], CallbackOptions::default())?;
    ///     y.forward()?;
    ///     y.backward_with(BackwardRun { callbacks: &[&reduced], ..Default::default() })?;
    ///     x.grad().to_vec::<f32>()
    /// })?;
    /// assert_eq!(gradients, [[6.0], [6.0]]); // 2 * 1 + 2 * 2
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn all_reduce_callback<A: Borrow<NdArray>>(
        &self,
        gradients: &[A],
        options: CallbackOptions,
    ) -> Result<GradientReduction> {
        if options.pack_size == 0 {
            let e = Error::arg("pack_size", "1 or more").actual(0);
            return Err(e.function(format!("Communicator::{NAME}")));
        }
        let mut group = self.members.member(NAME, options.group)?;
        let size = group.ranks.len();
        if size == 1 && options.scale_grad == 1.0 {
            if self.size() == 1 {
                return Ok(GradientReduction::default());
            }
            group.transport = None; // it sends nothing
        }
        let divide_by = if options.division { size } else { 1 };
        let how = Summing { divide_by, by: SumBy::Caller };
        let (members, scale) = (self.members.clone(), options.scale_grad);
        let sender = PackSender { members, group, how, scale };
        distinct(NAME, gradients)?; // an error at once
        let gradients = gradients.iter().map(|a| a.borrow().handle()).collect();
        let work = ReductionWork { sender, gradients, pack_size: options.pack_size };
        Ok(GradientReduction { work: Some(work), state: Mutex::default() })
    }
}

/// What [`Communicator::all_reduce_callback`] gives.
#[derive(Default)]
pub struct GradientReduction {
    /// `None` where there is nothing to do.
    work: Option<ReductionWork>,
    state: Mutex<ReductionState>,
}

struct ReductionWork {
    sender: PackSender,
    gradients: Vec<NdArray>,
    pack_size: usize,
}

/// The backward runs that go on, each within the one before.
type ReductionState = Vec<OpenReduction>;

struct OpenReduction {
    /// Its number; 0 is one of which a callback only hands on what it is told of functions.
    run: u64,
    /// How many times the run has this callback, and has not come to its end.
    calls: usize,
    callback: Arc<OpenCallback>,
    /// From the end of the first function to that of the last.
    plan: Option<PackPlan>,
}

/// Sends packs of gradients in a communicator's line. A rank that is not in the group, or alone in it, sends nothing, and is in
/// the run all the same: so it is told of one that has failed elsewhere, and has the packs of other groups in the same order.
struct PackSender {
    members: Arc<Membership>,
    group: GroupMember,
    how: Summing,
    scale: f64,
}

impl CommunicatorBackwardCallback for GradientReduction {
    fn on_begin_backward(&self, run: u64) -> Result<()> {
        let Some(work) = &self.work else { return Ok(()) };
        let mut state = self.lock();
        if state.last().is_none_or(|last| last.run != run) {
            state.push(work.sender.join(run));
        }
        state.last_mut().into_iter().for_each(|last| last.calls += 1);
        Ok(())
    }

    fn on_finish_function_backward(&self, f: &FunctionRef) -> Result<()> {
        let Some(work) = &self.work else { return Ok(()) };
        let mut state = self.lock();
        let is_another =
            |open: &mut OpenReduction| open.run == 0 && open.plan.as_ref().is_none_or(|plan| !plan.goes_on(f));
        if let Some(open) = state.pop_if(is_another) {
            work.sender.fail(&open, "another run has begun");
        }
        let open = last(&mut state, work);
        work.start(open, |arrays, plans| PackPlan::new(Some(f), arrays, work.pack_size, plans))?.finished(f);
        work.sender.send(open, PackPlan::ready)
    }

    fn on_finish_backward(&self) -> Result<()> {
        let Some(work) = &self.work else { return Ok(()) };
        let mut state = self.lock();
        let open = last(&mut state, work);
        open.calls = open.calls.saturating_sub(1);
        if open.calls > 0 {
            return Ok(());
        }
        work.start(open, |arrays, plans| PackPlan::new(None, arrays, work.pack_size, plans))?;
        work.sender.send(open, PackPlan::rest)?;
        open.callback.run.tasks.wait()?;
        if open.run > 0 { Ok(()) } else { self.close(work, state, 0) }
    }

    fn on_close_backward(&self, run: u64) -> Result<()> {
        let Some(work) = &self.work else { return Ok(()) };
        self.close(work, self.lock(), run)
    }

    fn on_failed_backward(&self, run: u64, why: &str) {
        let Some(work) = &self.work else { return };
        if let Some(open) = self.lock().pop_if(|open| open.run == run) {
            work.sender.fail(&open, why);
        }
    }
}

/// The run that goes on.
fn last<'a>(state: &'a mut ReductionState, work: &ReductionWork) -> &'a mut OpenReduction {
    let i = state.len().saturating_sub(1);
    if state.is_empty() {
        state.push(work.sender.join(0));
    }
    &mut state[i]
}

impl GradientReduction {
    /// The run has come to its end on this rank.
    fn close(&self, work: &ReductionWork, mut state: MutexGuard<'_, ReductionState>, run: u64) -> Result<()> {
        state.pop_if(|open| open.run == run).map_or(Ok(()), |open| work.sender.close(&open))
    }

    fn lock(&self) -> MutexGuard<'_, ReductionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReductionWork {
    /// The run's plan; when it is made, with a word on all packs: the others must have the same.
    fn start<'a>(
        &self,
        open: &'a mut OpenReduction,
        make: impl FnOnce(Vec<NdArray>, &mut Vec<Arc<PlannedPacks>>) -> Result<PackPlan>,
    ) -> Result<&'a mut PackPlan> {
        let plan = match open.plan.take() {
            Some(plan) => plan,
            None => {
                let arrays = distinct(NAME, &self.gradients)?; // which share memory is known from run to run
                let plan = make(arrays, &mut open.callback.run.plans.lock().unwrap_or_else(PoisonError::into_inner))?;
                let Summing { divide_by, .. } = self.sender.how;
                let (number, packs, scale) = (open.callback.number, plan.described(), self.sender.scale);
                let said = format!("gradients in packs {packs}; callback {number}, by {divide_by}, scale {scale}");
                self.sender.submit(&open.callback, said, |_, _| Ok(()))?;
                plan
            }
        };
        Ok(open.plan.insert(plan))
    }
}

impl PackSender {
    fn join(&self, run: u64) -> OpenReduction {
        OpenReduction { run, calls: 0, callback: self.members.join_run(run, &self.group), plan: None }
    }

    /// Sends some packs of a run that has begun, each with a word: another rank may have given the run up.
    fn send(
        &self,
        open: &mut OpenReduction,
        which: impl FnOnce(&mut PackPlan) -> Vec<(usize, Vec<NdArray>)>,
    ) -> Result<()> {
        let Some(plan) = &mut open.plan else { return Ok(()) };
        for (i, pack) in which(plan) {
            let said = format!("pack {} of {}; callback {}", i + 1, plan.count(), open.callback.number);
            let (how, scale) = (self.how, self.scale);
            self.submit(&open.callback, said, move |t, memory| all_reduce_arrays(t, &pack, false, scale, memory, how))?;
        }
        Ok(())
    }

    /// All callbacks have come to the end of the run: it has failed nowhere, if the others say so, too.
    fn close(&self, open: &OpenReduction) -> Result<()> {
        self.end(&open.callback).inspect_err(|e| self.fail(open, &e.to_string()))?;
        self.members.leave_run(&open.callback);
        Ok(())
    }

    fn end(&self, callback: &OpenCallback) -> Result<()> {
        let Some(group) = callback.group else { return Ok(()) };
        callback.run.check()?;
        if !callback.run.is_settled(group) {
            self.submit(callback, "the end of a backward run".into(), |_, _| Ok(()))?;
            callback.run.tasks.wait()?;
            callback.run.settle(group, None);
        }
        Ok(())
    }

    /// Ends a run that has failed here.
    fn fail(&self, open: &OpenReduction, why: &str) {
        self.members.give_up(&open.callback.run, NAME, why);
        self.members.leave_run(&open.callback);
    }

    fn submit(
        &self,
        callback: &OpenCallback,
        said: String,
        moves: impl FnOnce(&dyn Transport, &mut KeptMemory) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        if callback.group.is_none() {
            return Ok(());
        }
        let place = self.members.place(NAME, &self.group)?;
        let (members, group, run) = (self.members.clone(), self.group.clone(), callback.run.clone());
        let work = move || {
            let asked = Asked { name: NAME, group: &group, said: &said, run: Some(&run) };
            members.run(place, &asked, moves)
        };
        callback.run.tasks.submit(&self.members.worker, work);
        Ok(())
    }
}
