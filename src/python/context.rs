//! `nnrs.Context`.

use super::errors;
use pyo3::prelude::*;
use std::sync::Arc;

/// Where and in which precision functions run.
#[pyclass(frozen, eq, module = "nnrs._core")]
#[derive(PartialEq)]
pub(crate) struct Context {
    pub(crate) inner: Arc<crate::Context>,
}

#[pymethods]
impl Context {
    #[new]
    #[pyo3(signature = (backend=vec!["cpu:float".to_string()], array_class="CpuCachedArray".to_string(), device_id="0".to_string()))]
    fn new(py: Python<'_>, backend: Vec<String>, array_class: String, device_id: String) -> PyResult<Context> {
        let inner = errors::run(py, || crate::Context::new(backend, array_class, device_id))?;
        Ok(Context { inner: Arc::new(inner) })
    }

    #[getter]
    fn backend(&self) -> Vec<String> {
        self.inner.backend.clone()
    }

    #[getter]
    fn array_class(&self) -> String {
        self.inner.array_class.clone()
    }

    #[getter]
    fn device_id(&self) -> String {
        self.inner.device_id.clone()
    }

    fn __repr__(&self) -> String {
        let c = &self.inner;
        format!("Context(backend={:?}, array_class='{}', device_id='{}')", c.backend, c.array_class, c.device_id)
    }

    fn __hash__(&self) -> u64 {
        self.inner.backend.iter().flat_map(|b| b.bytes()).fold(7, |h: u64, b| h.wrapping_mul(31).wrapping_add(b as u64))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Vec<String>, String, String))> {
        let c = &self.inner;
        Ok((py.get_type::<Context>().into_any(), (c.backend.clone(), c.array_class.clone(), c.device_id.clone())))
    }
}
