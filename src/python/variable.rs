//! `nnrs.Variable`.

use super::array::{NdArray, as_numpy, assign, scalar, size_from_axis};
use super::function::Function;
use super::convert::flag;
use super::{convert, errors, members, operators};
use crate::array::NdArray as Array;
use crate::error::Error;
use crate::graph::{BackwardOptions, ForwardOptions, FunctionRef, Seed, Variable as Var, forward_all as run_all};
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// A variable of the computation graph: data, gradient, and how it was computed.
#[pyclass(frozen, subclass, weakref, module = "nnrs._core")]
pub(crate) struct Variable {
    var: Var,
}

impl Variable {
    pub(crate) fn new(var: Var) -> Variable {
        Variable { var }
    }

    pub(crate) fn var(&self) -> &Var {
        &self.var
    }
}

/// A Python hook as the engine calls it, on the calling thread.
pub(crate) fn hook<'a>(f: &'a Option<Py<PyAny>>) -> Option<impl Fn(&FunctionRef) -> crate::Result<()> + 'a> {
    f.as_ref().map(|f| move |node: &FunctionRef| call_hook(f, node))
}

pub(crate) fn call_hook(f: &Py<PyAny>, node: &FunctionRef) -> crate::Result<()> {
    Python::attach(|py| f.call1(py, (Function::new(node.clone()),)).map(drop)).map_err(errors::carry)
}

fn absent(f: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
    Python::attach(|py| f.filter(|f| !f.is_none(py)))
}

#[pymethods]
impl Variable {
    #[new]
    #[pyo3(signature = (shape=None, need_grad=None))]
    fn py_new(shape: Option<&Bound<'_, PyAny>>, need_grad: Option<bool>) -> PyResult<Variable> {
        let shape = shape.map_or(Ok(crate::Shape::default()), |s| convert::shape("Variable", s))?;
        let var = Var::new(shape);
        var.set_need_grad(need_grad);
        Ok(Variable { var })
    }

    #[staticmethod]
    #[pyo3(signature = (data, grad=None, need_grad=None))]
    fn from_numpy_array(
        data: &Bound<'_, PyAny>,
        grad: Option<&Bound<'_, PyAny>>,
        need_grad: Option<bool>,
    ) -> PyResult<Variable> {
        let py = data.py();
        let var = Var::from_array(convert::from_numpy("Variable.from_numpy_array", "data", data)?);
        if let Some(g) = grad.filter(|g| !g.is_none()) {
            let g = convert::from_numpy("Variable.from_numpy_array", "grad", g)?;
            errors::run(py, || var.set_grad(g))?;
        }
        var.set_need_grad(need_grad);
        Ok(Variable { var })
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        convert::tuple(py, &self.var.shape())
    }

    #[getter]
    fn ndim(&self) -> usize {
        self.var.ndim()
    }

    #[getter]
    fn size(&self) -> usize {
        self.var.size()
    }

    #[pyo3(signature = (axis=-1))]
    fn size_from_axis(&self, py: Python<'_>, axis: i64) -> PyResult<usize> {
        size_from_axis(py, &self.var.shape(), axis)
    }

