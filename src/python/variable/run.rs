//! Runs of a Variable's graph: forward, backward, their hooks and the gradient to start with, visitors.

use super::super::finish::attached;
use super::PyVariable;
use crate::graph::{BackwardOptions, BackwardRun, CommunicatorBackwardCallback, ForwardOptions, ForwardRun};
use crate::graph::{FunctionRef, Seed, Variable as Var, fail_backward, forward_all as run_all};
use crate::python::array::PyNdArray;
use crate::python::convert::flag;
use crate::python::function::PyGraphFunction;
use crate::python::{convert, errors};
use nnrs_kernels::array::NdArray as Array;
use nnrs_kernels::error::Error;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

#[pymethods]
impl PyVariable {
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
        check_hooks(py, "Variable.forward", &function_pre_hook, &function_post_hook)?;
        let options = ForwardOptions { clear_buffer, clear_no_need_grad };
        errors::detached(py, || {
            let (pre, post) = (hook(&function_pre_hook), hook(&function_post_hook));
            self.var.forward_with(ForwardRun {
                options,
                closed: None,
                pre: pre.as_ref().map(|h| h as _),
                post: post.as_ref().map(|h| h as _),
            })
        })
    }

    /// Computes the gradients of all variables that this one was computed from and that need one.
    #[pyo3(signature = (grad=Some(GradArgument::Number(1.0)), clear_buffer=false, communicator_callbacks=None, function_pre_hook=None, function_post_hook=None))]
    fn backward(
        &self,
        py: Python<'_>,
        grad: Option<GradArgument>,
        #[pyo3(from_py_with = flag)] clear_buffer: bool,
        communicator_callbacks: Option<Py<PyAny>>,
        function_pre_hook: Option<Py<PyAny>>,
        function_post_hook: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let (callbacks, wrong) = callbacks(py, communicator_callbacks)?;
        let seed = || -> PyResult<Seed> {
            wrong.map_or(Ok(()), Err)?;
            check_hooks(py, "Variable.backward", &function_pre_hook, &function_post_hook)?;
            Ok(match grad {
                None => Seed::Own,
                Some(GradArgument::Number(v)) => Seed::Value(v),
                Some(GradArgument::Array(a)) => Seed::Array(self.seed(py, a)?),
            })
        };
        let seed = seed();
        errors::detached(py, || {
            let (pre, post) = (hook(&function_pre_hook), hook(&function_post_hook));
            let callbacks: Vec<&dyn CommunicatorBackwardCallback> = callbacks.iter().map(|c| c as _).collect();
            let (pre, post) = (pre.as_ref().map(|h| h as _), post.as_ref().map(|h| h as _));
            let seed = match seed {
                Ok(seed) => seed,
                // Other processes wait for the gradients all the same.
                Err(e) => return fail_backward(&callbacks, errors::carry(e)),
            };
            let options = BackwardOptions { seed, clear_buffer, clear_initial_grad: false };
            self.var.backward_with(BackwardRun { options, callbacks: &callbacks, pre, post })
        })
    }

    /// Calls `f` with each function behind this variable, inputs first.
    ///
    /// >>> F.exp(F.tanh(nn.Variable((2,)))).visit(lambda f: print(f.name))
    /// Tanh
    /// Exp
    fn visit(&self, py: Python<'_>, f: Py<PyAny>) -> PyResult<()> {
        errors::callable(f.bind(py), "Variable.visit", "f")?;
        errors::run(py, || self.var.visit(|node| call_hook(&f, node)))
    }

    /// True if `f` gives true for some function of the graph.
    fn visit_check(&self, py: Python<'_>, f: Py<PyAny>) -> PyResult<bool> {
        errors::callable(f.bind(py), "Variable.visit_check", "f")?;
        let mut found = false;
        let check = |node: &FunctionRef| {
            if !found {
                found = attached(|py| f.call1(py, (PyGraphFunction::new(node.clone()),))?.is_truthy(py))
                    .map_err(errors::carry)?;
            }
            Ok(())
        };
        errors::run(py, || self.var.visit(check))?;
        Ok(found)
    }
}

