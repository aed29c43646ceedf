//! Parameter files for python/nnrs/_files.py.

use super::{convert, errors};
use crate::io::safetensors::{Elements, Notes, Part, read_open, write};
use nnrs_kernels::array::NdArray;
use nnrs_kernels::dtype::DType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::fs::File;
use std::path::PathBuf;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(temporary_beside, m)?)?;
    m.add_function(wrap_pyfunction!(save_safetensors, m)?)?;
    m.add_function(wrap_pyfunction!(load_safetensors, m)?)
}

/// A new name in the folder of a file, which another one will replace; what ended processes left there is removed.
#[pyfunction]
fn temporary_beside(path: PathBuf) -> PathBuf {
    crate::io::temporary::beside(&path)
}

/// Name, type, shape, and bytes as a NumPy array.
type Given<'py> = (String, String, Vec<usize>, Bound<'py, PyAny>);
type Found<'py> = (String, String, Bound<'py, PyTuple>, Bound<'py, PyAny>);

/// Writes tensors in place, in the order given.
#[pyfunction]
fn save_safetensors(py: Python<'_>, path: PathBuf, tensors: Vec<Given<'_>>, metadata: Notes) -> PyResult<()> {
    let (mut given, mut bytes) = (Vec::new(), Vec::new());
    for (name, kind, shape, raw) in tensors {
        given.push((name, kind, shape));
        bytes.push(convert::from_numpy("save_safetensors", "tensors", &raw)?);
    }
    errors::detached(py, || {
        let data = bytes.iter().map(|a| a.read(DType::U8)).collect::<crate::Result<Vec<_>>>()?;
        let slices = data.iter().map(|d| d.as_slice::<u8>());
        let parts: Vec<Part> = given.iter().zip(slices).map(part).collect();
        write(&mut File::create(&path)?, &parts, &metadata)
    })
}

fn part<'a>(((name, kind, shape), bytes): (&'a (String, String, Vec<usize>), &'a [u8])) -> Part<'a> {
    Part { name, kind, shape, bytes }
}

/// A broken file as a plain ValueError: _files.py says which file it was, and who reads it.
fn plain(py: Python<'_>, e: PyErr) -> PyErr {
    if e.is_instance_of::<PyValueError>(py) { PyValueError::new_err(e.value(py).to_string()) } else { e }
}

/// Reads tensors and metadata.
#[pyfunction]
fn load_safetensors(py: Python<'_>, path: PathBuf) -> PyResult<(Vec<Found<'_>>, Notes)> {
    let (tensors, notes) =
        errors::detached(py, || read_open(&mut File::open(&path)?, Elements::Raw)).map_err(|e| plain(py, e))?;
    let bytes = |a: &NdArray| errors::run(py, || a.read(DType::U8));
    let found = tensors.into_iter().map(|t| {
        let raw = convert::to_numpy(py, bytes(&t.array)?, t.array.shape())?;
        Ok((t.name, t.kind, convert::tuple(py, &t.shape)?, raw))
    });
    Ok((found.collect::<PyResult<_>>()?, notes))
}
