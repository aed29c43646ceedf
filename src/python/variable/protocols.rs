//! A Variable under Python's own protocols: indexing, NumPy, numbers, text, comparison, pickling.

use super::PyVariable;
use crate::python::array::{as_numpy, scalar};
use crate::python::{convert, errors, operators};
use nnrs_kernels::array::NdArray as Array;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::Ordering::Relaxed;

#[pymethods]
impl PyVariable {
    /// NumPy's numbers and arrays leave an operator with a Variable or NdArray to that.
    #[classattr]
    fn __array_priority__() -> f64 {
        1000.0
    }

    /// NumPy's functions and operators take no Variable for the values that it happens to have.
    #[classattr]
    fn __array_ufunc__(py: Python<'_>) -> Py<PyAny> {
        py.None()
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let a = errors::run(py, || self.var.data())?;
        as_numpy(py, &a, dtype, copy)
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        scalar(py, &errors::run(py, || self.var.data())?)
    }

    fn __int__(&self, py: Python<'_>) -> PyResult<i64> {
        self.__float__(py).map(|v| v as i64)
    }

    /// Gives the variable a name for reports on memory alone.
    fn _note_name(&self, name: &str) {
        self.var.note_name(name);
    }

    /// Whether a comparison gave this variable.
    #[getter]
    fn _is_comparison(&self) -> bool {
        self.is_comparison.load(Relaxed)
    }

    fn __repr__(&self) -> String {
        let v = &self.var;
        format!(
            "<Variable({}, need_grad={}) at {:#x}>",
            v.shape(),
            if v.need_grad_state() { "True" } else { "False" },
            v.id()
        )
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let text = self.__repr__().replace('<', "&lt;").replace('>', "&gt;");
        let a = errors::run(py, || self.var.data())?;
        let values = if a.size() <= 1000 { convert::writable(py, &a)?.repr()?.to_string() } else { String::new() };
        Ok(format!("<code>{text}</code><pre>{}</pre>", values.replace('<', "&lt;")))
    }

    fn __hash__(&self) -> u64 {
        self.var.identity()
    }

    /// A Variable is an object, not a number: always true, as in NNabla. But what a comparison gives has no truth.
    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        if self.is_comparison.load(Relaxed) { Err(operators::no_truth(py)) } else { Ok(true) }
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, PyVariable>,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let same = |o: &Bound<'py, PyVariable>| o.get().var.identity() == slf.get().var.identity();
        match (op, other.cast::<PyVariable>()) {
            (CompareOp::Eq, Ok(o)) => Ok(same(o).into_pyobject(py)?.to_owned().into_any()),
            (CompareOp::Ne, Ok(o)) => Ok((!same(o)).into_pyobject(py)?.to_owned().into_any()),
            _ => operators::compare(slf.as_any(), other, op),
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let copy = |a: Array| -> PyResult<Bound<'py, PyAny>> {
            let data = errors::run(py, || a.content()?.converted(a.dtype()))?;
            convert::to_numpy(py, data, a.shape())
        };
        let grad = self.var.grad();
        let is_lost = grad.storage().is_dropped_gradient();
        let g = if grad.storage().is_empty() { py.None().into_bound(py) } else { copy(grad)? };
        let args = (copy(errors::run(py, || self.var.data())?)?, g, self.var.need_grad_setting());
        let members = PyDict::new(py);
        if let Some(name) = self.var.name() {
            members.set_item("name", &*name)?;
        }
        if self.var.persistent() {
            members.set_item("persistent", true)?;
        }
        if self.var.recompute() {
            members.set_item("recompute", true)?;
        }
        let info = self.get_info(py);
        if !info.is_none(py) {
            members.set_item("info", info)?;
        }
        let make = match is_lost {
            true => py.import("nnrs._core")?.getattr("without_gradient")?,
            false => py.get_type::<PyVariable>().getattr("from_numpy_array")?,
        };
        (make, args, (py.None(), members)).into_pyobject(py).map(|t| t.into_any())
    }
}

/// A copy of a variable whose gradient was not kept: reading it is the error there too.
#[pyfunction]
pub(crate) fn without_gradient(
    data: &Bound<'_, PyAny>,
    grad: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = convert::choice)] need_grad: Option<bool>,
) -> PyResult<PyVariable> {
    let copy = PyVariable::from_numpy_array(data, Some(grad), need_grad)?;
    copy.var.grad().storage().lose_gradient();
    Ok(copy)
}

operators::arithmetic!(PyVariable);
