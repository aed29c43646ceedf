//! `nnrs.function.Function`: a function of the graph, as hooks and visitors see it.

use super::context::Context;
use super::convert;
use super::variable::Variable;
use crate::graph::FunctionRef;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A function of the graph.
#[pyclass(frozen, weakref, module = "nnrs._core")]
pub(crate) struct Function {
    f: FunctionRef,
}

impl Function {
    pub(crate) fn new(f: FunctionRef) -> Function {
        Function { f }
    }

    pub(crate) fn inner(&self) -> &FunctionRef {
        &self.f
    }
}

#[pymethods]
impl Function {
    /// NNabla's class name of the function.
    #[getter]
    fn name(&self) -> &'static str {
        self.f.class_name()
    }

    #[getter]
    fn inputs(&self) -> Vec<Variable> {
        self.f.inputs().into_iter().map(Variable::new).collect()
    }

    #[getter]
    fn outputs(&self) -> Vec<Variable> {
        self.f.outputs().into_iter().map(Variable::new).collect()
    }

    #[getter]
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let d = PyDict::new(py);
        for (name, value) in self.f.arguments() {
            d.set_item(name, convert::to_object(py, &value)?)?;
        }
        Ok(d)
    }

    #[getter]
    fn args<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.arguments(py)
    }

    #[getter]
    fn context(&self) -> Context {
        Context::new(self.f.context())
    }

    #[getter]
    fn rank(&self) -> usize {
        self.f.rank()
    }

    #[getter]
    fn need_grad(&self) -> bool {
        self.f.inputs().iter().any(|v| v.need_grad())
    }

    #[getter]
    fn tags(&self) -> Vec<String> {
        vec![]
    }

    /// The script line that made the function.
    #[getter]
    fn origin(&self) -> Option<String> {
        self.f.origin().map(str::to_string)
    }

    fn __repr__(&self) -> String {
        format!("<{} rank={}>", self.f.class_name(), self.f.rank())
    }

    fn __hash__(&self) -> u64 {
        self.f.id()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Function>().is_ok_and(|o| o.get().f.id() == self.f.id())
    }
}
