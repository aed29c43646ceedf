//! What is told about a backward run while it goes on, so that finished gradients can be sent away meanwhile.

use super::FunctionRef;
use nnrs_kernels::error::Result;

/// Told about a backward run, on the thread that runs it: by which gradients of parameters can be added up over processes
/// while others are still computed.
///
/// The functions come in the order of the run, which is the same each time: from the highest rank down. After
/// [`on_finish_function_backward`](CommunicatorBackwardCallback::on_finish_function_backward) of the last function that
/// reads a variable, its gradient is final, and it stays at its address until it is zeroed or cleared. An error
/// stops the run.
///
/// ```
/// use nnrs::graph::{BackwardRun, CommunicatorBackwardCallback, FunctionRef};
/// use nnrs::{functions as f, Result, Variable};
/// use std::sync::Mutex;
///
/// #[derive(Default)]
/// struct Log(Mutex<Vec<&'static str>>);
/// impl CommunicatorBackwardCallback for Log {
///     fn on_finish_function_backward(&self, f: &FunctionRef) -> Result<()> {
///         self.0.lock().unwrap().push(f.name());
///         Ok(())
///     }
///     fn on_finish_backward(&self) -> Result<()> {
///         self.0.lock().unwrap().push("end");
///         Ok(())
///     }
/// }
///
/// let x = Variable::new([2]).with_need_grad(true);
/// let (y, log) = (f::sin(&f::exp(&x)?)?, Log::default());
/// y.forward()?;
/// y.backward_with(BackwardRun { callbacks: &[&log], ..Default::default() })?;
/// assert_eq!(*log.0.lock().unwrap(), ["sin", "exp", "end"]);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub trait CommunicatorBackwardCallback {
    /// `f` has added its part to the gradients of its inputs.
    ///
    /// # Errors
    /// Whatever shall end the run.
    fn on_finish_function_backward(&self, _f: &FunctionRef) -> Result<()> {
        Ok(())
    }

    /// The run is over, and no function has failed.
    ///
    /// # Errors
    /// What the run shall end with.
    fn on_finish_backward(&self) -> Result<()> {
        Ok(())
    }
}

pub(super) fn finish_function(callbacks: &[&dyn CommunicatorBackwardCallback], f: &FunctionRef) -> Result<()> {
    callbacks.iter().try_for_each(|c| c.on_finish_function_backward(f))
}

pub(super) fn finish(callbacks: &[&dyn CommunicatorBackwardCallback]) -> Result<()> {
    callbacks.iter().try_for_each(|c| c.on_finish_backward())
}
