//! `nnrs.backward_functions`: gradient rules in Python, for `nn.grad`.

use super::variable::Variable;
use super::{convert, errors};
use crate::error::{Error, ErrorKind};
use crate::function::Grad;
use crate::graph::{FunctionRef, Variable as Var, register_gradient, unregister_gradient};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(register_rule, m)?)?;
    m.add_function(wrap_pyfunction!(unregister_rule, m)?)
}

/// Lets nn.grad call `rule` for functions of this name.
#[pyfunction]
fn register_rule(name: &str, rule: Py<PyAny>) {
    let call = move |f: &FunctionRef, g: &Grad| Python::attach(|py| apply(rule.bind(py), f, g)).map_err(errors::carry);
    drop(register_gradient(name, Arc::new(call)));
}

/// Takes the rule for functions of this name away; says whether there was one.
#[pyfunction]
fn unregister_rule(name: &str) -> bool {
    unregister_gradient(name).is_some()
}

/// Calls a rule as NNabla does: (grad_inputs, inputs, input_shapes, outputs, output_shapes, **arguments). Data that the
/// gradient does not read is None.
fn apply(rule: &Bound<'_, PyAny>, f: &FunctionRef, g: &Grad) -> PyResult<Vec<Option<Var>>> {
    let py = rule.py();
    let n = g.x.len();
    let user = super::python_function::UserFunction::of(&**f.function()).is_some();
    let read = |j: usize| !user || (0..n).any(|i| f.grad_reads_input(i, j));
    let read_y = |o: usize| !user || (0..n).any(|i| f.grad_reads_output(i, o));
    let some = |list: &[Var], read: &dyn Fn(usize) -> bool| {
        PyList::new(
            py,
            list.iter().enumerate().map(|(k, v)| read(k).then(|| Variable::new(v.clone()))).collect::<Vec<_>>(),
        )
    };
    let shapes = |list: &[Var]| -> PyResult<Bound<'_, PyList>> {
        let shapes = list.iter().map(|v| convert::tuple(py, &v.shape())).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, shapes)
    };
    let arguments = PyDict::new(py);
    for (name, value) in f.arguments() {
        arguments.set_item(name, convert::to_object(py, &value)?)?;
    }
    let given = (some(&g.gy, &|_| true)?, some(&g.x, &read)?, shapes(&g.x)?, some(&g.y, &read_y)?, shapes(&g.y)?);
    parts(f, &rule.call(given, Some(&arguments))?)
}

/// The result of a rule: one variable, or a sequence with a variable or None for each input.
fn parts(f: &FunctionRef, made: &Bound<'_, PyAny>) -> PyResult<Vec<Option<Var>>> {
    let one = |v: &Bound<'_, PyAny>| -> PyResult<Option<Var>> {
        if v.is_none() {
            return Ok(None);
        }
        let wrong = || {
            let e = Error::new(ErrorKind::Type, "Variables, or None where an input has no gradient");
            let name = format!("the gradient rule registered for '{}'", f.class_name());
            errors::raise(v.py(), e.actual(errors::type_name(v)).function(name))
        };
        v.cast::<Variable>().map(|v| Some(v.get().var().clone())).map_err(|_| wrong())
    };
    if made.is_none() || made.cast::<Variable>().is_ok() || !made.hasattr("__iter__")? {
        return Ok(vec![one(made)?]);
    }
    made.try_iter()?.map(|v| one(&v?)).collect()
}
