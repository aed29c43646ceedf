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

use crate::graph::Variable;
use crate::initializer::Initializer;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::fork::at_fork;
use nnrs_kernels::shape::Shape;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

mod files;
pub use files::{load_parameters, save_parameters};

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

at_fork!(Ready, LazyLock::force(&ROOT));

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
    if v.need_grad_state() != need_grad {
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
