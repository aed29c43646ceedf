//! What is told about a backward run while it goes on, so that finished gradients can be sent away meanwhile.

use super::FunctionRef;
use crate::error::Result;

/// Told about a backward run, on the thread that runs it: by which gradients of parameters can be added up over processes
/// while others are still computed.
///
/// The functions come in the order of the run, which is the same each time: from the highest rank down. After
/// [`on_finish_function_backward`](CommunicatorBackwardCallback::on_finish_function_backward) of the last function that
/// reads a variable, its gradient is final, and it stays at its address until somebody zeroes or clears it. An error
/// stops the run.
pub trait CommunicatorBackwardCallback {
    /// `f` has added its part to the gradients of its inputs.
    fn on_finish_function_backward(&self, _f: &FunctionRef) -> Result<()> {
        Ok(())
    }

    /// The run is over, and no function has failed.
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
