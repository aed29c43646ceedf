//! The end of a wait inside a foreign library that holds the interpreter: no Python thread runs then, nor a signal's handler.

use pyo3::prelude::*;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A context manager whose block must not take longer than some seconds: the process ends then, with a text on standard error
/// and status 1.
#[pyclass(frozen, module = "nnrs._core")]
pub(super) struct Deadline {
    seconds: f64,
    text: String,
    state: Arc<(Mutex<bool>, Condvar)>,
}

#[pymethods]
impl Deadline {
    #[new]
    fn py_new(seconds: f64, text: String) -> Deadline {
        Deadline { seconds, text, state: Arc::default() }
    }

    fn __enter__(&self) -> PyResult<()> {
        // More than a Duration holds is never.
        let Ok(wait) = Duration::try_from_secs_f64(self.seconds) else { return Ok(()) };
        let (state, text) = (self.state.clone(), self.text.clone());
        let watch = move || {
            let (is_over, told) = &*state;
            let guard = is_over.lock().unwrap_or_else(PoisonError::into_inner);
            let (over, _) = told.wait_timeout_while(guard, wait, |over| !*over).unwrap_or_else(PoisonError::into_inner);
            if !*over {
                let _ = writeln!(std::io::stderr(), "{text}");
                // SAFETY: nothing of this process runs after it; `exit` would call what other libraries have registered.
                unsafe { libc::_exit(1) };
            }
        };
        std::thread::Builder::new().name("nnrs-deadline".into()).spawn(watch)?;
        Ok(())
    }

    fn __exit__(&self, _kind: &Bound<'_, PyAny>, _error: &Bound<'_, PyAny>, _traceback: &Bound<'_, PyAny>) {
        *self.state.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.state.1.notify_all();
    }
}
