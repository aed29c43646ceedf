//! NNabla's files and messages for python/nnrs/_messages.py, _files.py and utils/. A message crosses as a dict of its fields.

use super::array::PyNdArray;
use super::files::{self, NamedParameter};
use super::function::PyGraphFunction;
use super::variable::PyVariable;
use super::{convert, errors};
use crate::graph::Variable as Var;
use crate::io::nnabla::{
    self as nnp, Build, FieldKind, FieldSpec, FieldValue, Format, Message, Network, NetworkToSave, NnpToSave,
};
use nnrs_kernels::array::NdArray as Array;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(message_fields, m)?)?;
    m.add_function(wrap_pyfunction!(message_names, m)?)?;
    m.add_function(wrap_pyfunction!(decode_message, m)?)?;
    m.add_function(wrap_pyfunction!(encode_message, m)?)?;
    m.add_function(wrap_pyfunction!(parse_message, m)?)?;
    m.add_function(wrap_pyfunction!(print_message, m)?)?;
    m.add_function(wrap_pyfunction!(read_nnabla, m)?)?;
    m.add_function(wrap_pyfunction!(read_nnabla_file, m)?)?;
    m.add_function(wrap_pyfunction!(write_nnabla, m)?)?;
    m.add_function(wrap_pyfunction!(record_network, m)?)?;
    m.add_function(wrap_pyfunction!(record_function, m)?)?;
    m.add_function(wrap_pyfunction!(open_batch, m)?)?;
    m.add_function(wrap_pyfunction!(expand_network, m)?)?;
    m.add_function(wrap_pyfunction!(build_network, m)?)
}

/// The names of all messages.
#[pyfunction]
fn message_names() -> Vec<&'static str> {
    nnp::schema::messages().iter().map(|m| m.name.as_str()).collect()
}

/// Number, name, kind ("int", "float", "flag", "text" or a message's name), whether it is a list, whether it is one of a group.
type FieldAsTuple = (u64, &'static str, &'static str, bool, bool);

/// The fields of a message.
#[pyfunction]
fn message_fields(py: Python<'_>, name: &str) -> PyResult<Vec<FieldAsTuple>> {
    let spec = errors::run(py, || Message::new(name))?.spec();
    let kind = |f: &'static FieldSpec| match f.kind {
        FieldKind::Int | FieldKind::Count => "int",
        FieldKind::Float | FieldKind::Double => "float",
        FieldKind::Flag => "flag",
        FieldKind::Text => "text",
        FieldKind::Message(of) => nnp::schema::messages()[of].name.as_str(),
    };
    Ok(spec.fields.iter().map(|f| (f.number, f.name.as_str(), kind(f), f.repeated, f.one_of)).collect())
}

type MessageDict<'py> = Bound<'py, PyDict>;

fn to_python<'py>(py: Python<'py>, message: &Message) -> PyResult<MessageDict<'py>> {
    let dict = PyDict::new(py);
    for (spec, value) in message.fields() {
        let object = match value {
            FieldValue::Int(n) if spec.kind == FieldKind::Flag => (*n != 0).into_pyobject(py)?.to_owned().into_any(),
            FieldValue::Int(n) => n.into_pyobject(py)?.into_any(),
            FieldValue::Number(n) => n.into_pyobject(py)?.into_any(),
            FieldValue::Text(text) => PyString::new(py, text).into_any(),
            FieldValue::Message(m) => to_python(py, m)?.into_any(),
            FieldValue::Ints(list) => PyList::new(py, list)?.into_any(),
            FieldValue::Texts(list) => PyList::new(py, list)?.into_any(),
            FieldValue::Floats(list) => {
                let array = errors::run(py, || Array::from_slice(list, [list.len()].into()))?;
                let data = errors::run(py, || array.read(DType::F32))?;
                convert::to_numpy(py, data, array.shape())?
            }
            FieldValue::Messages(list) => {
                let items = list.iter().map(|m| to_python(py, m)).collect::<PyResult<Vec<_>>>()?;
                PyList::new(py, items)?.into_any()
            }
        };
        dict.set_item(&spec.name, object)?;
    }
    Ok(dict)
}

fn from_python(name: &str, dict: &MessageDict<'_>) -> PyResult<Message> {
    let py = dict.py();
    let mut message = errors::run(py, || Message::new(name))?;
    for (key, value) in dict.iter() {
        let key: String = key.extract()?;
        let unknown = || errors::raise(py, Error::arg("message", format!("a field of '{name}'")).actual(&key));
        let field = message.spec().find(&key).ok_or_else(unknown)?;
        let spec = &message.spec().fields[field];
        let wrong = |e: PyErr| {
            let text =
                || errors::wrong_type(py, name, &key, "a value that the field can hold", errors::describe(&value));
            errors::instead(py, e, text)
        };
        let value = value_of(spec, &value).map_err(wrong)?;
        message.set(&key, value);
    }
    Ok(message)
}

