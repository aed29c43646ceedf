//! Parameters to and from files.

use super::{Item, add, current, find, get_all_parameters, parts, taken};
use crate::graph::Variable;
use crate::io::nnabla::{self, Contents, Format, Message, NnpToSave};
use crate::io::safetensors::{Elements, Notes, Part, Tensor, kind_of, read_open, write};
use crate::io::{open, write_atomically};
use nnrs_kernels::array::{Data, NdArray};
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::shape::Shape;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::path::Path;

const ORDER: &str = "nnrs.order";
const NEED_GRAD: &str = "nnrs.need_grad";

/// Writes all parameters of the current scope to a `.safetensors`, `.h5`, `.protobuf`, `.nntxt` or `.nnp` file, with their
/// order and `need_grad`. (`.protobuf` and `.nntxt` hold floats, whatever the parameters are.) The file is whole or not there:
/// it is written beside and renamed.
///
/// # Errors
/// A file of another kind; the file cannot be written.
///
/// ```
/// use nnrs::{initializer::Constant, parameter::*};
/// let path = std::env::temp_dir().join(format!("nnrs-doc-{}.safetensors", std::process::id()));
/// get_parameter_or_create("w", [2], &Constant(0.5), true)?;
/// save_parameters(&path)?;
/// clear_parameters();
/// load_parameters(&path)?;
/// assert_eq!(get_parameter("w").unwrap().to_vec::<f32>()?, [0.5, 0.5]);
/// std::fs::remove_file(&path)?;
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn save_parameters(path: impl AsRef<Path>) -> Result<()> {
    let (path, all) = (path.as_ref(), get_all_parameters());
    let saved = match format_of(path) {
        None if is_safetensors(path) => write_atomically(path, |file| write_to(file, &all)),
        None => Err(unknown_kind(path)),
        Some(format) => save_nnabla(path, format, &all),
    };
    saved.map_err(|e| e.function("save_parameters"))
}

fn is_safetensors(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "safetensors")
}

fn format_of(path: &Path) -> Option<Format> {
    Format::of(path.file_name()?.to_str()?)
}

fn unknown_kind(path: &Path) -> Error {
    let wanted = "a file of kind '.safetensors', '.h5', '.protobuf', '.nntxt', '.prototxt' or '.nnp'";
    Error::arg("path", wanted).actual(path.display())
}

fn save_nnabla(path: &Path, format: Format, all: &[(String, Variable)]) -> Result<()> {
    let message = Message::new("NNablaProtoBuf")?;
    let save = NnpToSave { message: &message, parameters: all, parameter_format: Format::Hdf5, states: &[] };
    let bytes = nnabla::write(&save, format)?;
    write_atomically(path, |file| Ok(file.write_all(&bytes)?))
}

/// Writes parameters in place, in this order.
pub(crate) fn write_to(file: &mut File, all: &[(String, Variable)]) -> Result<()> {
    let contents = all.iter().map(|(_, v)| v.data().and_then(|a| a.read(a.dtype())));
    let contents = contents.collect::<Result<Vec<Data>>>()?;
    let shapes: Vec<Shape> = all.iter().map(|(_, v)| v.shape()).collect();
    let part = |i: usize| Part {
        name: &all[i].0,
        kind: kind_of(contents[i].dtype()),
        shape: &shapes[i],
        bytes: contents[i].bytes_mut(),
    };
    let parts: Vec<Part> = (0..all.len()).map(part).collect();
    write(file, &parts, &notes(all))
}

fn notes(all: &[(String, Variable)]) -> Notes {
    let order: Vec<&str> = all.iter().map(|(n, _)| n.as_str()).collect();
    let need_grad: BTreeMap<&str, bool> = all.iter().map(|(n, v)| (n.as_str(), v.need_grad_state())).collect();
    let text = |v: serde_json::Value| v.to_string();
    [(ORDER.into(), text(order.into())), (NEED_GRAD.into(), text(serde_json::json!(need_grad)))].into()
}

/// Reads parameters from a `.safetensors`, `.h5`, `.protobuf`, `.nntxt` or `.nnp` file into the current scope: those that are
/// there get the file's values, type and `need_grad`, others are made.
///
/// # Errors
/// If anything is wrong with the file, or a parameter has another shape; then no parameter changes.
///
/// ```
/// use nnrs::{parameter::*, Variable};
/// let path = std::env::temp_dir().join(format!("nnrs-{}.safetensors", std::process::id()));
/// set_parameter("w", &Variable::from_slice(&[1.0f32, 2.0], [2].into())?)?;
/// save_parameters(&path)?;
/// clear_parameters();
/// load_parameters(&path)?;
/// assert_eq!(get_parameter("w").unwrap().to_vec::<f32>()?, [1.0, 2.0]);
/// std::fs::remove_file(&path).ok();
/// assert!(load_parameters(&path).is_err());
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn load_parameters(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let load = || match format_of(path) {
        None if is_safetensors(path) || path.extension().is_none() => set_all(read_from(&mut open(path)?)?),
        None => Err(unknown_kind(path)),
        Some(_) => set_all(records_of(nnabla::read_path(path)?)),
    };
    load().map_err(|e| e.function("load_parameters"))
}

fn records_of(contents: Contents) -> Vec<Record> {
    let record = |(name, array, need_grad)| Record { name, array, need_grad };
    contents.parameters.into_iter().map(record).collect()
}

/// A parameter as a file holds it.
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) array: NdArray,
    pub(crate) need_grad: bool,
}

