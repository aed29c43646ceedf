//! Parameters to and from files.

use super::{Item, current, find, get_all_parameters, is_scope, parts, set_parameter, taken};
use crate::graph::Variable;
use crate::io::safetensors::{Elements, Notes, Part, Tensor, kind_of, read, write};
use crate::io::write_atomically;
use nnrs_kernels::array::Data;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::shape::Shape;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

const ORDER: &str = "nnrs.order";
const NEED_GRAD: &str = "nnrs.need_grad";

/// Writes all parameters of the current scope to a `.safetensors` file, with their order and `need_grad`.
/// The file is whole or not there: it is written beside and renamed.
///
/// # Errors
/// A file of another kind (`.h5` is for Python's `nnrs.save_parameters`); the file cannot be written.
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
    let kind = path.as_ref().extension().unwrap_or_default();
    if kind != "safetensors" {
        let e = Error::arg("path", "a file of kind '.safetensors'").actual(path.as_ref().display());
        return Err(e.function("save_parameters"));
    }
    let all = get_all_parameters();
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
    write_atomically(path.as_ref(), |file| write(file, &parts, &notes(&all))).map_err(|e| e.function("save_parameters"))
}

fn notes(all: &[(String, Variable)]) -> Notes {
    let order: Vec<&str> = all.iter().map(|(n, _)| n.as_str()).collect();
    let need_grad: BTreeMap<&str, bool> = all.iter().map(|(n, v)| (n.as_str(), v.need_grad_state())).collect();
    let text = |v: serde_json::Value| v.to_string();
    [(ORDER.into(), text(order.into())), (NEED_GRAD.into(), text(serde_json::json!(need_grad)))].into()
}

/// Reads parameters from a `.safetensors` file into the current scope: those that are there get the file's values, type
/// and `need_grad`, others are made.
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
    load(path.as_ref()).map_err(|e| e.function("load_parameters"))
}

fn load(path: &Path) -> Result<()> {
    let (mut tensors, notes) = read(path, Elements::Typed)?;
    let order: Vec<String> = note(&notes, ORDER)?;
    let need_grad: HashMap<String, bool> = note(&notes, NEED_GRAD)?;
    let place: HashMap<&str, usize> = order.iter().enumerate().map(|(i, n)| (n.as_str(), i)).collect();
    tensors.sort_by_key(|t| place.get(t.name.as_str()).copied().unwrap_or(usize::MAX));
    check_names(&tensors)?;
    let found = tensors.iter().map(check_fits).collect::<Result<Vec<Option<Variable>>>>()?;
    for (t, old) in tensors.into_iter().zip(found) {
        let trained = Some(need_grad.get(&t.name).copied().unwrap_or(true));
        match old {
            Some(v) => {
                v.raw_data().copy_from(&t.array)?;
                v.set_need_grad(trained);
            }
            None => {
                let v = Variable::from_array(t.array);
                v.set_need_grad(trained);
                set_parameter(&t.name, &v)?;
            }
        }
    }
    Ok(())
}

fn note<T: serde::de::DeserializeOwned + Default>(notes: &Notes, key: &str) -> Result<T> {
    let Some(text) = notes.get(key) else { return Ok(T::default()) };
    serde_json::from_str(text).map_err(|e| Error::new(ErrorKind::Format, format!("bad note '{key}': {e}")))
}

/// No name may come twice, be empty, or also be a scope of another.
fn check_names(tensors: &[Tensor]) -> Result<()> {
    let bad = |name: &str| Error::new(ErrorKind::Format, format!("names clash or are empty, at '{name}'"));
    let mut names = HashSet::new();
    for t in tensors {
        let name = parts(&t.name).join("/");
        if name.is_empty() || !names.insert(name) {
            return Err(bad(&t.name));
        }
    }
    for name in &names {
        let scopes = name.match_indices('/').map(|(i, _)| &name[..i]);
        if let Some(scope) = scopes.into_iter().find(|s| names.contains(*s)) {
            return Err(bad(scope));
        }
    }
    Ok(())
}

/// The parameter that a tensor goes to, `None` for a new one; an error if it cannot go there.
fn check_fits(t: &Tensor) -> Result<Option<Variable>> {
    let parts = parts(&t.name);
    for i in 1..parts.len() {
        if let Some(Item::Parameter(_)) = find(current(), &parts[..i]) {
            return Err(taken(&parts[..i].join("/")));
        }
    }
    match find(current(), &parts) {
        None => Ok(None),
        Some(Item::Scope(_)) => Err(is_scope(&t.name)),
        Some(Item::Parameter(v)) if v.shape() == t.shape => Ok(Some(v)),
        Some(Item::Parameter(v)) => {
            let what = format!("parameter '{}' has shape {} here, but {} in the file", t.name, v.shape(), t.shape);
            Err(Error::new(ErrorKind::Parameter, what)
                .hint("call clear_parameters first, or build the network as it was saved"))
        }
    }
}