fn value_of(spec: &FieldSpec, value: &Bound<'_, PyAny>) -> PyResult<FieldValue> {
    let py = value.py();
    Ok(match (spec.kind, spec.repeated) {
        (FieldKind::Message(kind), repeated) => {
            let name = nnp::schema::messages()[kind].name.as_str();
            match repeated {
                false => FieldValue::Message(from_python(name, value.cast::<PyDict>()?)?),
                true => {
                    let items = value.try_iter()?.map(|m| from_python(name, m?.cast::<PyDict>()?));
                    FieldValue::Messages(items.collect::<PyResult<_>>()?)
                }
            }
        }
        (FieldKind::Text, false) => FieldValue::Text(value.extract()?),
        (FieldKind::Text, true) => FieldValue::Texts(value.extract()?),
        (FieldKind::Float | FieldKind::Double, true) => {
            let array = convert::from_numpy("message", &spec.name, value)?;
            FieldValue::Floats(errors::run(py, || array.to_vec::<f32>())?)
        }
        (FieldKind::Float, false) => FieldValue::Number(f64::from(value.extract::<f64>()? as f32)),
        (FieldKind::Double, false) => FieldValue::Number(value.extract()?),
        (FieldKind::Flag, false) => FieldValue::Int(value.is_truthy()?.into()),
        (FieldKind::Count, false) => FieldValue::Int(value.extract::<u32>()?.into()),
        (FieldKind::Int, false) => FieldValue::Int(value.extract()?),
        (_, true) => FieldValue::Ints(value.extract()?),
    })
}

/// Reads a message from protobuf's bytes.
#[pyfunction]
fn decode_message<'py>(py: Python<'py>, name: &str, data: &[u8]) -> PyResult<MessageDict<'py>> {
    let spec = errors::run(py, || Message::new(name))?.spec();
    let message = errors::run(py, || nnp::binary::decode(spec, data)).map_err(|e| files::plain(py, e))?;
    to_python(py, &message)
}

/// Writes a message as protobuf's bytes.
#[pyfunction]
fn encode_message<'py>(py: Python<'py>, name: &str, message: &MessageDict<'py>) -> PyResult<Bound<'py, PyBytes>> {
    let message = from_python(name, message)?;
    Ok(PyBytes::new(py, &errors::run(py, || nnp::binary::encode(&message))?))
}

/// Reads a message from protobuf's text format.
#[pyfunction]
fn parse_message<'py>(py: Python<'py>, name: &str, text: &str) -> PyResult<MessageDict<'py>> {
    let spec = errors::run(py, || Message::new(name))?.spec();
    let message = errors::run(py, || nnp::text::parse(spec, text)).map_err(|e| files::plain(py, e))?;
    to_python(py, &message)
}

/// Writes a message in protobuf's text format.
#[pyfunction]
fn print_message(name: &str, message: &MessageDict<'_>) -> PyResult<String> {
    Ok(nnp::text::print(&from_python(name, message)?))
}

fn format(extension: &str) -> Result<Format> {
    let wanted = "'.nnp', '.nntxt', '.prototxt', '.protobuf' or '.h5'";
    Format::of(extension).ok_or_else(|| Error::arg("extension", wanted).actual(extension))
}

type StateFile<'py> = (String, Bound<'py, PyBytes>);
type ReadContents<'py> = (MessageDict<'py>, Vec<NamedParameter>, Vec<StateFile<'py>>);

fn contents<'py>(py: Python<'py>, read: impl FnOnce() -> Result<nnp::Contents> + Send) -> PyResult<ReadContents<'py>> {
    let found = errors::detached(py, read).map_err(|e| files::plain(py, e))?;
    let parameter = |(name, array, need_grad)| (name, PyNdArray::new(array), need_grad);
    let state = |(name, data): (String, Vec<u8>)| (name, PyBytes::new(py, &data));
    let message = to_python(py, &found.message)?;
    Ok((message, found.parameters.into_iter().map(parameter).collect(), found.states.into_iter().map(state).collect()))
}

/// Reads a file of NNabla's from its bytes: message, parameters, states of solvers.
#[pyfunction]
fn read_nnabla<'py>(py: Python<'py>, data: &[u8], extension: &str) -> PyResult<ReadContents<'py>> {
    let format = errors::run(py, || format(extension))?;
    contents(py, || nnp::read(data, format))
}

/// As `read_nnabla`, from a path.
#[pyfunction]
fn read_nnabla_file<'py>(py: Python<'py>, path: PathBuf, extension: &str) -> PyResult<ReadContents<'py>> {
    let format = errors::run(py, || format(extension))?;
    contents(py, || nnp::read(&nnp::bytes_of(&path)?, format))
}

