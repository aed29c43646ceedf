//! Operators of Variable and NdArray: arrays, variables and numbers on both sides.

use super::array::PyNdArray;
use super::convert::word;
use super::variable::PyVariable;
use super::{call, finish};
use crate::function::Def;
use crate::functions as f;
use nnrs_kernels::error::{Error, ErrorKind};
use pyo3::basic::CompareOp;
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyTuple};
use std::sync::atomic::Ordering::Relaxed;

/// An operator's functions: of two arrays, of an array and a number, and of a number and an array.
pub(crate) struct Operator {
    two: &'static Def,
    scalar: &'static Def,
    reversed: &'static Def,
    /// Applied to the number before `scalar` (subtraction adds the negative, division multiplies by the inverse).
    number: fn(f64) -> f64,
}

pub(crate) static ADD: Operator =
    Operator { two: f::Add2::DEF, scalar: f::AddScalar::DEF, reversed: f::AddScalar::DEF, number: |v| v };
pub(crate) static SUB: Operator =
    Operator { two: f::Sub2::DEF, scalar: f::AddScalar::DEF, reversed: f::RSubScalar::DEF, number: |v| -v };
pub(crate) static MUL: Operator =
    Operator { two: f::Mul2::DEF, scalar: f::MulScalar::DEF, reversed: f::MulScalar::DEF, number: |v| v };
pub(crate) static DIV: Operator =
    Operator { two: f::Div2::DEF, scalar: f::MulScalar::DEF, reversed: f::RDivScalar::DEF, number: |v| 1.0 / v };
pub(crate) static POW: Operator =
    Operator { two: f::Pow2::DEF, scalar: f::PowScalar::DEF, reversed: f::RPowScalar::DEF, number: |v| v };

/// The other side of an operator.
enum PyOperand {
    Array,
    Number(f64),
    Other,
}

/// Tells arrays first: a 0-d Variable can be made a float too, but its value is not known yet.
fn operand(value: &Bound<'_, PyAny>) -> PyOperand {
    if value.is_instance_of::<PyVariable>() || value.is_instance_of::<PyNdArray>() {
        return PyOperand::Array;
    }
    let is_number = value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() || is_numpy_number(value);
    match is_number.then(|| value.extract()) {
        Some(Ok(v)) => PyOperand::Number(v),
        _ => PyOperand::Other,
    }
}

/// Numbers and 0-d arrays of NumPy's.
fn is_numpy_number(value: &Bound<'_, PyAny>) -> bool {
    value.getattr(word!(value.py(), "ndim")).is_ok_and(|n| n.extract::<usize>().is_ok_and(|n| n == 0))
}

/// `a op b` where `a` is a Variable or NdArray.
pub(crate) fn apply<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>, op: &Operator) -> PyResult<Bound<'py, PyAny>> {
    match operand(b) {
        PyOperand::Number(v) => with_number(a, op.scalar, (op.number)(v)),
        PyOperand::Array => with_array(a, op.two, b),
        PyOperand::Other => refuse(b, op),
    }
}

/// NumPy would take a Variable for its values and forget the graph: its arrays are refused, anything else may know better.
fn refuse<'py>(value: &Bound<'py, PyAny>, op: &Operator) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    if value.hasattr(word!(py, "__array_interface__"))? {
        let expected = "a Variable, NdArray or number (Variable.from_numpy_array makes one of a NumPy array)";
        return Err(super::errors::wrong_type(py, op.two.snake, "other", expected, super::errors::type_name(value)));
    }
    Ok(py.NotImplemented().into_bound(py))
}

/// `b op a` where `b` is a number.
pub(crate) fn reversed<'py>(
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    op: &Operator,
) -> PyResult<Bound<'py, PyAny>> {
    match operand(b) {
        PyOperand::Number(v) => with_number(a, op.reversed, v),
        _ => refuse(b, op),
    }
}

pub(crate) fn negative<'py>(a: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    with_number(a, f::MulScalar::DEF, -1.0)
}

fn with_number<'py>(a: &Bound<'py, PyAny>, def: &Def, v: f64) -> PyResult<Bound<'py, PyAny>> {
    let py = a.py();
    call::operator(py, def, &PyTuple::new(py, [a])?, Some(v))
}

