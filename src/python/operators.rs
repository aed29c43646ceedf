//! Operators of Variable and NdArray: arrays, variables and numbers on both sides.

use super::array::NdArray;
use super::call;
use super::variable::Variable;
use crate::function::{Function, find};
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyTuple};
use std::sync::Arc;

/// An operator's functions: of two arrays, of an array and a number, and of a number and an array.
pub(crate) struct Operator {
    pub(crate) two: &'static str,
    pub(crate) scalar: &'static str,
    pub(crate) reversed: &'static str,
    /// Applied to the number before `scalar` (subtraction adds the negative, division multiplies by the inverse).
    pub(crate) number: fn(f64) -> f64,
}

fn same(v: f64) -> f64 {
    v
}

fn negated(v: f64) -> f64 {
    -v
}

fn inverse(v: f64) -> f64 {
    1.0 / v
}

pub(crate) static ADD: Operator = Operator { two: "add2", scalar: "add_scalar", reversed: "add_scalar", number: same };
pub(crate) static SUB: Operator =
    Operator { two: "sub2", scalar: "add_scalar", reversed: "r_sub_scalar", number: negated };
pub(crate) static MUL: Operator = Operator { two: "mul2", scalar: "mul_scalar", reversed: "mul_scalar", number: same };
pub(crate) static DIV: Operator =
    Operator { two: "div2", scalar: "mul_scalar", reversed: "r_div_scalar", number: inverse };
pub(crate) static POW: Operator =
    Operator { two: "pow2", scalar: "pow_scalar", reversed: "r_pow_scalar", number: same };

fn number(value: &Bound<'_, PyAny>) -> Option<f64> {
    if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() {
        return value.extract().ok();
    }
    let is_numpy_number = value.hasattr("__float__").unwrap_or(false)
        && value.getattr("ndim").is_ok_and(|n| n.extract::<usize>().is_ok_and(|n| n == 0));
    if is_numpy_number { value.extract().ok() } else { None }
}

fn is_array(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<Variable>() || value.is_instance_of::<NdArray>()
}

/// `a op b` where `a` is a Variable or NdArray.
pub(crate) fn apply<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>, op: &Operator) -> PyResult<Bound<'py, PyAny>> {
    let py = a.py();
    if let Some(v) = number(b) {
        return with_number(a, op.scalar, (op.number)(v));
    }
    match is_array(b) {
        true => call::by_name(py, op.two, &PyTuple::new(py, [a, b])?, None),
        false => Ok(py.NotImplemented().into_bound(py)),
    }
}

/// `b op a` where `b` is a number.
pub(crate) fn reversed<'py>(
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    op: &Operator,
) -> PyResult<Bound<'py, PyAny>> {
    match number(b) {
        Some(v) => with_number(a, op.reversed, v),
        None => Ok(a.py().NotImplemented().into_bound(a.py())),
    }
}

pub(crate) fn with_number<'py>(a: &Bound<'py, PyAny>, name: &str, v: f64) -> PyResult<Bound<'py, PyAny>> {
    let py = a.py();
    call::by_name(py, name, &PyTuple::new(py, [a])?, Some(v))
}

/// `a op= b` of an NdArray: the result goes into `a`'s memory.
pub(crate) fn assign(a: &Bound<'_, NdArray>, b: &Bound<'_, PyAny>, op: &Operator) -> PyResult<()> {
    let py = a.py();
    let result = apply(a.as_any(), b, op)?;
    let Ok(result) = result.cast::<NdArray>() else {
        return Err(super::errors::wrong_type(
            py,
            op.two,
            "other",
            "an NdArray or a number",
            super::errors::type_name(b),
        ));
    };
    let dtype = a.get().inner().dtype();
    super::errors::run(py, || {
        a.get().inner().copy_from(result.get().inner())?;
        if dtype.is_float() { a.get().inner().cast(dtype) } else { Ok(()) }
    })
}

pub(crate) fn matmul<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    a.py().import("nnrs._indexing")?.call_method1("matmul", (a, b))
}

/// Comparisons give arrays, but equality with something that is no array is identity.
pub(crate) fn compare<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>, op: CompareOp) -> PyResult<Bound<'py, PyAny>> {
    let py = a.py();
    let (two, scalar) = match op {
        CompareOp::Lt => ("less", "less_scalar"),
        CompareOp::Le => ("less_equal", "less_equal_scalar"),
        CompareOp::Gt => ("greater", "greater_scalar"),
        CompareOp::Ge => ("greater_equal", "greater_equal_scalar"),
        CompareOp::Eq => ("equal", "equal_scalar"),
        CompareOp::Ne => ("not_equal", "not_equal_scalar"),
    };
    match (number(b), is_array(b)) {
        (Some(v), _) => with_number(a, scalar, v),
        (_, true) => call::by_name(py, two, &PyTuple::new(py, [a, b])?, None),
        _ => Ok(py.NotImplemented().into_bound(py)),
    }
}

/// Builds a function by name with at most one number as argument.
pub(crate) fn build(name: &str, val: Option<f64>) -> crate::Result<Arc<dyn Function>> {
    let def = find(name).ok_or_else(|| crate::Error::unsupported(format!("there is no function {name}")))?;
    let values = val.map(|v| ("val", crate::function::ArgValue::Float(v))).into_iter().collect();
    (def.build)(&mut crate::function::Args::new(values))
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
                let _ = modulo;
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
            fn __neg__<'py>(slf: &Bound<'py, $class>) -> PyResult<Bound<'py, PyAny>> {
                $crate::python::operators::with_number(slf.as_any(), "mul_scalar", -1.0)
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

pub(crate) use {arithmetic, in_place};