fn named(names: Vec<String>, variables: &[PyRef<'_, PyVariable>]) -> Vec<(String, Var)> {
    names.into_iter().zip(variables.iter().map(|v| v.var().clone())).collect()
}

/// The bytes of a file of NNabla's.
#[pyfunction]
fn write_nnabla<'py>(
    py: Python<'py>,
    message: &MessageDict<'py>,
    names: Vec<String>,
    variables: Vec<PyRef<'_, PyVariable>>,
    extension: &str,
    parameter_format: &str,
    states: Vec<(String, Vec<u8>)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let message = from_python("NNablaProtoBuf", message)?;
    let parameters = named(names, &variables);
    let formats = errors::run(py, || Ok((format(extension)?, format(parameter_format)?)))?;
    let save = NnpToSave { message: &message, parameters: &parameters, parameter_format: formats.1, states: &states };
    Ok(PyBytes::new(py, &errors::detached(py, || nnp::write(&save, formats.0))?))
}

/// The graph behind some variables as a network.
#[pyfunction]
fn record_network<'py>(
    py: Python<'py>,
    function: &str,
    name: &str,
    batch_size: i64,
    outputs: Vec<PyRef<'_, PyVariable>>,
    names: Vec<(String, PyRef<'_, PyVariable>)>,
    parameters: Vec<(String, PyRef<'_, PyVariable>)>,
    variable_batch_size: bool,
) -> PyResult<MessageDict<'py>> {
    let outputs: Vec<Var> = outputs.iter().map(|v| v.var().clone()).collect();
    let list = |all: Vec<(String, PyRef<'_, PyVariable>)>| -> Vec<(String, Var)> {
        all.into_iter().map(|(name, v)| (name, v.var().clone())).collect()
    };
    let (names, parameters) = (list(names), list(parameters));
    let save = NetworkToSave {
        name,
        batch_size,
        outputs: &outputs,
        names: &names,
        parameters: &parameters,
        variable_batch_size,
    };
    to_python(py, &errors::run_as(py, function, || nnp::record(&save))?)
}

/// What a function of the graph is, with its arguments, as a message without names.
#[pyfunction]
fn record_function<'py>(py: Python<'py>, f: PyRef<'_, PyGraphFunction>) -> PyResult<MessageDict<'py>> {
    to_python(py, &errors::run(py, || nnp::function(f.inner()))?)
}

/// A network with its batch's size left open.
#[pyfunction]
fn open_batch<'py>(py: Python<'py>, function: &str, network: &MessageDict<'py>) -> PyResult<MessageDict<'py>> {
    let network = from_python("Network", network)?;
    to_python(py, &errors::run_as(py, function, || nnp::open_batch(network))?)
}

/// A network without loops.
#[pyfunction]
fn expand_network<'py>(py: Python<'py>, function: &str, network: &MessageDict<'py>) -> PyResult<MessageDict<'py>> {
    let network = from_python("Network", network)?;
    to_python(py, &errors::run_as(py, function, || nnp::expanded(&network))?)
}

type Variables = Vec<(String, PyVariable)>;

fn wrapped(list: Vec<(String, Var)>) -> Variables {
    list.into_iter().map(|(name, v)| (name, PyVariable::new(v))).collect()
}

/// The graph of a network: its inputs, outputs, variables and parameters by name.
#[pyfunction]
#[pyo3(signature = (function, network, batch_size, parameters, given, file="the file", frozen=HashSet::new()))]
fn build_network(
    py: Python<'_>,
    function: &str,
    network: &MessageDict<'_>,
    batch_size: Option<i64>,
    parameters: Vec<(String, PyRef<'_, PyVariable>)>,
    given: Vec<(String, PyRef<'_, PyVariable>)>,
    file: &str,
    frozen: HashSet<String>,
) -> PyResult<(Variables, Variables, Variables, Variables)> {
    let network = from_python("Network", network)?;
    let list = |all: Vec<(String, PyRef<'_, PyVariable>)>| -> HashMap<String, Var> {
        all.into_iter().map(|(name, v)| (name, v.var().clone())).collect()
    };
    let (parameters, given) = (list(parameters), list(given));
    let how = Build {
        file,
        batch_size,
        parameter: &|name| parameters.get(name).cloned(),
        given: &|name| given.get(name).cloned(),
        frozen: &|name| frozen.contains(name),
    };
    let made: Network = errors::run_as(py, function, || nnp::build(&network, &how))?;
    Ok((wrapped(made.inputs), wrapped(made.outputs), wrapped(made.variables), wrapped(made.parameters)))
}
