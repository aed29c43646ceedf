//! Gradients that are added up over ranks while backward still computes others.

use super::arrays::{KeptMemory, described, distinct};
use super::membership::{GroupMember, Membership};
use super::packs::PackPlan;
use super::reductions::{Summing, all_reduce_arrays};
use super::transport::Transport;
use super::worker::TaskGroup;
use super::{CallbackOptions, Communicator};
use crate::graph::{CommunicatorBackwardCallback, FunctionRef};
use nnrs_kernels::array::NdArray;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::ordered_sum::SumBy;
use std::borrow::Borrow;
use std::sync::{Arc, Mutex, PoisonError};

const NAME: &str = "all_reduce_callback";

impl Communicator {
    /// A callback for backward runs that adds up gradients while others are computed.
    ///
    /// A gradient goes when the last function that adds to it is over, on a thread of the communicator; parameters that
    /// several functions share are no exception. When the run returns, all have been summed. The callback may be used for any
    /// number of runs. All ranks have to pack alike: networks that differ are an error at the end of the run.
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
        let Some(transport) = group.transport.clone() else { return Ok(GradientReduction::default()) };
        if transport.size() == 1 && options.scale_grad == 1.0 {
            return Ok(GradientReduction::default());
        }
        let divide_by = if options.division { transport.size() } else { 1 };
        let how = Summing { divide_by, by: SumBy::Caller };
        let (members, scale) = (self.members.clone(), options.scale_grad);
        let sender = PackSender { members, group, transport, how, scale };
        let work = ReductionWork { sender, gradients: distinct(gradients), pack_size: options.pack_size };
        Ok(GradientReduction { work: Some(work), run: Mutex::default() })
    }
}

/// What [`Communicator::all_reduce_callback`] gives.
#[derive(Default)]
pub struct GradientReduction {
    /// `None` where there is nothing to do.
    work: Option<ReductionWork>,
    run: Mutex<ReductionRun>,
}

struct ReductionWork {
    sender: PackSender,
    gradients: Vec<NdArray>,
    pack_size: usize,
}

/// The backward run that goes on.
#[derive(Default)]
struct ReductionRun {
    plan: Option<PackPlan>,
    /// What was sent, also of a run before that has failed.
    tasks: Arc<TaskGroup>,
}

/// Sends packs of gradients in a communicator's line.
struct PackSender {
    members: Arc<Membership>,
    group: GroupMember,
    transport: Arc<dyn Transport>,
    how: Summing,
    scale: f64,
}

impl CommunicatorBackwardCallback for GradientReduction {
    fn on_finish_function_backward(&self, f: &FunctionRef) -> Result<()> {
        let Some(work) = &self.work else { return Ok(()) };
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        if !run.plan.as_ref().is_some_and(|plan| plan.goes_on(f)) {
            work.start(&mut run, PackPlan::new(f, &work.gradients, work.pack_size)?)?;
        }
        let ReductionRun { plan: Some(plan), tasks } = &mut *run else { return Ok(()) };
        plan.finished(f);
        plan.ready().into_iter().try_for_each(|pack| work.sender.send(tasks, pack))
    }

    fn on_finish_backward(&self) -> Result<()> {
        let Some(work) = &self.work else { return Ok(()) };
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        if run.plan.is_none() {
            work.start(&mut run, PackPlan::of_nothing(&work.gradients))?;
        }
        let (plan, tasks) = (run.plan.take(), run.tasks.clone());
        let rest = plan.map(|mut plan| plan.rest()).unwrap_or_default();
        let sent = rest.into_iter().try_for_each(|pack| work.sender.send(&tasks, pack));
        tasks.wait().and(sent)
    }
}

impl ReductionWork {
    /// Begins with a word on all packs of the run: the others must have the same.
    fn start(&self, run: &mut ReductionRun, plan: PackPlan) -> Result<()> {
        let _ = run.tasks.wait(); // of a run that has failed: its arrays may still be on their way
        run.tasks = Arc::default();
        let packs: Vec<String> = plan.all().map(|pack| described(&pack)).collect();
        run.plan = Some(plan);
        self.sender.check(&run.tasks, packs.join(" / "))
    }
}

impl PackSender {
    fn check(&self, tasks: &Arc<TaskGroup>, packs: String) -> Result<()> {
        let said = format!("packs {packs}; by {}, scale {}", self.how.divide_by, self.scale);
        let ticket = self.members.line.ticket(NAME, &self.group.name)?;
        let (members, t) = (self.members.clone(), self.transport.clone());
        tasks
            .submit(&self.members.worker, move || members.run(ticket, &*t, Some((NAME, said.as_str())), |_, _| Ok(())));
        Ok(())
    }

    fn send(&self, tasks: &Arc<TaskGroup>, pack: Vec<NdArray>) -> Result<()> {
        let ticket = self.members.line.ticket(NAME, &self.group.name)?;
        let (members, t, how, scale) = (self.members.clone(), self.transport.clone(), self.how, self.scale);
        tasks.submit(&self.members.worker, move || {
            let moves =
                |t: &dyn Transport, memory: &mut KeptMemory| all_reduce_arrays(t, &pack, false, scale, memory, how);
            members.run(ticket, &*t, None, moves)
        });
        Ok(())
    }
}
