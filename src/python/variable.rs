//! `nnrs.Variable`: what it is made of. How it runs, and how it looks to Python's own operators, stand beside.

pub(crate) mod protocols;
mod run;

pub(crate) use run::{call_hook, forward_vars};

use super::array::{PyNdArray, assign, size_from_axis};
use super::collector::{Noted, new_variable};
use super::errors::flag;
use super::function::PyGraphFunction;
use super::{convert, errors, finish, members};
use crate::graph::{Variable as Var, mode};
use nnrs_kernels::array::NdArray as Array;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::sync::atomic::AtomicBool;

/// A variable of the computation graph: data, gradient, and how it was computed.
#[pyclass(frozen, subclass, weakref, name = "Variable", module = "nnrs._core")]
pub(crate) struct PyVariable {
    var: Var,
    noted: Noted,
    /// What `.d` and `.g` are set to is stored in this type: a PythonFunction's results.
    stored: Option<DType>,
    /// The result of a comparison: no truth that Python could go by.
    pub(super) is_comparison: AtomicBool,
}

impl PyVariable {
    pub(crate) fn new(var: Var) -> PyVariable {
        PyVariable { noted: new_variable(&var), var, stored: None, is_comparison: AtomicBool::new(false) }
    }

    /// What user code that is running writes its results to.
    pub(crate) fn result(var: Var) -> PyVariable {
        PyVariable { noted: new_variable(&var), var, stored: mode::stored(), is_comparison: AtomicBool::new(false) }
    }

    /// Copies values into data or gradient.
    fn assign(&self, what: &str, to: &Array, value: &Bound<'_, PyAny>) -> PyResult<()> {
        assign(what, to, value)?;
        match self.stored.filter(|d| *d != to.dtype()) {
            Some(d) => errors::run(value.py(), || to.cast(d)),
            None => Ok(()),
        }
    }

    pub(super) fn noted(&self) -> &Noted {
        &self.noted
    }

    pub(crate) fn var(&self) -> &Var {
        &self.var
    }
}