impl PyVariable {
    /// A gradient given as an array of this variable's shape, or as a number for all of it.
    fn seed(&self, py: Python<'_>, given: Py<PyAny>) -> PyResult<Array> {
        let given = given.into_bound(py);
        let a = match given.cast::<PyNdArray>() {
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
pub(crate) enum GradArgument {
    Number(f64),
    Array(Py<PyAny>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for GradArgument {
    type Error = PyErr;
    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<GradArgument> {
        if value.is_instance_of::<pyo3::types::PyFloat>() || value.is_instance_of::<pyo3::types::PyInt>() {
            return value.extract().map(GradArgument::Number);
        }
        Ok(GradArgument::Array(value.to_owned().unbind()))
    }
}

impl<'py> IntoPyObject<'py> for GradArgument {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            GradArgument::Number(v) => Ok(v.into_pyobject(py)?.into_any()),
            GradArgument::Array(a) => Ok(a.into_bound(py)),
        }
    }
}

/// A `nnrs.communicators.CommunicatorBackwardCallback`.
struct Callback(Py<PyAny>);

impl CommunicatorBackwardCallback for Callback {
    fn on_begin_backward(&self, run: u64) -> crate::Result<()> {
        attached(|py| self.0.call_method1(py, "_on_begin_backward", (run,)).map(drop)).map_err(errors::carry)
    }

    fn on_finish_function_backward(&self, f: &FunctionRef) -> crate::Result<()> {
        attached(|py| {
            self.0.call_method1(py, "on_finish_function_backward", (PyGraphFunction::new(f.clone()),)).map(drop)
        })
        .map_err(errors::carry)
    }

    fn on_finish_backward(&self) -> crate::Result<()> {
        attached(|py| self.0.call_method0(py, "on_finish_backward").map(drop)).map_err(errors::carry)
    }

    fn on_close_backward(&self, run: u64) -> crate::Result<()> {
        attached(|py| self.0.call_method1(py, "_on_close_backward", (run,)).map(drop)).map_err(errors::carry)
    }

    fn on_failed_backward(&self, run: u64, why: &str) {
        // The error that ended the run is what the caller gets, not one of this.
        let _ = attached(|py| self.0.call_method1(py, "_on_failed_backward", (run, why)).map(drop));
    }
}

/// One callback, or a list of them; and the error of those that are none.
fn callbacks(py: Python<'_>, given: Option<Py<PyAny>>) -> PyResult<(Vec<Callback>, Option<PyErr>)> {
    let Some(given) = given.map(|g| g.into_bound(py)) else { return Ok(Default::default()) };
    let class = py.import("nnrs.communicators")?.getattr("CommunicatorBackwardCallback")?;
    let all = match given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        true => given.try_iter()?.collect::<PyResult<Vec<_>>>()?,
        false => vec![given],
    };
    let (mut found, mut wrong) = (vec![], None);
    for c in all {
        if c.is_instance(&class)? {
            found.push(Callback(c.unbind()));
        } else {
            let expected = "a nnrs.communicators.CommunicatorBackwardCallback or a list of them";
            let argument = "communicator_callbacks";
            wrong = Some(errors::wrong_type(py, "Variable.backward", argument, expected, errors::describe(&c)));
        }
    }
    Ok((found, wrong))
}

fn check_hooks(py: Python<'_>, function: &str, pre: &Option<Py<PyAny>>, post: &Option<Py<PyAny>>) -> PyResult<()> {
    errors::hook(py, function, "function_pre_hook", pre)?;
    errors::hook(py, function, "function_post_hook", post)
}

pub(crate) fn forward_vars(
    py: Python<'_>,
    vars: &[&Var],
    options: ForwardOptions,
    pre: Option<Py<PyAny>>,
    post: Option<Py<PyAny>>,
) -> PyResult<()> {
    check_hooks(py, "forward_all", &pre, &post)?;
    errors::detached(py, || {
        let (pre, post) = (hook(&pre), hook(&post));
        let (pre, post) = (pre.as_ref().map(|h| h as _), post.as_ref().map(|h| h as _));
        run_all(vars, ForwardRun { options, closed: None, pre, post })
    })
}

/// A Python hook as the engine calls it, on the calling thread.
pub(crate) fn hook<'a>(f: &'a Option<Py<PyAny>>) -> Option<impl Fn(&FunctionRef) -> crate::Result<()> + 'a> {
    f.as_ref().map(|f| move |node: &FunctionRef| call_hook(f, node))
}

pub(crate) fn call_hook(f: &Py<PyAny>, node: &FunctionRef) -> crate::Result<()> {
    attached(|py| f.call1(py, (PyGraphFunction::new(node.clone()),)).map(drop)).map_err(errors::carry)
}
