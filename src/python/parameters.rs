//! Parameters. Under Python the scopes are dicts and the place in the tree is a context variable
//! (python/nnrs/_scope.py), and initial values come from Python's initializers.

use super::finish::{self, attached};
use super::parametric::Drawn;
use super::variable::PyVariable;
use super::{convert, errors};
use crate::graph::Variable as Var;
use crate::initializer::{Generator, Initializer};
use crate::parameter::{Entries, Item, Scope, Tree, note, set_tree, take_back, undoing_scope, use_parameter};
use nnrs_kernels::array::NdArray as Array;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::shape::Shape;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::any::Any;
use std::sync::Arc;

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(share_parameters, m)?)?;
    m.add_function(wrap_pyfunction!(add_to_scope, m)?)?;
    m.add_function(wrap_pyfunction!(put_in_scope, m)?)?;
    m.add_function(wrap_pyfunction!(call_in_scope, m)?)?;
    m.add_function(wrap_pyfunction!(get_parameter_or_create, m)?)
}

/// Puts `value` under `key` if that is free, and gives what is there then: a quicker thread's value counts.
#[pyfunction]
fn add_to_scope<'py>(scope: &Bound<'py, PyDict>, key: &str, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    finish::calling(scope.py(), || add(scope, key, value))
}

/// Puts `value` under `key`, in place of what was there.
#[pyfunction]
fn put_in_scope(scope: &Bound<'_, PyDict>, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    finish::calling(scope.py(), || put(scope, key, value))
}

/// Gives `call()`, made in the scope `name`; if it raises, the parameters and scopes that it made go again.
#[pyfunction]
fn call_in_scope<'py>(function: &str, name: &str, call: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = call.py();
    errors::run_as(py, function, || undoing_scope(name, || finish::calling(py, || call.call0()).map_err(errors::carry)))
}

/// Makes `root` (a dict) and `place` (a context variable with a dict, or None for the root) those of Rust code, too.
#[pyfunction]
fn share_parameters(root: &Bound<'_, PyDict>, place: &Bound<'_, PyAny>) -> PyResult<()> {
    let tree = Dicts { root: root.clone().unbind(), place: place.clone().unbind() };
    errors::run(root.py(), || set_tree(tree))
}

struct Dicts {
    root: Py<PyDict>,
    place: Py<PyAny>,
}

impl Dicts {
    fn place<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyDict>> {
        self.place.bind(py).call_method0("get").ok()?.cast_into().ok()
    }
}

impl Tree for Dicts {
    fn generator(&self) -> Arc<dyn Generator> {
        Arc::new(Drawn(None))
    }

    fn root(&self) -> Scope {
        attached(|py| scope(self.root.bind(py)))
    }

    fn current(&self) -> Scope {
        attached(|py| scope(self.place(py).as_ref().unwrap_or(self.root.bind(py))))
    }

    fn enter(&self, to: Option<Scope>) -> Option<Scope> {
        attached(|py| {
            let before = self.place(py);
            let to = to.map(|to| dict_of(py, &to)).transpose();
            let _ = to.and_then(|to| self.place.bind(py).call_method1("set", (to,)));
            before.as_ref().map(scope)
        })
    }
}

/// A scope that is a dict, most often an OrderedDict: to be changed by its methods alone.
struct Dict(Py<PyDict>);

fn scope(dict: &Bound<'_, PyDict>) -> Scope {
    Arc::new(Dict(dict.clone().unbind()))
}

fn new_dict(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    Ok(py.import("collections")?.getattr("OrderedDict")?.call0()?.cast_into()?)
}

/// What a value in a dict is to Rust; nothing, if it is neither a parameter nor a scope.
fn item(value: &Bound<'_, PyAny>) -> Option<Item> {
    match value.cast::<PyVariable>() {
        Ok(v) => Some(Item::Parameter(v.get().var().clone())),
        Err(_) => value.cast::<PyDict>().ok().map(|d| Item::Scope(scope(d))),
    }
}

fn to_object<'py>(py: Python<'py>, item: &Item) -> PyResult<Bound<'py, PyAny>> {
    match item {
        Item::Parameter(v) => Ok(Bound::new(py, PyVariable::new(v.clone()))?.into_any()),
        Item::Scope(s) => Ok(dict_of(py, s)?.into_any()),
    }
}

/// The dict of a scope. One that Rust code made before there was Python is copied.
fn dict_of<'py>(py: Python<'py>, scope: &Scope) -> PyResult<Bound<'py, PyDict>> {
    let any: &dyn Any = &**scope;
    if let Some(Dict(dict)) = any.downcast_ref() {
        return Ok(dict.bind(py).clone());
    }
    let dict = new_dict(py)?;
    for (key, item) in scope.list() {
        dict.as_any().set_item(key, to_object(py, &item)?)?;
    }
    Ok(dict)
}

fn add<'py>(scope: &Bound<'py, PyDict>, key: &str, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let is_new = !scope.contains(key)?;
    let there = scope.call_method1("setdefault", (key, value))?;
    if is_new {
        note_change(scope, key, value, None);
    }
    Ok(there)
}

