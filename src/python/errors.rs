//! Errors as Python raises them: `nnrs.Error` and the built-in kind at once. Panics become errors too.

use crate::error::{Error as Fault, ErrorKind, Result};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::panic::{AssertUnwindSafe, catch_unwind};

create_exception!(nnrs, Error, PyException, "Base of all errors that nnrs raises.");

/// The class in `nnrs._errors` for a kind.
fn class_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Shape => "ShapeError",
        ErrorKind::Dtype | ErrorKind::Type => "ArgumentTypeError",
        ErrorKind::Argument => "ArgumentError",
        ErrorKind::OutOfMemory => "OutOfMemoryError",
        ErrorKind::Parameter => "ParameterError",
        ErrorKind::Format => "FormatError",
        ErrorKind::Io => "FileError",
        ErrorKind::Unsupported => "UnsupportedError",
        _ => "GraphError",
    }
}

/// The Python exception for an error of the engine.
pub(crate) fn raise(py: Python<'_>, e: Fault) -> PyErr {
    let e = match e.into_payload() {
        Ok(payload) => match payload.downcast::<PyErr>() {
            Ok(own) => return *own,
            Err(_) => return Error::new_err("an error of user code without a message"),
        },
        Err(e) => e,
    };
    let make = || -> PyResult<PyErr> {
        let class = py.import("nnrs._errors")?.getattr(class_name(e.kind()))?;
        Ok(PyErr::from_value(class.call1((e.to_string(),))?))
    };
    make().unwrap_or_else(|failed| failed)
}

/// Runs engine code with the GIL held.
pub(crate) fn run<R>(py: Python<'_>, f: impl FnOnce() -> Result<R>) -> PyResult<R> {
    guarded(f).map_err(|e| raise(py, e))
}

/// As [`run`]; errors name `function`.
pub(crate) fn run_as<R>(py: Python<'_>, function: &str, f: impl FnOnce() -> Result<R>) -> PyResult<R> {
    run(py, || f().map_err(|e| e.function(function)))
}

/// Runs engine code with the GIL released.
pub(crate) fn detached<R: Send>(py: Python<'_>, f: impl FnOnce() -> Result<R> + Send) -> PyResult<R> {
    py.detach(|| guarded(f)).map_err(|e| raise(py, e))
}

fn guarded<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|s| s.to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Fault::graph(format!("internal error: {text}"))
            .hint("this is a bug of nnrs; please report it with the script"))
    })
}

/// An argument of the wrong type.
pub(crate) fn wrong_type(
    py: Python<'_>,
    function: &str,
    arg: &str,
    expected: &str,
    actual: impl std::fmt::Display,
) -> PyErr {
    raise(py, Fault::new(ErrorKind::Type, expected).argument(arg).actual(actual).function(function))
}

/// Refuses a hook that cannot be called, before anything runs.
pub(crate) fn callable(py: Python<'_>, function: &str, arg: &str, hook: &Option<Py<PyAny>>) -> PyResult<()> {
    match hook.as_ref().map(|h| h.bind(py)).filter(|h| !h.is_none() && !h.is_callable()) {
        Some(h) => Err(wrong_type(py, function, arg, "a callable or None", describe(h))),
        None => Ok(()),
    }
}

/// Refuses keywords that a constructor does not have.
pub(crate) fn no_more(class: &str, arguments: &str, unknown: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    let Some((name, _)) = unknown.and_then(|u| u.iter().next()) else { return Ok(()) };
    let e = Fault::new(ErrorKind::Type, format!("got an unexpected keyword argument '{name}'"));
    Err(raise(name.py(), e.function(class).hint(format!("{class}({arguments})"))))
}

/// A flag, as `convert::flag` takes it; errors name `function` and `arg`.
pub(crate) fn flag(value: &Bound<'_, PyAny>, function: &str, arg: &str) -> PyResult<bool> {
    super::convert::flag(value).map_err(|_| wrong_type(value.py(), function, arg, "bool", describe(value)))
}

/// A wrong value as messages show it: its type and, cut short, what Python prints for it.
pub(crate) fn describe(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or("?".into(), |r| r.to_string());
    let short: String = text.chars().take(60).collect();
    format!("{} {short}", type_name(value))
}

/// The name of a value's type.
pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or("?".into(), |n| n.to_string())
}

/// Carries a Python exception through the engine.
pub(crate) fn carry(e: PyErr) -> Fault {
    Fault::external(Box::new(e), "an exception in Python code")
}

/// Ctrl-C between two functions.
pub(crate) fn check_signals() -> Result<()> {
    Python::attach(|py| py.check_signals()).map_err(carry)
}
