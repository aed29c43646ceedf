//! Parameters: variables that a program finds again by name, in scopes that nest like folders.
//!
//! The tree of scopes belongs to the process, the place in it to the thread: `parameter_scope` in one never moves another.
//!
//! ```
//! use nnrs::{parameter, parametric as pf, Variable};
//! let y = parameter::parameter_scope("encoder", || pf::affine("fc", &Variable::new([4, 3]), 2, Default::default()))?;
//! let names: Vec<String> = parameter::get_parameters().into_iter().map(|(name, _)| name).collect();
//! assert_eq!(names, ["encoder/fc/affine/W", "encoder/fc/affine/b"]);
//! # Ok::<(), nnrs::Error>(())
//! ```

use crate::array::Data;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Variable;
use crate::initializer::Initializer;
use crate::io::safetensors::{Elements, Notes, Part, Tensor, kind_of, read, write};
use crate::io::write_atomically;
use crate::shape::Shape;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

/// A scope: parameters and inner scopes in the order in which they were made.
#[derive(Default)]
struct Scope(Mutex<Vec<(String, Item)>>);

#[derive(Clone)]
enum Item {
    Parameter(Variable),
    Scope(Arc<Scope>),
}

static ROOT: LazyLock<Arc<Scope>> = LazyLock::new(Arc::default);

thread_local! {
    static CURRENT: RefCell<Option<Arc<Scope>>> = const { RefCell::new(None) };
}

/// Makes what is made on first use.
pub(crate) fn ready() {
    LazyLock::force(&ROOT);
}

fn current() -> Arc<Scope> {
    CURRENT.with_borrow(|c| c.clone()).unwrap_or_else(|| ROOT.clone())
}

/// The parts of "a/b/c"; empty ones do not count.
fn parts(name: &str) -> Vec<&str> {
    name.split('/').filter(|p| !p.is_empty()).collect()
}

impl Scope {
    /// Locked only while an entry goes in or out, never while other code runs.
    fn lock(&self) -> MutexGuard<'_, Vec<(String, Item)>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn get(&self, key: &str) -> Option<Item> {
        self.lock().iter().find(|(k, _)| k == key).map(|(_, item)| item.clone())
    }

    /// Puts `item` under `key` unless there is something already; gives what is there then.
    fn add(&self, key: &str, item: Item) -> Item {
        let mut list = self.lock();
        if let Some((_, old)) = list.iter().find(|(k, _)| k == key) {
            return old.clone();
        }
        list.push((key.to_string(), item.clone()));
        item
    }

    /// Puts `item` under `key`; gives what was there.
    fn put(&self, key: &str, item: Item) -> Option<Item> {
        let mut list = self.lock();
        match list.iter_mut().find(|(k, _)| k == key) {
            Some((_, old)) => Some(std::mem::replace(old, item)),
            None => {
                list.push((key.to_string(), item));
                None
            }
        }
    }

    fn names(&self) -> HashSet<String> {
        self.lock().iter().map(|(k, _)| k.clone()).collect()
    }

    fn find(self: &Arc<Scope>, parts: &[&str]) -> Option<Item> {
        let mut at = Item::Scope(self.clone());
        for part in parts {
            let Item::Scope(scope) = at else { return None };
            at = scope.get(part)?;
        }
        Some(at)
    }

    /// The scope at `parts` below this one, made where it is missing.
    fn open(self: &Arc<Scope>, parts: &[&str]) -> Result<Arc<Scope>> {
        let mut at = self.clone();
        for (i, part) in parts.iter().enumerate() {
            at = match at.add(part, Item::Scope(Arc::default())) {
                Item::Scope(inner) => inner,
                Item::Parameter(_) => return Err(taken(&parts[..=i].join("/"))),
            };
        }
        Ok(at)
    }

    fn collect(&self, path: &str, all: &mut Vec<(String, Variable)>) {
        let list = self.lock().clone();
        for (key, item) in list {
            let name = if path.is_empty() { key } else { format!("{path}/{key}") };
            match item {
                Item::Parameter(v) => all.push((name, v)),
                Item::Scope(s) => s.collect(&name, all),
            }
        }
    }
}