fn with_array<'py>(a: &Bound<'py, PyAny>, def: &Def, b: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = a.py();
    call::operator(py, def, &PyTuple::new(py, [a, b])?, None)
}

/// `a op= b` of an NdArray: the result goes into `a`'s memory.
pub(crate) fn assign(a: &Bound<'_, PyNdArray>, b: &Bound<'_, PyAny>, op: &Operator) -> PyResult<()> {
    let py = a.py();
    let result = apply(a.as_any(), b, op)?;
    let Ok(result) = result.cast::<PyNdArray>() else {
        return Err(super::errors::wrong_type(
            py,
            op.two.snake,
            "other",
            "an NdArray or a number",
            super::errors::type_name(b),
        ));
    };
    super::errors::run(py, || a.get().inner().copy_from(result.get().inner()))
}

/// Calls a function of `nnrs._indexing`.
pub(crate) fn indexing<'py>(py: Python<'py>, name: &str, given: impl PyCallArgs<'py>) -> PyResult<Bound<'py, PyAny>> {
    finish::calling(py, || py.import("nnrs._indexing")?.call_method1(name, given))
}

pub(crate) fn matmul<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    indexing(a.py(), "matmul", (a, b))
}

/// Comparisons give arrays, but equality with something that is no array is identity.
pub(crate) fn compare<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>, op: CompareOp) -> PyResult<Bound<'py, PyAny>> {
    let (two, scalar) = match op {
        CompareOp::Lt => (f::Less::DEF, f::LessScalar::DEF),
        CompareOp::Le => (f::LessEqual::DEF, f::LessEqualScalar::DEF),
        CompareOp::Gt => (f::Greater::DEF, f::GreaterScalar::DEF),
        CompareOp::Ge => (f::GreaterEqual::DEF, f::GreaterEqualScalar::DEF),
        CompareOp::Eq => (f::Equal::DEF, f::EqualScalar::DEF),
        CompareOp::Ne => (f::NotEqual::DEF, f::NotEqualScalar::DEF),
    };
    let made = match operand(b) {
        PyOperand::Number(v) => with_number(a, scalar, v)?,
        PyOperand::Array => with_array(a, two, b)?,
        PyOperand::Other => return Ok(a.py().NotImplemented().into_bound(a.py())),
    };
    if let Ok(v) = made.cast::<PyVariable>() {
        v.get().is_comparison.store(true, Relaxed);
    } else if let Ok(v) = made.cast::<PyNdArray>() {
        v.get().is_comparison.store(true, Relaxed);
    }
    Ok(made)
}

/// What Python's question for the truth of a comparison is told.
pub(crate) fn no_truth(py: Python<'_>) -> PyErr {
    let e = Error::new(ErrorKind::Type, "a comparison is made for each element, and has no truth as a whole");
    super::errors::raise(py, e.hint("compare .d or .data, and ask NumPy's all() or any()"))
}

