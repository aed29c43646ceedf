//! What a `with` block sets and takes back. It is compiled, since CPython calls signals' handlers between Python's own
//! instructions: none comes between setting and the block, nor between the block and taking back.

use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// A context manager that sets what `make()` gives first, and at the end what `get()` gave before; `as` is what `make()` gives
/// second. `get` and `set` are compiled, too. python/nnrs/_modes.py makes a decorator of it.
#[pyclass(subclass, frozen, module = "nnrs._core")]
pub(super) struct ModeScope {
    get: Py<PyAny>,
    set: Py<PyAny>,
    make: Py<PyAny>,
    before: Mutex<Vec<Py<PyAny>>>,
}

impl ModeScope {
    fn before<R>(&self, f: impl FnOnce(&mut Vec<Py<PyAny>>) -> R) -> R {
        f(&mut self.before.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl ModeScope {
    #[new]
    fn py_new(get: Py<PyAny>, set: Py<PyAny>, make: Py<PyAny>) -> ModeScope {
        ModeScope { get, set, make, before: Mutex::default() }
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (inner, given): (Py<PyAny>, Py<PyAny>) = self.make.call0(py)?.extract(py)?;
        let before = self.get.call0(py)?;
        self.set.call1(py, (inner,))?;
        self.before(|all| all.push(before));
        Ok(given)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        match self.before(Vec::pop) {
            Some(before) => self.set.call1(py, (before,)).map(drop),
            None => Ok(()),
        }
    }
}
