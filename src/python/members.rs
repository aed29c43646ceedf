//! More members of `nnrs.Variable`: notes of the user, surgery, and what is written in Python.

use super::array::NdArray;
use super::function::Function;
use super::variable::Variable;
use super::{call, errors};
use crate::graph::{self, Variable as Var, mode};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// Sets the function that makes a variable; `None` cuts its history.
pub(crate) fn set_parent(var: &Var, value: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let Some(value) = value.filter(|v| !v.is_none()) else {
        var.cut();
        return Ok(());
    };
    let py = value.py();
    let f = value.cast::<Function>().map_err(|_| {
        errors::wrong_type(py, "Variable.parent", "parent", "a Function or None", errors::type_name(value))
    })?;
    errors::run(py, || var.set_parent(f.get().inner()))
}

#[pymethods]
impl Variable {
    /// Anything that the user wants to keep with the variable.
    #[getter]
    pub(super) fn get_info(&self, py: Python<'_>) -> Py<PyAny> {
        let kept = self.var().info().and_then(|i| i.downcast_ref::<Py<PyAny>>().map(|o| o.clone_ref(py)));
        kept.unwrap_or_else(|| py.None())
    }

    #[setter]
    pub(super) fn set_info(&self, py: Python<'_>, value: Py<PyAny>) {
        let info = (!value.is_none(py)).then(|| Arc::new(value) as Arc<_>);
        self.var().set_info(info);
    }

    /// How many variables share this one's arrays: itself and its unlinked copies.
    #[getter(get_number_of_references)]
    fn number_of_references(&self) -> usize {
        self.var().sharers()
    }

    /// Exceptions while a variable was freed. Always empty: NNabla's, for scripts that look at it.
    #[classattr]
    #[pyo3(name = "EXCEPTIONS_AT_DEALLOC")]
    fn exceptions_at_dealloc() -> Vec<Py<PyAny>> {
        Vec::new()
    }

    /// The same network without gradients: built again under `nnrs.no_grad`, on parameters that need none.
    fn no_grad<'py>(slf: &Bound<'py, Variable>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("nnrs._members")?.call_method1("no_grad", (slf,))
    }

    /// A variable over the memory of this one, which is filled with `value` where `mask` is not zero when it is computed.
    /// The place of this one in its graph stays as it is.
    ///
    /// >>> x = nn.Variable.from_numpy_array(np.float32([1, 2, 3]))
    /// >>> r = x.masked_fill_(np.float32([0, 1, 0]), 9)
    /// >>> r.forward()
    /// >>> x.parent, x.d
    /// (None, array([1., 9., 3.], dtype=float32))
    fn masked_fill_<'py>(
        slf: &Bound<'py, Variable>,
        mask: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("nnrs._members")?.call_method1("bool_fill", (slf, mask, value))
    }

    /// The same as `masked_fill_`.
    fn bool_fill_<'py>(
        slf: &Bound<'py, Variable>,
        mask: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Variable::masked_fill_(slf, mask, value)
    }

    /// The data array as it is: nothing is computed again for it.
    fn _raw_data(&self) -> NdArray {
        NdArray::new(self.var().raw_data())
    }

    /// Whether data and gradient have been cleared.
    fn _clear_called(&self) -> (bool, bool) {
        let node = self.var().node();
        let grad = node.existing_grad().is_some_and(|g| g.storage().is_cleared());
        (self.var().raw_data().storage().is_cleared(), grad || node.seed_was_cleared())
    }

    /// Gives this variable the value `new`, which is computed from it.
    fn _supersede(&self, py: Python<'_>, new: &Variable) -> PyResult<()> {
        errors::run(py, || self.var().supersede(new.var()))
    }
}

/// Applies a graph's function to other inputs, in its own context.
#[pyfunction]
pub(crate) fn apply_again<'py>(
    py: Python<'py>,
    f: &Function,
    inputs: Vec<PyRef<'py, Variable>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let vars: Vec<&Var> = inputs.iter().map(|v| v.var()).collect();
    let node = f.inner();
    let apply = || graph::apply(node.function().clone(), &vars, node.origin().map(Arc::from));
    call::tuple_of(py, errors::run(py, || mode::in_context(node.context(), apply))?)
}