#[pymethods]
impl PyVariable {
    #[new]
    #[pyo3(
        signature = (*args, **kwargs),
        text_signature = "(shape=None, need_grad=None, info=None)"
    )]
    fn py_new(args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<PyVariable> {
        let parameters = [("shape", "None"), ("need_grad", "None"), ("info", "None")];
        let [shape, need_grad, info] = errors::bind("Variable", parameters, args, kwargs)?.map(errors::given);
        let shape = shape.map_or(Ok(crate::Shape::default()), |s| convert::shape("Variable", &s))?;
        let made = PyVariable::new(Var::new(shape));
        made.var.set_need_grad(need_grad.map(|v| flag(&v, "Variable", "need_grad")).transpose()?);
        if let Some(info) = info {
            made.set_info(info)?;
        }
        Ok(made)
    }

    /// A variable with copies of NumPy arrays as data and gradient.
    ///
    /// >>> nn.Variable.from_numpy_array(np.float32([1, 2]), need_grad=True).need_grad
    /// True
    #[staticmethod]
    #[pyo3(signature = (data, grad=None, need_grad=None))]
    fn from_numpy_array(
        data: &Bound<'_, PyAny>,
        grad: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = convert::choice)] need_grad: Option<bool>,
    ) -> PyResult<PyVariable> {
        let py = data.py();
        let var = Var::from_array(convert::from_numpy("Variable.from_numpy_array", "data", data)?);
        if let Some(g) = grad.filter(|g| !g.is_none()) {
            let g = convert::from_numpy("Variable.from_numpy_array", "grad", g)?;
            errors::run(py, || var.set_grad(g))?;
        }
        var.set_need_grad(need_grad);
        Ok(PyVariable::new(var))
    }

    /// Sizes of the axes, a tuple of int.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        convert::tuple(py, &self.var.shape())
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.var.ndim()
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.var.size()
    }

    /// The product of the sizes from `axis` on. -1, the default, means all axes.
    #[pyo3(signature = (axis=-1))]
    fn size_from_axis(&self, py: Python<'_>, #[pyo3(from_py_with = convert::plain)] axis: i64) -> PyResult<usize> {
        size_from_axis(py, &self.var.shape(), axis)
    }

    /// The data as a NumPy array over the same memory. Assigning copies values in; numbers and smaller arrays broadcast.
    ///
    /// Data of an intermediate variable that was not kept is computed again; RuntimeError if an input has changed since.
    ///
    /// >>> x = nn.Variable((2,))
    /// >>> x.d = 3
    /// >>> x.d
    /// array([3., 3.], dtype=float32)
    #[getter]
    fn get_d<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let a = errors::run(py, || self.var.data())?;
        convert::writable(py, &a)
    }

    #[setter]
    fn set_d(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.assign("Variable.d", &self.var.raw_data(), value)
    }

    /// The gradient as a NumPy array over the same memory. Assigning copies values in; numbers broadcast.
    ///
    /// RuntimeError if it is an intermediate variable's and backward did not keep it.
    #[getter]
    fn get_g<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::writable(py, &self.var.grad())
    }

    #[setter]
    fn set_g(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.assign("Variable.g", &self.var.grad(), value)?;
        self.var.grad_was_set();
        Ok(())
    }

    /// The data as an NdArray. Assigning another NdArray of the same shape makes both share it.
    #[getter]
    fn get_data(&self) -> PyNdArray {
        PyNdArray::of_variable(self.var.raw_data())
    }

    #[setter]
    fn set_data(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let a = array_of(value, "data")?;
        errors::run_as(value.py(), "Variable.data", || self.var.set_data(a))
    }

    /// The gradient as an NdArray. Assigning another NdArray of the same shape makes both share it.
    #[getter]
    fn get_grad(&self) -> PyNdArray {
        PyNdArray::new(self.var.grad())
    }

    #[setter]
    fn set_grad(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let a = array_of(value, "grad")?;
        errors::run_as(value.py(), "Variable.grad", || self.var.set_grad(a))
    }

    /// Whether a gradient is computed for this variable: as set, or inherited from what it was computed from. None: inherit.
    ///
    /// >>> x = nn.Variable((2,), need_grad=True)
    /// >>> y = F.exp(x)
    /// >>> y.need_grad
    /// True
    #[getter]
    fn get_need_grad(&self) -> bool {
        self.var.need_grad_state()
    }

    #[setter]
    fn set_need_grad(&self, value: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.var.set_need_grad(value.map(|v| flag(v, "Variable.need_grad", "value")).transpose()?);
        Ok(())
    }

    /// True: data and gradient stay, whatever the clear flags of a run say.
    #[getter]
    fn get_persistent(&self) -> bool {
        self.var.persistent()
    }

    #[setter]
    fn set_persistent(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.var.set_persistent(flag(value, "Variable.persistent", "value")?);
        Ok(())
    }

    /// True: the data goes in forward, and is computed again when backward needs it.
    #[getter]
    fn get_recompute(&self) -> bool {
        self.var.recompute()
    }

    #[setter]
    fn set_recompute(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.var.set_recompute(flag(value, "Variable.recompute", "value")?);
        Ok(())
    }

    /// A name for messages and pictures.
    #[getter]
    fn get_name(&self) -> String {
        self.var.name().map_or(String::new(), |n| n.to_string())
    }

    #[setter]
    fn set_name(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let name = value
            .cast::<PyString>()
            .map_err(|_| errors::wrong_type(value.py(), "Variable.name", "value", "str", errors::describe(value)))?;
        self.var.set_name(&name.to_string_lossy());
        Ok(())
    }

    /// Distance from the leaves: 0 for a variable that no function made.
    #[getter]
    fn rank(&self) -> usize {
        self.var.rank()
    }

    /// The function that makes this variable, None for a leaf. Assigning a Function makes this variable a copy of the
    /// Function's first output of its shape; None cuts the history.
    ///
    /// >>> y, z = F.exp(nn.Variable((2,))), nn.Variable((2,))
    /// >>> z.parent = y.parent
    /// >>> z.forward()
    /// >>> z.parent == y.parent, z.d
    /// (True, array([1., 1.], dtype=float32))
    #[getter]
    fn get_parent(&self) -> Option<PyGraphFunction> {
        self.var.parent().map(PyGraphFunction::new)
    }

    #[setter]
    fn set_parent(&self, value: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        members::set_parent(&self.var, value)
    }

    /// The functions that read this variable and are alive.
    #[getter]
    fn function_references(&self) -> Vec<PyGraphFunction> {
        self.var.function_references().into_iter().map(PyGraphFunction::new).collect()
    }

    /// A variable that shares data and gradient but has no history: gradients end there. `need_grad` None: as this one's.
    ///
    /// >>> y = F.exp(nn.Variable((2,), need_grad=True))
    /// >>> u = y.unlinked()
    /// >>> u.parent is None and u == y
    /// True
    #[pyo3(signature = (need_grad=None))]
    fn unlinked(&self, #[pyo3(from_py_with = convert::choice)] need_grad: Option<bool>) -> PyVariable {
        PyVariable::new(self.var.unlinked_with(need_grad))
    }

    /// As `unlinked`.
    #[pyo3(signature = (need_grad=None))]
    fn get_unlinked_variable(&self, #[pyo3(from_py_with = convert::choice)] need_grad: Option<bool>) -> PyVariable {
        PyVariable::new(self.var.unlinked_with(need_grad))
    }

    /// Gives data and gradient another shape in place; with `force` also another size, which drops the content.
    ///
    /// Graphs that use the variable notice. Raises ValueError for another size without `force`.
    #[pyo3(signature = (shape, force=false))]
    fn reset_shape(&self, shape: &Bound<'_, PyAny>, #[pyo3(from_py_with = convert::flag)] force: bool) -> PyResult<()> {
        let s = convert::shape("Variable.reset_shape", shape)?;
        errors::run_as(shape.py(), "Variable.reset_shape", || self.var.reset_shape(s, force))
    }

    /// The same elements in another shape: by a function, or with `unlink` as a variable of its own over the same memory.
    #[pyo3(signature = (shape, unlink=false))]
    fn reshape<'py>(
        slf: &Bound<'py, PyVariable>,
        shape: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = convert::flag)] unlink: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if !unlink {
            return finish::calling(py, || py.import("nnrs.functions")?.call_method1("reshape", (slf, shape)));
        }
        let s = convert::shape("Variable.reshape", shape)?;
        let var = errors::run(py, || slf.get().var.view_in("Variable.reshape", s))?;
        Ok(Bound::new(py, PyVariable::new(var))?.into_any())
    }

    /// Puts what reads this variable on top of `var`: this variable takes the parent, the arrays and need_grad of `var`.
    ///
    /// Raises ValueError for another shape, RuntimeError for a leaf and for a cycle.
    ///
    /// >>> x, y = nn.Variable((2,)), F.exp(nn.Variable((2,)))
    /// >>> x.rewire_on(y)
    /// >>> x.parent.name, y.parent
    /// ('Exp', None)
    fn rewire_on(&self, py: Python<'_>, var: &PyVariable) -> PyResult<()> {
        errors::run(py, || self.var.rewire_on(&var.var))
    }

    /// Cuts all links of the graph behind this variable, so that its parts are freed one by one.
    fn clear_all_graph_links(&self) {
        self.var.clear_all_graph_links();
    }

    /// Sets members by name and gives the variable itself.
    #[pyo3(signature = (**kwargs))]
    fn apply<'py>(
        slf: Bound<'py, PyVariable>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyVariable>> {
        for (name, _) in kwargs.into_iter().flatten() {
            let name = name.extract::<String>()?;
            if !slf.hasattr(name.as_str())? {
                let e = Error::new(ErrorKind::Type, format!("got an unexpected keyword argument '{name}'"));
                return Err(errors::raise(slf.py(), e.function("Variable.apply").hint("the members of a Variable")));
            }
        }
        for (name, value) in kwargs.into_iter().flatten() {
            slf.setattr(name.extract::<String>()?.as_str(), value)?;
        }
        Ok(slf)
    }
}

fn array_of(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Array> {
    let a = value.cast::<PyNdArray>().map_err(|_| {
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