fn taken(name: &str) -> Error {
    Error::new(ErrorKind::Parameter, format!("there is a parameter '{name}', so it cannot be a scope"))
        .hint("give the scope another name, or remove the parameter with clear_parameters")
}

fn is_scope(name: &str) -> Error {
    Error::new(ErrorKind::Parameter, format!("there is a scope '{name}', so it cannot be a parameter"))
        .hint("give the parameter or the scope another name")
}

/// Restores the thread's scope, also after a panic.
struct Restore(Option<Arc<Scope>>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Runs `f` in the scope `name` ("a/b" opens "b" within "a"): all parameters that it makes or asks for are there.
///
/// # Errors
/// A part of `name` is a parameter; what `f` says.
///
/// ```
/// use nnrs::parameter::*;
/// use nnrs::initializer::Constant;
/// let w = parameter_scope("block/1", || get_parameter_or_create("W", [2], &Constant(0.5), true))?;
/// assert_eq!(get_parameters()[0].0, "block/1/W");
/// clear_parameters();
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn parameter_scope<R>(name: &str, f: impl FnOnce() -> Result<R>) -> Result<R> {
    let inner = current().open(&parts(name))?;
    let _restore = Restore(CURRENT.replace(Some(inner)));
    f()
}

/// As [`parameter_scope`]; if `f` fails, the parameters and scopes that it made in that scope go again.
pub(crate) fn undoing_scope<R>(name: &str, f: impl FnOnce() -> Result<R>) -> Result<R> {
    parameter_scope(name, || {
        let scope = current();
        let before = scope.names();
        f().inspect_err(|_| {
            let mut list = scope.lock();
            let (kept, gone) = std::mem::take(&mut *list).into_iter().partition(|(k, _)| before.contains(k));
            *list = kept;
            drop(list);
            drop::<Vec<_>>(gone);
        })
    })
}

/// The parameter `name` of the current scope, if there is one.
///
/// ```
/// use nnrs::{parameter::*, Variable};
/// set_parameter("w", &Variable::new([2]))?;
/// assert_eq!(get_parameter("w").map(|w| w.shape()), Some([2].into()));
/// assert!(get_parameter("b").is_none());
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn get_parameter(name: &str) -> Option<Variable> {
    match current().find(&parts(name)) {
        Some(Item::Parameter(v)) => Some(v),
        _ => None,
    }
}

/// Puts a variable under `name` into the current scope, in place of what was there.
///
/// # Errors
/// An empty name; a part of it is a parameter.
///
/// ```
/// use nnrs::{parameter::*, Variable};
/// let w = Variable::new([2]);
/// set_parameter("a/w", &w)?;
/// assert!(get_parameter("a/w").unwrap().is(&w) && get_parameter("a").is_none());
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn set_parameter(name: &str, v: &Variable) -> Result<()> {
    let (scope, last) = place(name)?;
    v.note_name(name);
    let old = scope.put(last, Item::Parameter(v.clone()));
    drop(old);
    Ok(())
}

/// The scope that `name` lies in, made if need be, and its last part.
fn place(name: &str) -> Result<(Arc<Scope>, &str)> {
    let parts = parts(name);
    let Some((last, outer)) = parts.split_last() else {
        return Err(Error::arg("name", "a name with at least one letter").actual(format!("'{name}'")));
    };
    Ok((current().open(outer)?, last))
}

/// The parameter `name` of the current scope; if it is not there, it is made with values of `initializer`.
///
/// # Errors
/// If there is a parameter of this name with another shape, or a scope; what the initializer says.
///
/// ```
/// use nnrs::{initializer::Constant, parameter::*};
/// let w = get_parameter_or_create("w", [2, 3], &Constant(0.5), true)?;
/// assert!(get_parameter_or_create("w", [2, 3], &Constant(7.0), true)?.is(&w));
/// assert_eq!(w.to_vec::<f32>()?, [0.5; 6]);
/// assert!(get_parameter_or_create("w", [4], &Constant(0.5), true).is_err());
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn get_parameter_or_create(
    name: &str,
    shape: impl Into<Shape>,
    initializer: &dyn Initializer,
    need_grad: bool,
) -> Result<Variable> {
    let shape = shape.into();
    let v = match current().find(&parts(name)) {
        Some(Item::Parameter(v)) => v,
        Some(Item::Scope(_)) => return Err(is_scope(name)),
        None => create(name, &shape, initializer)?,
    };
    if v.shape() != shape {
        let what = format!("parameter '{name}' has shape {}, but shape {shape} is asked for", v.shape());
        return Err(Error::new(ErrorKind::Parameter, what).hint("use another name, or parameter_scope"));
    }
    if v.need_grad() != need_grad {
        v.set_need_grad(Some(need_grad));
    }
    Ok(v)
}

fn create(name: &str, shape: &Shape, initializer: &dyn Initializer) -> Result<Variable> {
    let values = initializer.make(shape)?;
    if values.shape() != *shape {
        return Err(Error::shape("initializer", format!("values of shape {shape} for parameter '{name}'"))
            .actual(values.shape()));
    }
    let (scope, last) = place(name)?;
    let v = Variable::from_array(values);
    v.set_name(last);
    // A quicker thread's parameter counts.
    match scope.add(last, Item::Parameter(v)) {
        Item::Parameter(v) => Ok(v),
        Item::Scope(_) => Err(is_scope(name)),
    }
}

/// The parameters of the current scope that are trained, by their full names, in the order in which they were made.
///
/// ```
/// use nnrs::{parameter::*, Variable};
/// set_parameter("b/w", &Variable::new([2]).with_need_grad(true))?;
/// set_parameter("a/mean", &Variable::new([2]))?;
/// let names: Vec<String> = get_parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["b/w"]);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn get_parameters() -> Vec<(String, Variable)> {
    let mut all = get_all_parameters();
    all.retain(|(_, v)| v.need_grad());
    all
}

