//! A function that is called with wrong arguments (a keyword that it does not have, too few, too many) fails before it
//! sees anything, with a plain TypeError. `Checked` stands around it and makes that an error of nnrs. It is compiled,
//! since every node of a graph is made through one.

use super::finish;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

/// Objects that stand for variables, and what calls a function with them: see python/nnrs/core/graph_def.py.
struct StandIns {
    class: Py<PyAny>,
    handler: Py<PyAny>,
}

static STAND_INS: PyOnceLock<StandIns> = PyOnceLock::new();

impl StandIns {
    fn are_among(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> bool {
        let class = self.class.bind(args.py());
        let is_one = |v: &Bound<'_, PyAny>| v.is_instance(class).unwrap_or(false);
        args.iter().any(|v| is_one(&v)) || kwargs.is_some_and(|k| k.values().iter().any(|v| is_one(&v)))
    }
}

/// From now on, a call with an object of `class` among its arguments is `handler(function, args, kwargs)`.
#[pyfunction]
pub(crate) fn call_stand_ins_by(py: Python<'_>, class: Py<PyAny>, handler: Py<PyAny>) {
    let _ = STAND_INS.set(py, StandIns { class, handler });
}

/// A function whose calls with wrong arguments raise an nnrs.Error. python/nnrs/_calls.py makes it look like the function.
/// `help` titles it by its type's name, so that is a function's.
#[pyclass(name = "function", frozen, dict, weakref, module = "nnrs._core")]
pub(crate) struct Checked {
    function: Py<PyAny>,
}

#[pymethods]
impl Checked {
    #[new]
    fn py_new(function: Py<PyAny>) -> Checked {
        Checked { function }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(stand_ins) = STAND_INS.get(py).filter(|s| s.are_among(args, kwargs)) {
            return stand_ins.handler.bind(py).call1((self.function.bind(py), args, kwargs));
        }
        finish::calling(py, || {
            self.function.bind(py).call(args, kwargs).map_err(|e| self.explained(py, e, args, kwargs))
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.function.bind(py).repr()?.to_string())
    }

    /// Made when it is asked for: see python/nnrs/_calls.py.
    #[getter]
    fn __signature__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("nnrs._calls")?.call_method1("shown_signature", (self.function.bind(py),))
    }

    /// As an attribute of a class it stays what it is. Having this makes it a routine, whose signature `help` shows.
    fn __get__(slf: Py<Self>, _instance: Option<Py<PyAny>>, _owner: Option<Py<PyAny>>) -> Py<Self> {
        slf
    }

    /// Pickled by name, as functions are.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.function.bind(py).getattr("__qualname__")
    }
}

impl Checked {
    /// The error of a call: explained if the function never began to run, else as it is.
    fn explained(
        &self,
        py: Python<'_>,
        e: PyErr,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyErr {
        if !e.is_instance_of::<PyTypeError>(py) || e.traceback(py).is_some() {
            return e;
        }
        let explain = || -> PyResult<Option<PyErr>> {
            let kwargs = kwargs.cloned().unwrap_or_else(|| PyDict::new(py));
            let f = self.function.bind(py);
            let made = py.import("nnrs._calls")?.call_method1("misfit", (f, f.getattr("__name__")?, args, kwargs))?;
            Ok((!made.is_none()).then(|| PyErr::from_value(made)))
        };
        explain().unwrap_or_else(Some).unwrap_or(e)
    }
}
