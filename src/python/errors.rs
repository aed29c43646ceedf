//! Errors as Python raises them: `nnrs.Error` and the built-in kind at once. Panics become errors too.

use super::finish::{self, attached};
use super::reserve;
use nnrs_kernels::error::{Error as Fault, ErrorKind, Result};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyMemoryError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::cell::RefCell;
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
        ErrorKind::Device => "DeviceError",
        ErrorKind::Communicator => "CommunicatorError",
        _ => "GraphError",
    }
}

/// `wrong` in the place of an error that says that a value does not fit; all others (Ctrl-C, no memory) stay what they are.
pub(crate) fn instead(py: Python<'_>, e: PyErr, wrong: impl FnOnce() -> PyErr) -> PyErr {
    if says_misfit(py, &e) { wrong() } else { e }
}

/// The error says that a value does not fit.
pub(crate) fn says_misfit(py: Python<'_>, e: &PyErr) -> bool {
    e.is_instance_of::<PyTypeError>(py)
        || e.is_instance_of::<PyValueError>(py)
        || e.is_instance_of::<PyOverflowError>(py)
}

/// The Python exception for an error of the engine.
pub(crate) fn raise(py: Python<'_>, e: Fault) -> PyErr {
    if let Some(meanwhile) = MEANWHILE.take() {
        return meanwhile;
    }
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
    finish::calling(py, make).unwrap_or_else(|failed| failed)
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
    reserve::check(py)?;
    finish::detached(py, || guarded(f)).map_err(|e| raise(py, e))
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
pub(crate) fn hook(py: Python<'_>, function: &str, arg: &str, hook: &Option<Py<PyAny>>) -> PyResult<()> {
    match hook.as_ref().map(|h| h.bind(py)).filter(|h| !h.is_none() && !h.is_callable()) {
        Some(h) => Err(wrong_type(py, function, arg, "a callable or None", describe(h))),
        None => Ok(()),
    }
}

/// Refuses what cannot be called.
pub(crate) fn callable(f: &Bound<'_, PyAny>, function: &str, arg: &str) -> PyResult<()> {
    match f.is_callable() {
        true => Ok(()),
        false => Err(wrong_type(f.py(), function, arg, "a callable", describe(f))),
    }
}

/// A constructor's arguments in the order of `parameters`, which are names and defaults as messages show them. Python
/// itself refuses wrong calls with a plain TypeError; these are errors of nnrs too.
pub(crate) fn bind<'py, const N: usize>(
    class: &str,
    parameters: [(&str, &str); N],
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<[Option<Bound<'py, PyAny>>; N]> {
    let refuse = |e: Fault| {
        let shown: Vec<String> = parameters.iter().map(|(name, default)| format!("{name}={default}")).collect();
        raise(args.py(), e.function(class).hint(format!("{class}({})", shown.join(", "))))
    };
    reserve::check(args.py())?;
    if args.len() > N {
        let most = if N == 1 { "1 argument".to_string() } else { format!("{N} arguments") };
        return Err(refuse(Fault::new(ErrorKind::Type, format!("at most {most}")).actual(args.len())));
    }
    let mut found = std::array::from_fn(|i| args.get_item(i).ok());
    for (name, value) in kwargs.into_iter().flatten() {
        let name: String = name.extract()?;
        let Some(i) = parameters.iter().position(|(own, _)| *own == name) else {
            return Err(refuse(Fault::new(ErrorKind::Type, format!("got an unexpected keyword argument '{name}'"))));
        };
        if found[i].replace(value).is_some() {
            let twice = Fault::new(ErrorKind::Type, "one value").actual("one by position and one by keyword");
            return Err(refuse(twice.argument(&name)));
        }
    }
    Ok(found)
}

/// An argument, if it is not None.
pub(crate) fn given(value: Option<Bound<'_, PyAny>>) -> Option<Bound<'_, PyAny>> {
    value.filter(|v| !v.is_none())
}

/// A flag, as `convert::flag` takes it; errors name `function` and `arg`.
pub(crate) fn flag(value: &Bound<'_, PyAny>, function: &str, arg: &str) -> PyResult<bool> {
    let py = value.py();
    super::convert::flag(value).map_err(|e| instead(py, e, || wrong_type(py, function, arg, "bool", describe(value))))
}

/// A wrong value as messages show it: its type and, cut short, what Python prints for it.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let short: String = printed(value)?.chars().take(60).collect();
    Ok(format!("{} {short}", type_name(value)))
}

/// What Python prints for a value, "?" where that fails. What is no mistake of its `__repr__` (Ctrl-C, no memory) is an error.
pub(crate) fn printed(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = value.py();
    match finish::calling(py, || value.repr()) {
        Ok(text) => Ok(text.to_string()),
        Err(e) if e.is_instance_of::<PyMemoryError>(py) || !e.is_instance_of::<PyException>(py) => Err(e),
        Err(_) => Ok("?".into()),
    }
}

thread_local! {
    /// The error that came in the making of a message.
    static MEANWHILE: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// As [`shown`], for the message of an error that is raised next: an error takes its place.
pub(crate) fn describe(value: &Bound<'_, PyAny>) -> String {
    or_instead(shown(value))
}

/// As [`printed`], for the message of an error that is raised next: an error takes its place.
pub(crate) fn print(value: &Bound<'_, PyAny>) -> String {
    or_instead(printed(value))
}

fn or_instead(text: PyResult<String>) -> String {
    text.unwrap_or_else(|e| {
        MEANWHILE.set(Some(e));
        String::new()
    })
}

/// The name of a value's type.
pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or("?".into(), |n| n.to_string())
}

/// Carries a Python exception through the engine.
pub(crate) fn carry(e: PyErr) -> Fault {
    let text = attached(|_| e.to_string());
    Fault::external(Box::new(e), text)
}

/// The error of Ctrl-C, if it was pressed.
pub(crate) fn check_signals() -> Result<()> {
    attached(|py| py.check_signals()).map_err(carry)
}