/// As [`get_parameters`], with those that are not trained (running statistics, say).
///
/// ```
/// use nnrs::{parameter::*, Variable};
/// set_parameter("b/w", &Variable::new([2]).with_need_grad(true))?;
/// set_parameter("a/mean", &Variable::new([2]))?;
/// let names: Vec<String> = get_all_parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["b/w", "a/mean"]);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn get_all_parameters() -> Vec<(String, Variable)> {
    let mut all = Vec::new();
    current().collect("", &mut all);
    all
}

/// Removes all parameters and scopes of the current scope.
///
/// ```
/// use nnrs::{parameter::*, Variable};
/// set_parameter("a/w", &Variable::new([2]))?;
/// parameter_scope("a", || Ok(clear_parameters()))?;
/// assert!(get_all_parameters().is_empty());
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn clear_parameters() {
    let old = std::mem::take(&mut *current().lock());
    drop(old);
}

const ORDER: &str = "nnrs.order";
const NEED_GRAD: &str = "nnrs.need_grad";

/// Writes all parameters of the current scope to a `.safetensors` file, with their order and `need_grad`.
/// The file is whole or not there: it is written beside and renamed.
///
/// # Errors
/// The file cannot be written.
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
    let need_grad: BTreeMap<&str, bool> = all.iter().map(|(n, v)| (n.as_str(), v.need_grad())).collect();
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
        if let Some(Item::Parameter(_)) = current().find(&parts[..i]) {
            return Err(taken(&parts[..i].join("/")));
        }
    }
    match current().find(&parts) {
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