    #[getter]
    fn get_d<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let a = errors::run(py, || self.var.data())?;
        convert::writable(py, &a)
    }

    #[setter]
    fn set_d(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        assign(&self.var.raw_data(), value)
    }

    #[getter]
    fn get_g<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::writable(py, &self.gradient(py)?)
    }

    #[setter]
    fn set_g(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        assign(&self.var.grad(), value)
    }

    #[getter]
    fn get_data(&self, py: Python<'_>) -> PyResult<NdArray> {
        errors::run(py, || self.var.data()).map(NdArray::new)
    }

    #[setter]
    fn set_data(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let a = array_of(value, "data")?;
        errors::run_as(value.py(), "Variable.data", || self.var.set_data(a))
    }

    #[getter]
    fn get_grad(&self, py: Python<'_>) -> PyResult<NdArray> {
        self.gradient(py).map(NdArray::new)
    }

    #[setter]
    fn set_grad(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let a = array_of(value, "grad")?;
        errors::run_as(value.py(), "Variable.grad", || self.var.set_grad(a))
    }

    #[getter]
    fn get_need_grad(&self) -> bool {
        self.var.need_grad()
    }

    #[setter]
    fn set_need_grad(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.var.set_need_grad(if value.is_none() { None } else { Some(flag(value)?) });
        Ok(())
    }

    #[getter]
    fn get_persistent(&self) -> bool {
        self.var.persistent()
    }

    #[setter]
    fn set_persistent(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.var.set_persistent(flag(value)?);
        Ok(())
    }

    #[getter]
    fn get_recompute(&self) -> bool {
        self.var.recompute()
    }

    #[setter]
    fn set_recompute(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.var.set_recompute(flag(value)?);
        Ok(())
    }

    #[getter]
    fn get_name(&self) -> String {
        self.var.name().map_or(String::new(), |n| n.to_string())
    }

    #[setter]
    fn set_name(&self, value: &str) {
        self.var.set_name(value);
    }

    #[getter]
    fn rank(&self) -> usize {
        self.var.rank()
    }

    #[getter]
    fn get_parent(&self) -> Option<Function> {
        self.var.parent().map(Function::new)
    }

    #[setter]
    fn set_parent(&self, value: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        members::set_parent(&self.var, value)
    }

    #[getter]
    fn function_references(&self) -> Vec<Function> {
        self.var.function_references().into_iter().map(Function::new).collect()
    }

    /// Computes this variable's data from the leaves of the graph.
    #[pyo3(signature = (clear_buffer=false, clear_no_need_grad=false, function_pre_hook=None, function_post_hook=None))]
    fn forward(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = flag)] clear_buffer: bool,
        #[pyo3(from_py_with = flag)] clear_no_need_grad: bool,
        function_pre_hook: Option<Py<PyAny>>,
        function_post_hook: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let options = ForwardOptions { clear_buffer, clear_no_need_grad };
        let (pre, post) = (absent(function_pre_hook), absent(function_post_hook));
        errors::detached(py, || {
            let (pre, post) = (hook(&pre), hook(&post));
            self.var.forward_hooked(options, pre.as_ref().map(|h| h as _), post.as_ref().map(|h| h as _))
        })
    }

    /// Computes the gradients of all variables that this one was computed from and that need one.
    #[pyo3(signature = (grad=Some(Given::Number(1.0)), clear_buffer=false, communicator_callbacks=None, function_pre_hook=None, function_post_hook=None))]
    fn backward(
        &self,
        py: Python<'_>,
        grad: Option<Given>,
        #[pyo3(from_py_with = flag)] clear_buffer: bool,
        communicator_callbacks: Option<Py<PyAny>>,
        function_pre_hook: Option<Py<PyAny>>,
        function_post_hook: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        if absent(communicator_callbacks).is_some() {
            return Err(errors::raise(
                py,
                Error::unsupported("communicator callbacks are not in this version of nnrs yet").function("backward"),
            ));
        }
        let seed = match grad {
            None => Seed::Own,
            Some(Given::Number(v)) => Seed::Value(v),
            Some(Given::Array(a)) => Seed::Array(self.seed(py, a)?),
        };
        let (pre, post) = (absent(function_pre_hook), absent(function_post_hook));
        let options = BackwardOptions { seed, clear_buffer };
        errors::detached(py, || {
            let (pre, post) = (hook(&pre), hook(&post));
            self.var.backward_hooked(options, pre.as_ref().map(|h| h as _), post.as_ref().map(|h| h as _))
        })
    }

    #[pyo3(signature = (need_grad=None))]
    fn unlinked(&self, need_grad: Option<bool>) -> Variable {
        Variable { var: self.var.unlinked_with(need_grad) }
    }

    #[pyo3(signature = (need_grad=None))]
    fn get_unlinked_variable(&self, need_grad: Option<bool>) -> Variable {
        Variable { var: self.var.unlinked_with(need_grad) }
    }

    #[pyo3(signature = (shape, force=false))]
    fn reset_shape(&self, shape: &Bound<'_, PyAny>, force: bool) -> PyResult<()> {
        let s = convert::shape("Variable.reset_shape", shape)?;
        errors::run_as(shape.py(), "Variable.reset_shape", || self.var.reset_shape(s, force))
    }

    #[pyo3(signature = (shape, unlink=false))]
    fn reshape<'py>(
        slf: &Bound<'py, Variable>,
        shape: &Bound<'py, PyAny>,
        unlink: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if !unlink {
            return py.import("nnrs.functions")?.call_method1("reshape", (slf, shape));
        }
        let s = convert::shape("Variable.reshape", shape)?;
        let var = errors::run(py, || slf.get().var.view(s))?;
        Ok(Bound::new(py, Variable { var })?.into_any())
    }

    fn rewire_on(&self, py: Python<'_>, var: &Variable) -> PyResult<()> {
        errors::run(py, || self.var.rewire_on(&var.var))
    }

    fn clear_all_graph_links(&self) {
        self.var.clear_all_graph_links();
    }

    fn visit(&self, py: Python<'_>, f: Py<PyAny>) -> PyResult<()> {
        errors::run(py, || self.var.visit(|node| call_hook(&f, node)))
    }

    /// True if `f` gives true for some function of the graph.
    fn visit_check(&self, py: Python<'_>, f: Py<PyAny>) -> PyResult<bool> {
        let mut found = false;
        let check = |node: &FunctionRef| {
            if !found {
                found = Python::attach(|py| f.call1(py, (Function::new(node.clone()),))?.is_truthy(py))
                    .map_err(errors::carry)?;
            }
            Ok(())
        };
        errors::run(py, || self.var.visit(check))?;
        Ok(found)
    }

    /// Sets members by name and gives the variable itself.
    #[pyo3(signature = (**kwargs))]
    fn apply<'py>(slf: Bound<'py, Variable>, kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, Variable>> {
        for (name, value) in kwargs.into_iter().flatten() {
            slf.setattr(name.extract::<String>()?.as_str(), value)?;
        }
        Ok(slf)
    }

    fn __getitem__<'py>(slf: &Bound<'py, Variable>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("nnrs._indexing")?.call_method1("getitem", (slf, key))
    }

    fn __setitem__(slf: &Bound<'_, Variable>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.py().import("nnrs._indexing")?.call_method1("setitem", (slf, key, value)).map(drop)
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

    fn __repr__(&self) -> String {
        let v = &self.var;
        format!(
            "<Variable({}, need_grad={}) at {:#x}>",
            v.shape(),
            if v.need_grad() { "True" } else { "False" },
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

    fn __bool__(&self) -> bool {
        true
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Variable>,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let same = |o: &Bound<'py, Variable>| o.get().var.identity() == slf.get().var.identity();
        match (op, other.cast::<Variable>()) {
            (CompareOp::Eq, Ok(o)) => Ok(same(o).into_pyobject(py)?.to_owned().into_any()),
            (CompareOp::Ne, Ok(o)) => Ok((!same(o)).into_pyobject(py)?.to_owned().into_any()),
            _ => operators::compare(slf.as_any(), other, op),
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let copy = |a: Array| -> PyResult<Bound<'py, PyAny>> {
            let data = errors::run(py, || a.read(a.dtype())?.converted(a.dtype()))?;
            convert::to_numpy(py, data, a.shape())
        };
        let grad = self.var.grad();
        let g = if grad.storage().is_empty() { py.None().into_bound(py) } else { copy(grad)? };
        let args = (copy(errors::run(py, || self.var.data())?)?, g, self.var.need_grad_setting());
        (py.get_type::<Variable>().getattr("from_numpy_array")?, args).into_pyobject(py).map(|t| t.into_any())
    }
}

operators::arithmetic!(Variable);

impl Variable {
    fn gradient(&self, py: Python<'_>) -> PyResult<Array> {
        if self.var.grad_was_dropped() {
            let e = Error::graph("the gradient of this intermediate variable was not kept by backward");
            return Err(errors::raise(
                py,
                e.hint("hold the Variable while backward runs, or set its persistent flag, to keep its gradient"),
            ));
        }
        Ok(self.var.grad())
    }

    /// A gradient given as an array, broadcast to this variable's shape.
    fn seed(&self, py: Python<'_>, given: Py<PyAny>) -> PyResult<Array> {
        let given = given.into_bound(py);
        let a = match given.cast::<NdArray>() {
            Ok(a) => a.get().inner().clone(),
            Err(_) => convert::from_numpy("backward", "grad", &given)?,
        };
        let is_number =
            given.hasattr("__float__")? && !given.hasattr("__len__")? || given.is_instance_of::<pyo3::types::PyBool>();
        if is_number && a.shape().ndim() == 0 {
            let filled = Array::new(self.var.shape());
            let v = errors::run(py, || a.to_vec::<f64>())?[0];
            errors::run(py, || filled.fill(v))?;
            return Ok(filled);
        }
        if a.shape() != self.var.shape() {
            let e = Error::shape("grad", format!("shape {}", self.var.shape())).actual(format!("shape {}", a.shape()));
            return Err(errors::raise(py, e.function("backward")));
        }
        Ok(a)
    }
}

/// The gradient argument of `backward`.
pub(crate) enum Given {
    Number(f64),
    Array(Py<PyAny>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Given {
    type Error = PyErr;
    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Given> {
        if value.is_instance_of::<pyo3::types::PyFloat>() || value.is_instance_of::<pyo3::types::PyInt>() {
            return value.extract().map(Given::Number);
        }
        Ok(Given::Array(value.to_owned().unbind()))
    }
}

impl<'py> IntoPyObject<'py> for Given {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Given::Number(v) => Ok(v.into_pyobject(py)?.into_any()),
            Given::Array(a) => Ok(a.into_bound(py)),
        }
    }
}

fn array_of(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Array> {
    let a = value.cast::<NdArray>().map_err(|_| {
        errors::wrong_type(
            value.py(),
            &format!("Variable.{name}"),
            name,
            "an NdArray (.d and .g take values)",
            errors::type_name(value),
        )
    })?;
    Ok(a.get().inner().clone())
}

pub(crate) fn forward_vars(
    py: Python<'_>,
    vars: &[&Var],
    options: ForwardOptions,
    pre: Option<Py<PyAny>>,
    post: Option<Py<PyAny>>,
) -> PyResult<()> {
    let (pre, post) = (absent(pre), absent(post));
    errors::detached(py, || {
        let (pre, post) = (hook(&pre), hook(&post));
        run_all(vars, options, pre.as_ref().map(|h| h as _), post.as_ref().map(|h| h as _))
    })
}
