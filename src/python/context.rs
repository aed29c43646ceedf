//! `nnrs.Context`.

use super::{cuda, errors};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Arc, Mutex, PoisonError};

/// Where and in which precision functions run.
#[pyclass(frozen, eq, subclass, name = "Context", module = "nnrs._core")]
pub(crate) struct PyContext {
    inner: Mutex<Arc<crate::Context>>,
}

impl PartialEq for PyContext {
    fn eq(&self, other: &PyContext) -> bool {
        *self.get() == *other.get()
    }
}

impl PyContext {
    pub(crate) fn new(inner: Arc<crate::Context>) -> PyContext {
        PyContext { inner: Mutex::new(inner) }
    }

    /// The context as it is now.
    pub(crate) fn get(&self) -> Arc<crate::Context> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the fields; functions made before keep the context that they were made in.
    fn set(&self, py: Python<'_>, backend: Vec<String>, array_class: String, device_id: String) -> PyResult<()> {
        let made = made(py, backend, array_class, device_id)?;
        *self.inner.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(made);
        Ok(())
    }
}

#[pymethods]
impl PyContext {
    #[new]
    #[pyo3(
        signature = (*args, **kwargs),
        text_signature = "(backend=['cpu:float'], array_class='', device_id='0')"
    )]
    fn py_new(py: Python<'_>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<PyContext> {
        let parameters = [("backend", "['cpu:float']"), ("array_class", "''"), ("device_id", "'0'")];
        let [backend, array_class, device_id] = errors::bind("Context", parameters, args, kwargs)?;
        let backend = backend.map_or_else(|| Ok(vec!["cpu:float".into()]), |v| backends(&v))?;
        let array_class = array_class.map_or_else(|| Ok(String::new()), |v| text(&v, "array_class"))?;
        let device_id = device_id.map_or_else(|| Ok("0".into()), |v| text(&v, "device_id"))?;
        Ok(PyContext::new(Arc::new(made(py, backend, array_class, device_id)?)))
    }

    /// Candidates as `device:type`; the first one that this build knows is taken.
    #[getter]
    fn get_backend(&self) -> Vec<String> {
        self.get().backend.clone()
    }

    #[setter]
    fn set_backend(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let c = self.get();
        self.set(value.py(), backends(value)?, c.array_class.clone(), c.device_id.clone())
    }

    /// Name of the kind of arrays.
    #[getter]
    fn get_array_class(&self) -> String {
        self.get().array_class.clone()
    }

    #[setter]
    fn set_array_class(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let c = self.get();
        self.set(value.py(), c.backend.clone(), text(value, "array_class")?, c.device_id.clone())
    }

    /// Number of the device, as text.
    #[getter]
    fn get_device_id(&self) -> String {
        self.get().device_id.clone()
    }

    #[setter]
    fn set_device_id(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let c = self.get();
        self.set(value.py(), c.backend.clone(), c.array_class.clone(), text(value, "device_id")?)
    }

    /// A field by its name.
    fn __getitem__<'py>(slf: &Bound<'py, PyContext>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        slf.getattr(key)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let c = self.get();
        let backend = c.backend.clone().into_pyobject(py)?.repr()?.to_string();
        Ok(format!("Context(backend={backend}, array_class='{}', device_id='{}')", c.array_class, c.device_id))
    }

    fn __hash__(&self) -> u64 {
        self.get().backend.iter().flat_map(|b| b.bytes()).fold(7, |h: u64, b| h.wrapping_mul(31).wrapping_add(b as u64))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Vec<String>, String, String))> {
        let c = self.get();
        Ok((py.get_type::<PyContext>().into_any(), (c.backend.clone(), c.array_class.clone(), c.device_id.clone())))
    }
}

fn made(py: Python<'_>, backend: Vec<String>, array_class: String, device_id: String) -> PyResult<crate::Context> {
    let made = errors::run(py, || crate::Context::new(backend, array_class, device_id))?;
    match made.passed_over() {
        None if made.gpu().is_some() => cuda::tell_folders(py)?,
        None => {}
        Some(why) => cuda::warn_of_host(py, &made, &why)?,
    }
    Ok(made)
}

/// A list of str.
fn backends(value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let py = value.py();
    let wrong = || errors::wrong_type(py, "Context", "backend", "a list of str", errors::describe(value));
    value.extract().map_err(|e| errors::instead(py, e, wrong))
}

fn text(value: &Bound<'_, PyAny>, argument: &str) -> PyResult<String> {
    value.extract().map_err(|_| errors::wrong_type(value.py(), "Context", argument, "str", errors::describe(value)))
}
