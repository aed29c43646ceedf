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

use crate::graph::{Variable, mode};
use crate::initializer::{Generator, Initializer};
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::shape::Shape;
use std::sync::Arc;

mod files;
mod tree;
pub(crate) use files::check_names;
#[cfg(feature = "python")]
pub(crate) use files::{Record, Staged, put_all, read_from, set_all, stage_all, write_to};
pub use files::{load_parameters, save_parameters};
pub(crate) use tree::{Entries, Item, Scope};
#[cfg(feature = "python")]
pub(crate) use tree::{Tree, note, set_tree, take_back};
use tree::{current, tree, undoing};

/// The parts of "a/b/c"; empty ones do not count.
fn parts(name: &str) -> Vec<&str> {
    name.split('/').filter(|p| !p.is_empty()).collect()
}

/// What lies at `parts` below a scope.
fn find(scope: Scope, parts: &[&str]) -> Option<Item> {
    let mut at = Item::Scope(scope);
    for part in parts {
        let Item::Scope(scope) = at else { return None };
        at = scope.get(part)?;
    }
    Some(at)
}

/// The scope at `parts` below one, made where it is missing.
fn open(mut scope: Scope, parts: &[&str]) -> Result<Scope> {
    for (i, part) in parts.iter().enumerate() {
        let there = scope.get(part).map_or_else(|| scope.clone().add(part, Item::Scope(scope.inner()?)), Ok)?;
        scope = match there {
            Item::Scope(inner) => inner,
            Item::Parameter(_) => return Err(taken(&parts[..=i].join("/"))),
        };
    }
    Ok(scope)
}

/// The path of a scope from the root, ending in "/"; empty for the root and for a scope outside the tree.
fn path_of(wanted: &dyn Entries) -> String {
    let mut todo = vec![(String::new(), tree().root())];
    while let Some((path, scope)) = todo.pop() {
        if scope.address() == wanted.address() {
            return path;
        }
        let inner = |(name, item)| match item {
            Item::Scope(s) => Some((format!("{path}{name}/"), s)),
            Item::Parameter(_) => None,
        };
        todo.extend(scope.list().into_iter().filter_map(inner));
    }
    String::new()
}

fn collect(scope: &Scope, path: &str, all: &mut Vec<(String, Variable)>) {
    for (key, item) in scope.list() {
        let name = if path.is_empty() { key } else { format!("{path}/{key}") };
        match item {
            Item::Parameter(v) => all.push((name, v)),
            Item::Scope(s) => collect(&s, &name, all),
        }
    }
}

/// Who makes the usual initial values of layers.
pub(crate) fn generator() -> Arc<dyn Generator> {
    tree().generator()
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
struct RestoreScope(Option<Scope>);

impl Drop for RestoreScope {
    fn drop(&mut self) {
        tree().enter(self.0.take());
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
    let inner = open(current(), &parts(name))?;
    let _restore = RestoreScope(tree().enter(Some(inner)));
    f()
}

/// As [`parameter_scope`]; if `f` fails, the parameters and scopes that it made go again.
pub(crate) fn undoing_scope<R>(name: &str, f: impl FnOnce() -> Result<R>) -> Result<R> {
    undoing(|| parameter_scope(name, f))
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
    match find(current(), &parts(name)) {
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
    scope.put(last, Item::Parameter(v.clone()))
}

/// The scope that `name` lies in, made if need be, and its last part.
fn place(name: &str) -> Result<(Scope, &str)> {
    let parts = parts(name);
    let Some((last, outer)) = parts.split_last() else {
        return Err(Error::arg("name", "a name with at least one letter").actual(format!("'{name}'")));
    };
    Ok((open(current(), outer)?, last))
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
    let v = match find(current(), &parts(name)) {
        Some(Item::Parameter(v)) => v,
        Some(Item::Scope(_)) => return Err(is_scope(name)),
        None => create(name, &shape, initializer)?,
    };
    if v.shape() != shape {
        let name = path_of(&*current()) + name;
        let what = format!("parameter '{name}' has shape {}, but shape {shape} is asked for", v.shape());
        let hint = "use another name or parameter_scope, or remove the old one with pop_parameter or clear_parameters";
        return Err(Error::new(ErrorKind::Parameter, what).hint(hint));
    }
    if v.need_grad_state() != need_grad {
        v.set_need_grad(Some(need_grad));
    }
    Ok(v)
}

/// As [`get_parameter_or_create`], but a variable of its own over the same memory: each use has its own `need_grad`, which is
/// never set where no gradients are wanted.
pub(crate) fn use_parameter(
    name: &str,
    shape: impl Into<Shape>,
    initializer: &dyn Initializer,
    need_grad: bool,
    used_with_grad: bool,
) -> Result<Variable> {
    let v = get_parameter_or_create(name, shape, initializer, need_grad)?;
    let used = v.unlinked_with(Some(used_with_grad && !mode::no_grad()));
    used.set_name(parts(name).last().unwrap_or(&""));
    Ok(used)
}

fn create(name: &str, shape: &Shape, initializer: &dyn Initializer) -> Result<Variable> {
    shape.check()?;
    let values = initializer.make(shape).map_err(|e| match e.kind() {
        ErrorKind::OutOfMemory => Error::new(
            ErrorKind::OutOfMemory,
            format!("there is no memory for the initial values of parameter '{name}' of shape {shape}"),
        ),
        _ => e,
    })?;
    if values.shape() != *shape {
        return Err(Error::shape(initializer.argument(), format!("values of shape {shape} for parameter '{name}'"))
            .actual(values.shape()));
    }
    let v = Variable::from_array(values);
    v.set_name(parts(name).last().unwrap_or(&""));
    initializer.made(&v);
    add(name, &v)
}

/// Puts a variable under `name` into the current scope, unless there is one: a quicker thread's counts.
fn add(name: &str, v: &Variable) -> Result<Variable> {
    let (scope, last) = place(name)?;
    match scope.add(last, Item::Parameter(v.clone()))? {
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
    all.retain(|(_, v)| v.need_grad_state());
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
    collect(&current(), "", &mut all);
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
    let scope = current();
    scope.list().iter().for_each(|(name, _)| scope.remove(name));
}