/// Reads all parameters, in the order in which they were made.
pub(crate) fn read_from(file: &mut File) -> Result<Vec<Record>> {
    let (mut tensors, notes) = read_open(file, Elements::Typed)?;
    let order: Vec<String> = note(&notes, ORDER)?;
    let need_grad: HashMap<String, bool> = note(&notes, NEED_GRAD)?;
    let place: HashMap<&str, usize> = order.iter().enumerate().map(|(i, n)| (n.as_str(), i)).collect();
    tensors.sort_by_key(|t| place.get(t.name.as_str()).copied().unwrap_or(usize::MAX));
    let record = |t: Tensor| {
        let need_grad = need_grad.get(&t.name).copied().unwrap_or(true);
        Record { name: t.name, array: t.array, need_grad }
    };
    Ok(tensors.into_iter().map(record).collect())
}

/// Puts records into the current scope; if one of them does not fit, none.
pub(crate) fn set_all(records: Vec<Record>) -> Result<()> {
    put_all(stage_all(records)?)
}

/// A parameter that is to be put into the tree.
pub(crate) struct Staged {
    pub(crate) name: String,
    /// The tree's, or a new one.
    pub(crate) variable: Variable,
    pub(crate) is_new: bool,
    /// Values and `need_grad` of a file, which the tree's parameter gets.
    pub(crate) values: Option<(NdArray, bool)>,
}

/// The parameters that records will be. Nothing changes before [`put_all`]: no other thread sees the new ones, or new values.
pub(crate) fn stage_all(records: Vec<Record>) -> Result<Vec<Staged>> {
    check_names(records.iter().map(|r| r.name.as_str()))?;
    let new = |name: &str, array: &NdArray, need_grad: bool| {
        let v = Variable::from_array(array.clone()).with_need_grad(need_grad);
        v.note_name(name);
        v
    };
    let stage = |Record { name, array, need_grad }| {
        let there = parameter_there(&name, &array.shape())?;
        let is_new = there.is_none();
        let variable = there.unwrap_or_else(|| new(&name, &array, need_grad));
        Ok(Staged { name, variable, is_new, values: Some((array, need_grad)) })
    };
    records.into_iter().map(stage).collect()
}

/// Puts parameters into the current scope; if one of them does not fit, none. Where another thread has put one since, that one
/// stays, and a new one becomes one memory with it. What has been in the tree is others' too: it gets its values where it is.
pub(crate) fn put_all(all: Vec<Staged>) -> Result<()> {
    let fits = |s: &Staged| parameter_there(&s.name, &s.variable.shape()).map(drop);
    all.iter().try_for_each(fits)?;
    for Staged { name, variable, is_new, values } in all {
        let there = add(&name, &variable)?;
        if is_new && !there.is(&variable) {
            variable.set_data(there.raw_data())?;
            variable.set_grad(there.grad())?;
        }
        let Some((array, need_grad)) = values else { continue };
        let parameter = if is_new { there } else { variable };
        if !parameter.raw_data().is(&array) {
            parameter.raw_data().copy_from(&array)?;
        }
        parameter.set_need_grad(Some(need_grad));
    }
    Ok(())
}

fn note<T: serde::de::DeserializeOwned + Default>(notes: &Notes, key: &str) -> Result<T> {
    let Some(text) = notes.get(key) else { return Ok(T::default()) };
    serde_json::from_str(text).map_err(|e| Error::new(ErrorKind::Format, format!("bad note '{key}': {e}")))
}

/// Scopes within scopes that a file may ask for. Networks have a dozen; a file with thousands is an attack.
const MOST_DEPTH: usize = 100;

/// No name may come twice, be empty, lie in very many scopes, or also be a scope of another.
pub(crate) fn check_names<'a>(all: impl Iterator<Item = &'a str>) -> Result<()> {
    let bad = |why: String| Err(Error::new(ErrorKind::Format, why));
    let mut names = HashSet::new();
    for given in all {
        let parts = parts(given);
        if parts.len() > MOST_DEPTH {
            let start: String = given.chars().take(40).collect();
            return bad(format!("the name '{start}'... lies in more than {MOST_DEPTH} scopes"));
        }
        if parts.is_empty() || !names.insert(parts.join("/")) {
            return bad(format!("names clash or are empty (at '{given}')"));
        }
    }
    let is_scope = |name: &&str| names.contains(*name);
    let scopes = names.iter().flat_map(|name| name.match_indices('/').map(|(i, _)| &name[..i]));
    match scopes.into_iter().filter(is_scope).min() {
        Some(name) => bad(format!("names clash or are empty (at '{name}')")),
        None => Ok(()),
    }
}

/// The parameter of this name, `None` where there is room for a new one; an error where one of this shape cannot go.
fn parameter_there(name: &str, shape: &Shape) -> Result<Option<Variable>> {
    let parts = parts(name);
    for i in 1..parts.len() {
        if let Some(Item::Parameter(_)) = find(current(), &parts[..i]) {
            return Err(taken(&parts[..i].join("/")));
        }
    }
    match find(current(), &parts) {
        None => Ok(None),
        Some(Item::Scope(_)) => {
            let what = format!("'{name}' is a parameter in the file, but a scope here");
            Err(Error::new(ErrorKind::Parameter, what))
        }
        Some(Item::Parameter(v)) if v.shape() == *shape => Ok(Some(v)),
        Some(Item::Parameter(v)) => {
            let what = format!("parameter '{name}' has shape {} here, but {shape} in the file", v.shape());
            Err(Error::new(ErrorKind::Parameter, what)
                .hint("call clear_parameters() first, load under another parameter_scope, or build the network as it was saved"))
        }
    }
}
