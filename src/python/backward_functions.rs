//! `nnrs.backward_functions`: gradient rules in Python, for `nn.grad`.

use super::finish::attached;
use super::variable::PyVariable;
use super::{convert, errors};
use crate::function::{ArgDef, ArgKind, ArgValue, Args, Def, Function, Grad, Group, registry};
use crate::graph::{self, FunctionRef, Variable as Var, mode, register_gradient, unregister_gradient};
use nnrs_kernels::error::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(own_rule, m)?)?;
    m.add_function(wrap_pyfunction!(register_rule, m)?)?;
    m.add_function(wrap_pyfunction!(unregister_rule, m)?)
}

/// Lets nn.grad call `rule` for functions of this name.
#[pyfunction]
fn register_rule(name: &str, rule: Py<PyAny>) {
    let call = move |f: &FunctionRef, g: &Grad| attached(|py| apply(rule.bind(py), f, g)).map_err(errors::carry);
    drop(register_gradient(name, Arc::new(call)));
}

/// Takes the rule for functions of this name away; says whether there was one.
#[pyfunction]
fn unregister_rule(name: &str) -> bool {
    unregister_gradient(name).is_some()
}

/// The gradients of `inputs` as a graph by the rule that comes with the function of this name. Outputs that are not given
/// are computed again.
#[pyfunction]
fn own_rule(
    py: Python<'_>,
    name: &str,
    grad_inputs: Vec<PyRef<'_, PyVariable>>,
    inputs: Vec<PyRef<'_, PyVariable>>,
    outputs: Vec<Option<PyRef<'_, PyVariable>>>,
    arguments: &Bound<'_, PyDict>,
) -> PyResult<Vec<Option<PyVariable>>> {
    let vars = |list: &[PyRef<'_, PyVariable>]| list.iter().map(|v| v.var().clone()).collect::<Vec<_>>();
    let (x, gy) = (vars(&inputs), vars(&grad_inputs));
    let given: Vec<Option<&Var>> = outputs.iter().map(|y| y.as_ref().map(|v| v.var())).collect();
    let f = match given.iter().flatten().find_map(|y| made_by(y, name, &x)) {
        Some(f) => f,
        None => applied(py, name, &x, &gy, arguments)?,
    };
    let (own, shown) = (f.all_outputs(), f.outputs().len());
    if shown != gy.len() {
        let e = Error::arg("grad_inputs", format!("one for each of {shown} outputs")).actual(gy.len());
        return Err(errors::raise(py, e.function(format!("the gradient rule of '{name}'"))));
    }
    let y = own.into_iter().enumerate().map(|(k, y)| given.get(k).copied().flatten().cloned().unwrap_or(y)).collect();
    let parts = errors::run(py, || graph::by_own_rule(&f, x, y, gy))?;
    Ok(parts.into_iter().map(|g| g.map(PyVariable::new)).collect())
}

/// The function of this name that made `y` from `x`.
fn made_by(y: &Var, name: &str, x: &[Var]) -> Option<FunctionRef> {
    y.parent().filter(|f| {
        let own = f.inputs();
        f.class_name() == name && own.len() == x.len() && own.iter().zip(x).all(|(a, b)| a.is(b))
    })
}

/// The function of this name over `x`; in a static graph it does not run unless the rule reads the outputs.
fn applied(py: Python<'_>, name: &str, x: &[Var], gy: &[Var], arguments: &Bound<'_, PyDict>) -> PyResult<FunctionRef> {
    let unknown = || errors::raise(py, Error::arg("name", "the class name of a function").actual(name));
    let def = registry().find(|d| d.name == name).ok_or_else(unknown)?;
    let size = |(name, y): (_, usize)| Some((name, ArgValue::Int(*gy.get(y)?.shape().first()? as i64)));
    let f = with_arguments(def, arguments, counted(def).and_then(size))?;
    let refs: Vec<&Var> = x.iter().collect();
    let made = errors::run(py, || mode::keeping_history(|| graph::apply(f, &refs, None)))?;
    made[0].parent().ok_or_else(unknown)
}

/// The function with arguments as `Function.arguments` names them; defaults for those that are not given.
fn with_arguments(
    def: &'static Def,
    arguments: &Bound<'_, PyDict>,
    count: Option<(&'static str, ArgValue)>,
) -> PyResult<Arc<dyn Function>> {
    for (name, _) in arguments {
        let name: String = name.extract()?;
        if !def.args.iter().any(|a| inner_name(def, a) == name) {
            let e = Error::new(ErrorKind::Type, format!("got an unexpected keyword argument '{name}'"));
            return Err(errors::raise(arguments.py(), e.function(format!("the gradient rule of '{}'", def.name))));
        }
    }
    let mut values = Vec::from_iter(count);
    for arg in def.args {
        let Some(value) = arguments.get_item(inner_name(def, arg))? else { continue };
        let wrong = || {
            let expected = format!("a value of the kind {:?}", arg.kind);
            errors::wrong_type(value.py(), def.snake, arg.name, &expected, errors::describe(&value))
        };
        values.push((arg.name, convert::declared(&value, arg)?.ok_or_else(wrong)?));
    }
    errors::run(arguments.py(), || (def.build)(&mut Args::new(values)))
}

/// What an argument is called inside NNabla's functions.
fn inner_name(def: &Def, arg: &ArgDef) -> &'static str {
    match (def.group, arg.name, arg.kind) {
        (Group::Reduction, "axis", ArgKind::Ints) => "axes",
        (Group::Reduction, "keepdims", _) => "keep_dims",
        _ => arg.name,
    }
}

/// The argument that NNabla's function does not have, how many there are, and the output whose first size that is.
fn counted(def: &Def) -> Option<(&'static str, usize)> {
    match def.snake {
        "bool_gather" | "pack_padded_sequence" => Some(("rows", 0)),
        "pad_packed_sequence" => Some(("sequences", 1)),
        _ => None,
    }
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
            list.iter().enumerate().map(|(k, v)| read(k).then(|| PyVariable::new(v.clone()))).collect::<Vec<_>>(),
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
        v.cast::<PyVariable>().map(|v| Some(v.get().var().clone())).map_err(|_| wrong())
    };
    if made.is_none() || made.cast::<PyVariable>().is_ok() || !made.hasattr("__iter__")? {
        return Ok(vec![one(made)?]);
    }
    made.try_iter()?.map(|v| one(&v?)).collect()
}