macro_rules! arithmetic {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            fn __add__<'py>(slf: &Bound<'py, $class>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::python::operators::apply(slf.as_any(), other, &$crate::python::operators::ADD)
            }
            fn __radd__<'py>(slf: &Bound<'py, $class>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::python::operators::reversed(slf.as_any(), other, &$crate::python::operators::ADD)
            }
            fn __sub__<'py>(slf: &Bound<'py, $class>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::python::operators::apply(slf.as_any(), other, &$crate::python::operators::SUB)
            }
            fn __rsub__<'py>(slf: &Bound<'py, $class>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::python::operators::reversed(slf.as_any(), other, &$crate::python::operators::SUB)
            }
            fn __mul__<'py>(slf: &Bound<'py, $class>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::python::operators::apply(slf.as_any(), other, &$crate::python::operators::MUL)
            }
            fn __rmul__<'py>(slf: &Bound<'py, $class>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::python::operators::reversed(slf.as_any(), other, &$crate::python::operators::MUL)
            }
            fn __truediv__<'py>(slf: &Bound<'py, $class>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::python::operators::apply(slf.as_any(), other, &$crate::python::operators::DIV)
            }
            fn __rtruediv__<'py>(slf: &Bound<'py, $class>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::python::operators::reversed(slf.as_any(), other, &$crate::python::operators::DIV)
            }
            fn __pow__<'py>(
                slf: &Bound<'py, $class>,
                other: &Bound<'py, PyAny>,
                modulo: Option<&Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                if modulo.is_some_and(|m| !m.is_none()) {
                    return Ok(slf.py().NotImplemented().into_bound(slf.py()));
                }
                $crate::python::operators::apply(slf.as_any(), other, &$crate::python::operators::POW)
            }
            fn __rpow__<'py>(
                slf: &Bound<'py, $class>,
                other: &Bound<'py, PyAny>,
                modulo: Option<&Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let _ = modulo;
                $crate::python::operators::reversed(slf.as_any(), other, &$crate::python::operators::POW)
            }
            fn __matmul__<'py>(slf: &Bound<'py, $class>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::python::operators::matmul(slf.as_any(), other)
            }
            fn __getitem__<'py>(slf: &Bound<'py, $class>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::python::operators::indexing(slf.py(), "getitem", (slf, key))
            }
            fn __setitem__(slf: &Bound<'_, $class>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
                $crate::python::operators::indexing(slf.py(), "setitem", (slf, key, value)).map(drop)
            }
            fn __neg__<'py>(slf: &Bound<'py, $class>) -> PyResult<Bound<'py, PyAny>> {
                $crate::python::operators::negative(slf.as_any())
            }
            fn __pos__<'py>(slf: Bound<'py, $class>) -> Bound<'py, $class> {
                slf
            }
        }
    };
}

macro_rules! in_place {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            fn __iadd__(slf: &Bound<'_, $class>, other: &Bound<'_, PyAny>) -> PyResult<()> {
                $crate::python::operators::assign(slf, other, &$crate::python::operators::ADD)
            }
            fn __isub__(slf: &Bound<'_, $class>, other: &Bound<'_, PyAny>) -> PyResult<()> {
                $crate::python::operators::assign(slf, other, &$crate::python::operators::SUB)
            }
            fn __imul__(slf: &Bound<'_, $class>, other: &Bound<'_, PyAny>) -> PyResult<()> {
                $crate::python::operators::assign(slf, other, &$crate::python::operators::MUL)
            }
            fn __itruediv__(slf: &Bound<'_, $class>, other: &Bound<'_, PyAny>) -> PyResult<()> {
                $crate::python::operators::assign(slf, other, &$crate::python::operators::DIV)
            }
            fn __ipow__(
                slf: &Bound<'_, $class>,
                other: &Bound<'_, PyAny>,
                modulo: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<()> {
                let _ = modulo;
                $crate::python::operators::assign(slf, other, &$crate::python::operators::POW)
            }
        }
    };
}

/// Operators that arrays do not have. Left out they would be tried on the other side, where NumPy takes an array for its
/// values and gives one of its own, which the assigning forms would bind to the name.
macro_rules! refused {
    ($class:ident) => {
        $crate::python::operators::refused!($class: __mod__ __rmod__ __floordiv__ __rfloordiv__ __divmod__ __rdivmod__);
        $crate::python::operators::refused!($class: __lshift__ __rlshift__ __rshift__ __rrshift__ __and__ __rand__);
        $crate::python::operators::refused!($class: __or__ __ror__ __xor__ __rxor__);
    };
    ($class:ident: $($name:ident)*) => {
        #[pymethods]
        impl $class {
            $(fn $name(slf: &Bound<'_, $class>, other: &Bound<'_, PyAny>) -> PyResult<()> {
                $crate::python::operators::unknown(slf.as_any(), other, stringify!($name))
            })*
        }
    };
}

/// The error for an operator that arrays do not have.
pub(crate) fn unknown(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>, name: &str) -> PyResult<()> {
    let (mine, other) = (super::errors::type_name(a), super::errors::type_name(b));
    let e = Error::new(
        ErrorKind::Type,
        format!("{mine} has no operator {} (the other side is {other})", name.trim_matches('_')),
    );
    Err(super::errors::raise(a.py(), e.hint("work on .data, a NumPy array, or with nnrs.functions")))
}

pub(crate) use {arithmetic, in_place, refused};
