//! Gradients that are added up over ranks while backward still computes others.

use super::arrays::{KeptMemory, distinct};
use super::membership::{Asked, GroupMember, Membership};
use super::open_runs::OpenCallback;
use super::packs::PackPlan;
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
    /// A gradient goes when the last function that adds to it is over, on a thread of the communicator; parameters that
    /// several functions share are no exception. When the run returns, all have been summed. The gradient of a variable that
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
        let group = self.members.member(NAME, options.group)?;
        let Some(size) = group.transport.as_ref().map(|t| t.size()) else { return Ok(GradientReduction::default()) };
        if size == 1 && options.scale_grad == 1.0 {
            return Ok(GradientReduction::default());
        }
        let divide_by = if options.division { size } else { 1 };
        let how = Summing { divide_by, by: SumBy::Caller };
        let (members, scale) = (self.members.clone(), options.scale_grad);
        let sender = PackSender { members, group, how, scale };
        let work = ReductionWork { sender, gradients: distinct(gradients), pack_size: options.pack_size };
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

#[derive(Default)]
struct ReductionState {
    /// How many times the run that goes on has this callback.
    calls: usize,
    open: Option<OpenReduction>,
}

/// The backward run that goes on.
struct OpenReduction {
    callback: Arc<OpenCallback>,
    /// From the end of the first function to that of the last.
    plan: Option<PackPlan>,
}

/// Sends packs of gradients in a communicator's line.
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
        state.calls += 1;
        if state.calls == 1 {
            state.open = Some(work.sender.join(run));
        }
        Ok(())
    }

    fn on_finish_function_backward(&self, f: &FunctionRef) -> Result<()> {
        let Some(work) = &self.work else { return Ok(()) };
        let mut state = self.lock();
        let is_told_of_ends = state.calls > 0; // a callback that only hands on what it is told of functions tells of none
        let is_another = |open: &mut OpenReduction| open.plan.as_ref().is_none_or(|plan| !plan.goes_on(f));
        if !is_told_of_ends && let Some(open) = state.open.take_if(is_another) {
            work.sender.fail(&open, "another run has begun");
        }
        let open = state.open.get_or_insert_with(|| work.sender.join(0));
        work.start(open, || PackPlan::new(f, &work.gradients, work.pack_size))?.finished(f);
        work.sender.send(open, PackPlan::ready)
    }

    fn on_finish_backward(&self) -> Result<()> {
        let Some(work) = &self.work else { return Ok(()) };
        let mut state = self.lock();
        let is_told_of_ends = state.calls > 0;
        state.calls = state.calls.saturating_sub(1);
        if state.calls > 0 {
            return Ok(());
        }
        let open = state.open.get_or_insert_with(|| work.sender.join(0));
        work.start(open, || Ok(PackPlan::of_nothing(&work.gradients)))?;
        work.sender.send(open, PackPlan::rest)?;
        open.plan = None;
        open.callback.run.tasks.wait()?;
        if is_told_of_ends { Ok(()) } else { state.close(work) }
    }

    fn on_close_backward(&self, _run: u64) -> Result<()> {
        let Some(work) = &self.work else { return Ok(()) };
        self.lock().close(work)
    }

    fn on_failed_backward(&self, _run: u64, why: &str) {
        let Some(work) = &self.work else { return };
        let mut state = self.lock();
        state.calls = 0;
        if let Some(open) = state.open.take() {
            work.sender.fail(&open, why);
        }
    }
}

impl ReductionState {
    /// The run has come to its end on this rank.
    fn close(&mut self, work: &ReductionWork) -> Result<()> {
        self.open.take().map_or(Ok(()), |open| work.sender.close(&open))
    }
}

impl GradientReduction {
    fn lock(&self) -> MutexGuard<'_, ReductionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReductionWork {
    /// The run's plan; when it is made, with a word on all packs: the others must have the same.
    fn start<'a>(
        &self,
        open: &'a mut OpenReduction,
        make: impl FnOnce() -> Result<PackPlan>,
    ) -> Result<&'a mut PackPlan> {
        let plan = match open.plan.take() {
            Some(plan) => plan,
            None => {
                let plan = make()?;
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
        OpenReduction { callback: self.members.runs.join(run, self.group.number), plan: None }
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
        let run = &open.callback.run;
        let result = match run.is_settled(self.group.number) {
            true => Ok(()),
            false => self
                .submit(&open.callback, "the end of a backward run".into(), |_, _| Ok(()))
                .and_then(|()| run.tasks.wait())
                .inspect(|()| run.settle(self.group.number, None)),
        };
        self.members.runs.leave(&open.callback);
        result
    }

    /// Ends a run that has failed here.
    fn fail(&self, open: &OpenReduction, why: &str) {
        self.members.give_up(&open.callback.run, NAME, why);
        self.members.runs.leave(&open.callback);
    }

    fn submit(
        &self,
        callback: &OpenCallback,
        said: String,
        moves: impl FnOnce(&dyn Transport, &mut KeptMemory) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let runs = self.members.runs.open();
        let ticket = self.members.ticket(NAME, &self.group, &runs)?;
        let (members, group, run) = (self.members.clone(), self.group.clone(), callback.run.clone());
        let work = move || {
            let asked = Asked { name: NAME, group: &group, said: &said, run: Some(&run) };
            members.run(ticket, &runs, &asked, moves)
        };
        callback.run.tasks.submit(&self.members.worker, work);
        Ok(())
    }
}
