//! What is told about a backward run while it goes on, so that finished gradients can be sent away meanwhile.

use super::FunctionRef;
use nnrs_kernels::error::Result;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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
    /// A run begins; `run` is its number in this program. It ends with
    /// [`on_close_backward`](CommunicatorBackwardCallback::on_close_backward) or
    /// [`on_failed_backward`](CommunicatorBackwardCallback::on_failed_backward).
    ///
    /// # Errors
    /// Whatever shall end the run.
    fn on_begin_backward(&self, _run: u64) -> Result<()> {
        Ok(())
    }

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

    /// All callbacks have come to the end of the run, and none has failed.
    ///
    /// # Errors
    /// What the run shall end with.
    fn on_close_backward(&self, _run: u64) -> Result<()> {
        Ok(())
    }

    /// Something has failed, be it another callback or the end of this one's run; nothing more comes of the run.
    fn on_failed_backward(&self, _run: u64, _why: &str) {}
}

/// Tells callbacks of a run that has failed before it could begin, and gives its error.
#[cfg(feature = "python")]
pub(crate) fn fail_backward(
    callbacks: &[&dyn CommunicatorBackwardCallback],
    why: nnrs_kernels::error::Error,
) -> Result<()> {
    ToldCallbacks::during(callbacks, |_| Err(why))
}

/// The callbacks of a run that has begun. To drop it before its end tells them that the run has failed.
pub(super) struct ToldCallbacks<'a> {
    callbacks: &'a [&'a dyn CommunicatorBackwardCallback],
    run: u64,
    /// How many know that it has begun.
    begun: usize,
}

impl<'a> ToldCallbacks<'a> {
    /// Tells all callbacks of a run what `work` has to tell, and how it ends.
    pub(super) fn during(
        callbacks: &'a [&'a dyn CommunicatorBackwardCallback],
        work: impl FnOnce(&Self) -> Result<()>,
    ) -> Result<()> {
        static RUNS: AtomicU64 = AtomicU64::new(1);
        let run = if callbacks.is_empty() { 0 } else { RUNS.fetch_add(1, Relaxed) };
        let mut told = ToldCallbacks { callbacks, run, begun: 0 };
        let result = told.begin().and_then(|()| work(&told)).and_then(|()| told.finish());
        match &result {
            Ok(()) => told.begun = 0,
            Err(e) => told.fail(&e.to_string()),
        }
        result
    }

    /// Also where one fails all the others know: what they count is the same wherever the run has begun.
    fn begin(&mut self) -> Result<()> {
        self.begun = self.callbacks.len();
        let told: Vec<Result<()>> = self.callbacks.iter().map(|c| c.on_begin_backward(self.run)).collect();
        told.into_iter().collect()
    }

    /// `f` is done.
    pub(super) fn function(&self, f: &FunctionRef) -> Result<()> {
        self.callbacks.iter().try_for_each(|c| c.on_finish_function_backward(f))
    }

    fn finish(&self) -> Result<()> {
        self.callbacks.iter().try_for_each(|c| c.on_finish_backward())?;
        self.callbacks.iter().try_for_each(|c| c.on_close_backward(self.run))
    }

    fn fail(&mut self, why: &str) {
        let begun = std::mem::take(&mut self.begun);
        self.callbacks[..begun].iter().for_each(|c| c.on_failed_backward(self.run, why));
    }
}

impl Drop for ToldCallbacks<'_> {
    fn drop(&mut self) {
        self.fail("it panicked"); // but for a run that has ended
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;
    use nnrs_kernels::error::Error;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Log(Mutex<Vec<String>>, bool);

    impl CommunicatorBackwardCallback for Log {
        fn on_begin_backward(&self, _run: u64) -> Result<()> {
            self.0.lock().unwrap().push("begin".into());
            Ok(())
        }
        fn on_finish_backward(&self) -> Result<()> {
            self.0.lock().unwrap().push("finish".into());
            if self.1 { Err(Error::graph("no end")) } else { Ok(()) }
        }
        fn on_close_backward(&self, _run: u64) -> Result<()> {
            self.0.lock().unwrap().push("close".into());
            Ok(())
        }
        fn on_failed_backward(&self, _run: u64, why: &str) {
            self.0.lock().unwrap().push(why.into());
        }
    }

    nnrs_kernels::unit_test!(each_run_that_begins_ends_in_one_of_two_ways);
    fn each_run_that_begins_ends_in_one_of_two_ways() {
        let logs = [Log(Mutex::default(), false), Log(Mutex::default(), true)];
        let both: [&dyn CommunicatorBackwardCallback; 2] = [&logs[0], &logs[1]];
        let seen = |i: usize| std::mem::take(&mut *logs[i].0.lock().unwrap());
        assert!(ToldCallbacks::during(&both[..1], |_| Ok(())).is_ok());
        assert_eq!(seen(0), ["begin", "finish", "close"]);
        assert!(ToldCallbacks::during(&both, |_| Err(Error::graph("no"))).is_err());
        assert_eq!((seen(0), seen(1)), (vec!["begin".into(), "no".into()], vec!["begin".into(), "no".into()]));
        assert!(ToldCallbacks::during(&both, |_| Ok(())).is_err());
        assert_eq!((seen(0).len(), seen(1)), (3, vec!["begin".into(), "finish".into(), "no end".into()]));
        let panics = || ToldCallbacks::during(&both[..1], |_| panic!("oh"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!(seen(0), ["begin", "it panicked"]);
    }
}
