//! Parameter files: the safetensors part of `nnrs._files`, which makes them atomic and knows what is in them.

use super::{convert, errors};
use crate::dtype::DType;
use crate::io::safetensors::{self, Elements, Notes, Part};
use crate::shape::Shape;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::fs::File;
use std::path::PathBuf;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(save_safetensors, m)?)?;
    m.add_function(wrap_pyfunction!(load_safetensors, m)?)
}

type Given<'py> = (String, String, Vec<usize>, Bound<'py, PyAny>);

/// Writes tensors `(name, kind, shape, bytes)` to a file, in order.
#[pyfunction]
fn save_safetensors(py: Python<'_>, path: PathBuf, tensors: Vec<Given<'_>>, metadata: Notes) -> PyResult<()> {
    let bytes = |t: &Given| -> PyResult<crate::array::Data> {
        let a = convert::from_numpy("save_safetensors", "tensors", &t.3)?;
        errors::run(py, || a.read(DType::U8))
    };
    let data = tensors.iter().map(bytes).collect::<PyResult<Vec<_>>>()?;
    let part = |(t, d): (&'_ Given, &'_ crate::array::Data)| (t.0.clone(), t.1.clone(), t.2.clone(), d.clone());
    let parts: Vec<_> = tensors.iter().zip(&data).map(part).collect();
    errors::detached(py, || {
        let parts: Vec<Part> =
            parts.iter().map(|(name, kind, shape, d)| Part { name, kind, shape, bytes: d.as_slice::<u8>() }).collect();
        safetensors::write(&mut File::create(&path)?, &parts, &metadata)
    })
}

type Loaded<'py> = (String, String, Bound<'py, PyTuple>, Bound<'py, PyAny>);

/// Tensors `(name, kind, shape, bytes)` and metadata of a file.
#[pyfunction]
fn load_safetensors(py: Python<'_>, path: PathBuf) -> PyResult<(Vec<Loaded<'_>>, Notes)> {
    let (tensors, notes) = errors::detached(py, || safetensors::read(&path, Elements::Raw))?;
    let give = |t: safetensors::Tensor| -> PyResult<Loaded<'_>> {
        let data = errors::run(py, || t.array.modify(DType::U8))?;
        let bytes = convert::to_numpy(py, data, Shape::from([t.array.size()]))?;
        Ok((t.name, t.kind, convert::tuple(py, &t.shape)?, bytes))
    };
    Ok((tensors.into_iter().map(give).collect::<PyResult<_>>()?, notes))
}
