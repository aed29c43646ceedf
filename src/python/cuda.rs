//! The CUDA C source of element-wise functions.

use super::errors;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind};
use crate::function::{expr::cuda, find};
use pyo3::prelude::*;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(cuda_source, m)?)
}

/// The kernels of function `name` with default arguments for arrays of `dtype`; None where the function is no formula.
#[pyfunction]
fn cuda_source(py: Python<'_>, name: &str, dtype: &str) -> PyResult<Option<String>> {
    errors::run(py, || {
        let def = find(name).ok_or_else(|| Error::arg("name", "a function's name").actual(name))?;
        let float = || Error::new(ErrorKind::Dtype, "a float type").argument("dtype").actual(dtype);
        cuda::source(def, DType::from_name(dtype).ok_or_else(float)?)
    })
}