fn put(scope: &Bound<'_, PyDict>, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let old = scope.call_method1("get", (key,))?;
    scope.as_any().set_item(key, value)?;
    note_change(scope, key, value, Some(old).filter(|old| !old.is_none()));
    Ok(())
}

fn note_change(scope: &Bound<'_, PyDict>, key: &str, value: &Bound<'_, PyAny>, old: Option<Bound<'_, PyAny>>) {
    if let Ok(v) = value.cast::<PyVariable>() {
        v.get().var().note_name(key);
    }
    let (scope, key, old) = (Dict(scope.clone().unbind()), key.to_string(), old.map(Bound::unbind));
    let new = value.clone().unbind();
    note(move || match old {
        _ if !scope.call(|d| Ok(d.call_method1("get", (&key,))?.is(&new))).unwrap_or(false) => (),
        Some(old) => drop(scope.call(|d| d.set_item(&key, old))),
        None => take_back(&scope, &key),
    });
}

impl Dict {
    /// Calls one of the dict's methods.
    fn call<R>(&self, f: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>) -> Result<R> {
        attached(|py| f(self.0.bind(py).as_any())).map_err(errors::carry)
    }
}

impl Entries for Dict {
    fn get(&self, key: &str) -> Option<Item> {
        self.call(|d| Ok(item(&d.call_method1("get", (key,))?))).ok().flatten()
    }

    fn add(self: Arc<Self>, key: &str, new: Item) -> Result<Item> {
        self.call(|d| {
            let there = add(d.cast()?, key, &to_object(d.py(), &new)?)?;
            item(&there).ok_or_else(|| {
                let expected = format!("a Variable or a dict under the name '{key}'");
                errors::wrong_type(d.py(), "parameter_scope", "scope", &expected, errors::describe(&there))
            })
        })
    }

    fn put(self: Arc<Self>, key: &str, new: Item) -> Result<()> {
        self.call(|d| put(d.cast()?, key, &to_object(d.py(), &new)?))
    }

    fn remove(&self, key: &str) {
        let _ = self.call(|d| d.call_method1("pop", (key, ())).map(drop));
    }

    fn list(&self) -> Vec<(String, Item)> {
        let all = |d: &Bound<'_, PyAny>| {
            let items = d.py().get_type::<PyList>().call1((d.call_method0("items")?,))?; // at once
            let known = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Some((key.extract().ok()?, item(&value)?));
            Ok(items.extract::<Vec<_>>()?.into_iter().filter_map(known).collect())
        };
        self.call(all).unwrap_or_default()
    }

    fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    fn inner(&self) -> Result<Scope> {
        self.call(|d| Ok(scope(&new_dict(d.py())?)))
    }
}

/// A Python initializer: what is called with a shape, or an array; None for zeros.
pub(super) struct PyInitializer {
    given: Py<PyAny>,
    /// The argument that it was given as.
    argument: String,
}

impl PyInitializer {
    pub(super) fn new(given: Py<PyAny>, argument: impl Into<String>) -> PyInitializer {
        PyInitializer { given, argument: argument.into() }
    }

    fn check(&self, py: Python<'_>) -> PyResult<Result<()>> {
        let given = self.given.bind(py);
        if helper(py, "_is_initializer")?.call1((given,))?.extract()? {
            return Ok(Ok(()));
        }
        let expected = "a callable that takes a shape (see nnrs.initializer), or a NumPy array";
        Ok(Err(Error::arg(&self.argument, expected).actual(errors::shown(given)?)))
    }
}

impl Initializer for PyInitializer {
    fn make(&self, shape: &Shape) -> Result<Array> {
        let make = |py: Python<'_>| {
            let values = helper(py, "_initial")?.call1((&self.given, convert::tuple(py, shape)?))?;
            Ok(values.cast::<PyVariable>()?.get().var().raw_data())
        };
        attached(|py| {
            self.check(py).map_err(errors::carry)??;
            make(py).map_err(|e: PyErr| match e.is_instance_of::<PyMemoryError>(py) {
                true => Error::new(ErrorKind::OutOfMemory, e.to_string()),
                false => errors::carry(e),
            })
        })
    }

    fn argument(&self) -> &str {
        &self.argument
    }

    fn made(&self, parameter: &Var) {
        let note = |py: Python<'_>| {
            helper(py, "_note_initializer")?.call1((PyVariable::new(parameter.clone()), &self.given)).map(drop)
        };
        let _ = attached(note);
    }
}

/// What layers share with python/nnrs/parameter.py.
pub(super) fn helper<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("nnrs.parameter")?.getattr(name)
}

/// The parameter `name` of the current scope, made if it is not there; a variable of its own over its memory.
#[pyfunction]
fn get_parameter_or_create(
    py: Python<'_>,
    name: &str,
    shape: &Bound<'_, PyAny>,
    initializer: &Bound<'_, PyAny>,
    need_grad: bool,
    used_with_grad: bool,
) -> PyResult<PyVariable> {
    let here = "get_parameter_or_create";
    let shape = convert::shape(here, shape)?;
    errors::run_as(py, here, || {
        let given = PyInitializer::new(initializer.clone().unbind(), "initializer");
        use_parameter(name, shape, &given, need_grad, used_with_grad).map(PyVariable::new)
    })
}
