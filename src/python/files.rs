//! Parameter files for python/nnrs/_files.py.

use super::array::PyNdArray;
use super::variable::PyVariable;
use super::{convert, errors};
use crate::graph::Variable as Var;
use crate::io::hdf5::{self, Attribute};
use crate::io::nnabla::bytes_of;
use crate::io::safetensors::{Elements, Notes, Part, read_open, write};
use crate::io::{self, open, temporary};
use crate::parameter;
use nnrs_kernels::array::NdArray as Array;
use nnrs_kernels::dtype::DType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(temporary_beside, m)?)?;
    m.add_function(wrap_pyfunction!(flush_file, m)?)?;
    m.add_function(wrap_pyfunction!(flush_folder, m)?)?;
    m.add_function(wrap_pyfunction!(save_safetensors, m)?)?;
    m.add_function(wrap_pyfunction!(load_safetensors, m)?)?;
    m.add_function(wrap_pyfunction!(check_parameter_names, m)?)?;
    m.add_function(wrap_pyfunction!(write_parameters, m)?)?;
    m.add_function(wrap_pyfunction!(read_parameters, m)?)?;
    m.add_function(wrap_pyfunction!(read_hdf5, m)?)?;
    m.add_function(wrap_pyfunction!(write_hdf5, m)?)?;
    m.add_function(wrap_pyfunction!(set_parameters, m)?)?;
    m.add_function(wrap_pyfunction!(stage_parameters, m)?)?;
    m.add_function(wrap_pyfunction!(put_parameters, m)?)
}

/// Refuses names that cannot stand in one tree.
#[pyfunction]
fn check_parameter_names(py: Python<'_>, function: &str, argument: &str, names: Vec<String>) -> PyResult<()> {
    let check = || parameter::check_names(names.iter().map(String::as_str));
    errors::run_as(py, function, || check().map_err(|e| e.argument(argument)))
}

/// Writes parameters in place, in the order given.
#[pyfunction]
fn write_parameters(
    py: Python<'_>,
    path: PathBuf,
    names: Vec<String>,
    variables: Vec<PyRef<'_, PyVariable>>,
) -> PyResult<()> {
    let all: Vec<(String, Var)> = names.into_iter().zip(variables.iter().map(|v| v.var().clone())).collect();
    errors::detached(py, || parameter::write_to(&mut File::create(&path)?, &all))
}

/// Name, values, `need_grad`.
pub(super) type NamedParameter = (String, PyNdArray, bool);

/// Reads all parameters, in the order in which they were made.
#[pyfunction]
fn read_parameters(py: Python<'_>, path: PathBuf) -> PyResult<Vec<NamedParameter>> {
    let read = || parameter::read_from(&mut open(&path)?);
    let records = errors::detached(py, read).map_err(|e| plain(py, e))?;
    Ok(records.into_iter().map(|r| (r.name, PyNdArray::new(r.array), r.need_grad)).collect())
}

type GivenParameter<'py> = (String, PyRef<'py, PyNdArray>, bool);

fn records_of(given: Vec<GivenParameter<'_>>) -> Vec<parameter::Record> {
    let record =
        |(name, a, need_grad): GivenParameter<'_>| parameter::Record { name, array: a.inner().clone(), need_grad };
    given.into_iter().map(record).collect()
}

/// Puts parameters into the current scope; if one of them does not fit, none.
#[pyfunction]
fn set_parameters(py: Python<'_>, function: &str, records: Vec<GivenParameter<'_>>) -> PyResult<()> {
    let records = records_of(records);
    errors::run_as(py, function, || parameter::set_all(records))
}

/// The Variables that parameters of a file will be in the current scope, which does not change, and whether they are new.
#[pyfunction]
fn stage_parameters(
    py: Python<'_>,
    function: &str,
    records: Vec<GivenParameter<'_>>,
) -> PyResult<Vec<(PyVariable, bool)>> {
    let records = records_of(records);
    let staged = errors::run_as(py, function, || parameter::stage_all(records))?;
    Ok(staged.into_iter().map(|s| (PyVariable::new(s.variable), s.is_new)).collect())
}

/// Name, Variable, whether it is new; values and `need_grad` where a file has them.
type ParameterToPut<'py> = (String, PyRef<'py, PyVariable>, bool, Option<(PyRef<'py, PyNdArray>, bool)>);

/// Puts Variables into the current scope, and the values of a file into them; if one of them does not fit, none.
#[pyfunction]
fn put_parameters(py: Python<'_>, function: &str, parameters: Vec<ParameterToPut<'_>>) -> PyResult<()> {
    let staged = |(name, v, is_new, values): ParameterToPut<'_>| parameter::Staged {
        name,
        variable: v.var().clone(),
        is_new,
        values: values.map(|(a, need_grad)| (a.inner().clone(), need_grad)),
    };
    let all = parameters.into_iter().map(staged).collect();
    errors::run_as(py, function, || parameter::put_all(all))
}

type AttributesAsDict = BTreeMap<String, Option<f64>>;

/// Where a file is, or what it holds.
#[derive(FromPyObject)]
enum PathOrBytes {
    Bytes(Vec<u8>),
    Path(PathBuf),
}

/// The arrays of an HDF5 file with their attributes, and the attributes of its groups.
#[pyfunction]
fn read_hdf5(
    py: Python<'_>,
    source: PathOrBytes,
) -> PyResult<(Vec<(String, PyNdArray, AttributesAsDict)>, BTreeMap<String, AttributesAsDict>)> {
    let read = || match &source {
        PathOrBytes::Bytes(bytes) => hdf5::read(bytes),
        PathOrBytes::Path(path) => hdf5::read(&bytes_of(path)?),
    };
    let found = errors::detached(py, read).map_err(|e| plain(py, e))?;
    let dataset = |d: hdf5::Dataset| (d.name, PyNdArray::new(d.array), d.attributes.into_iter().collect());
    let group = |(name, attributes): (String, hdf5::Attributes)| (name, attributes.into_iter().collect());
    Ok((found.datasets.into_iter().map(dataset).collect(), found.groups.into_iter().map(group).collect()))
}

/// Writes arrays, each with an attribute `index` if it is not below 0, and groups with attributes, in place.
#[pyfunction]
fn write_hdf5(
    py: Python<'_>,
    path: PathBuf,
    datasets: Vec<(String, PyRef<'_, PyNdArray>, i64)>,
    groups: Vec<(String, String, i64)>,
) -> PyResult<()> {
    let index = |i: i64| if i < 0 { vec![] } else { vec![("index", Attribute::Int(i))] };
    let datasets: Vec<_> = datasets.into_iter().map(|(name, a, i)| (name, a.inner().clone(), index(i))).collect();
    errors::detached(py, || {
        let group = |i: usize| (groups[i].0.clone(), vec![(groups[i].1.as_str(), Attribute::Int(groups[i].2))]);
        let own: Vec<hdf5::GroupAttributes> = (0..groups.len()).map(group).collect();
        let mut file = BufWriter::new(File::create(&path)?);
        hdf5::write(&mut file, &datasets, &own)?;
        Ok(file.flush()?)
    })
}

/// The file that a path means, and a new name in its folder for what will replace it; what ended processes left there is removed.
#[pyfunction]
fn temporary_beside(path: PathBuf) -> (PathBuf, PathBuf) {
    let target = temporary::target(&path);
    let beside = temporary::beside(&target);
    (target, beside)
}

/// Pushes a file to the disk.
#[pyfunction]
fn flush_file(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    errors::detached(py, || Ok(OpenOptions::new().write(true).open(&path)?.sync_all()?))
}

/// Pushes the names in a folder to the disk, where the system can.
#[pyfunction]
fn flush_folder(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    errors::detached(py, || {
        io::flush_folder(&path);
        Ok(())
    })
}

/// Name, type, shape, and bytes as a NumPy array.
type TensorToSave<'py> = (String, String, Vec<usize>, Bound<'py, PyAny>);
type LoadedTensor<'py> = (String, String, Bound<'py, PyTuple>, Bound<'py, PyAny>);

/// Writes tensors in place, in the order given.
#[pyfunction]
fn save_safetensors(py: Python<'_>, path: PathBuf, tensors: Vec<TensorToSave<'_>>, metadata: Notes) -> PyResult<()> {
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

/// A broken file as a plain ValueError: _files.py says which file it was, and which function reads it.
pub(super) fn plain(py: Python<'_>, e: PyErr) -> PyErr {
    if e.is_instance_of::<PyValueError>(py) { PyValueError::new_err(e.value(py).to_string()) } else { e }
}

/// Reads tensors and metadata.
#[pyfunction]
fn load_safetensors(py: Python<'_>, path: PathBuf) -> PyResult<(Vec<LoadedTensor<'_>>, Notes)> {
    let (tensors, notes) =
        errors::detached(py, || read_open(&mut open(&path)?, Elements::Raw)).map_err(|e| plain(py, e))?;
    let bytes = |a: &Array| errors::run(py, || a.read(DType::U8));
    let found = tensors.into_iter().map(|t| {
        let raw = convert::to_numpy(py, bytes(&t.array)?, t.array.shape())?;
        Ok((t.name, t.kind, convert::tuple(py, &t.shape)?, raw))
    });
    Ok((found.collect::<PyResult<_>>()?, notes))
}
