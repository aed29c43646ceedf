//! Global function hooks, called before and after each function of every run, by any thread.
//!
//! ```
//! use nnrs::graph::hooks::{self, When};
//! use nnrs::{functions as f, Variable};
//! use std::sync::Arc;
//! let y = f::exp(&Variable::new([2]))?;
//! hooks::set(When::After, "stop", Arc::new(|f| Err(nnrs::Error::graph(format!("after {}", f.name())))));
//! assert_eq!(y.forward().unwrap_err().to_string(), "after exp");
//! hooks::unset(When::After, "stop");
//! y.forward()?;
//! # Ok::<(), nnrs::Error>(())
//! ```

use super::node::FnNode;
use super::plan::NodeHooks;
use nnrs_kernels::error::Result;
use nnrs_kernels::fork::at_fork;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// A hook: called with the function; an error ends the run.
///
/// ```
/// use nnrs::graph::hooks::{self, FunctionHook, When};
/// use nnrs::{functions as f, Variable};
/// let no_exp: FunctionHook = std::sync::Arc::new(|f| match f.name() {
///     "exp" => Err(nnrs::Error::graph("not here")),
///     _ => Ok(()),
/// });
/// hooks::set(When::Before, "no exp", no_exp);
/// let x = Variable::new([2]);
/// assert!(f::exp(&x)?.forward().is_err() && f::sin(&x)?.forward().is_ok());
/// # Ok::<(), nnrs::Error>(())
/// ```
pub type FunctionHook = Arc<dyn Fn(&super::FunctionRef) -> Result<()> + Send + Sync>;

/// When a hook is called.
///
/// ```
/// use nnrs::graph::hooks::{self, When};
/// use nnrs::{functions as f, Variable};
/// let y = f::exp(&Variable::from_slice(&[0.0f32], [1].into())?)?;
/// hooks::set(When::After, "stop", std::sync::Arc::new(|_| Err(nnrs::Error::graph("stop"))));
/// assert!(y.forward().is_err() && y.raw_data().to_vec::<f32>()? == [1.0]); // the function has run
/// # Ok::<(), nnrs::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before the function (or, for solvers, the parameter).
    Before,
    /// After it.
    After,
}

type FunctionHookList = Vec<(String, FunctionHook)>;
static BEFORE: Mutex<FunctionHookList> = Mutex::new(Vec::new());
static AFTER: Mutex<FunctionHookList> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn list(when: When) -> &'static Mutex<FunctionHookList> {
    match when {
        When::Before => &BEFORE,
        When::After => &AFTER,
    }
}

at_fork!(Hold, [When::Before, When::After].map(|w| list(w).lock().unwrap_or_else(|e| e.into_inner())));

/// Sets the global hook of name `key`, in the place of the one that had this name. Several are called in the order in which
/// their names were set first.
///
/// ```
/// use nnrs::graph::hooks::{self, When};
/// use nnrs::{functions as f, Variable};
/// use std::sync::{Arc, Mutex};
/// let called = Arc::new(Mutex::new(Vec::new()));
/// for key in ["b", "a", "b"] {
///     let called = called.clone();
///     let note = move |_: &nnrs::graph::FunctionRef| Ok(called.lock().unwrap().push(key));
///     hooks::set(When::Before, key, Arc::new(note));
/// }
/// f::exp(&Variable::new([2]))?.forward()?;
/// assert_eq!(*called.lock().unwrap(), ["b", "a"]);
/// ["a", "b"].map(|key| hooks::unset(When::Before, key));
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn set(when: When, key: &str, hook: FunctionHook) {
    let mut hooks = list(when).lock().unwrap_or_else(|e| e.into_inner());
    let old = match hooks.iter_mut().find(|(k, _)| k == key) {
        Some((_, old)) => Some(std::mem::replace(old, hook)),
        None => {
            hooks.push((key.into(), hook));
            COUNT.fetch_add(1, Relaxed);
            None
        }
    };
    drop(hooks);
    drop(old); // without the lock: it may hold anything
}

/// Removes the global hook of name `key`, if there is one.
///
/// ```
/// use nnrs::graph::hooks::{self, When};
/// use nnrs::{functions as f, Variable};
/// hooks::set(When::Before, "stop", std::sync::Arc::new(|_| Err(nnrs::Error::graph("stop"))));
/// hooks::unset(When::Before, "stop");
/// hooks::unset(When::Before, "no such hook");
/// f::exp(&Variable::new([2]))?.forward()?;
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn unset(when: When, key: &str) {
    let mut hooks = list(when).lock().unwrap_or_else(|e| e.into_inner());
    let old = hooks.iter().position(|(k, _)| k == key).map(|i| hooks.remove(i));
    drop(hooks);
    if old.is_some() {
        COUNT.fetch_sub(1, Relaxed);
    }
}

/// True if there is any global hook.
pub(crate) fn any() -> bool {
    COUNT.load(Relaxed) > 0
}

fn fire(when: When, f: &Arc<FnNode>) -> Result<()> {
    let hooks: FunctionHookList = list(when).lock().unwrap_or_else(|e| e.into_inner()).clone();
    let function = super::FunctionRef::new(f.clone());
    hooks.iter().try_for_each(|(_, hook)| hook(&function))
}

/// Runs `body` with the hooks of the run and the global ones (the global ones outside, as in NNabla).
pub(crate) fn with<R>(
    pre: Option<&dyn Fn(&super::FunctionRef) -> Result<()>>,
    post: Option<&dyn Fn(&super::FunctionRef) -> Result<()>>,
    body: impl FnOnce(&NodeHooks) -> Result<R>,
) -> Result<R> {
    if !any() && pre.is_none() && post.is_none() {
        return body(&NodeHooks::default());
    }
    let own = |hook: Option<&dyn Fn(&super::FunctionRef) -> Result<()>>, f: &Arc<FnNode>| {
        hook.map_or(Ok(()), |h| h(&super::FunctionRef::new(f.clone())))
    };
    let shown = |f: &Arc<FnNode>, hooks: &dyn Fn() -> Result<()>| if f.mirror { Ok(()) } else { hooks() };
    let before = |f: &Arc<FnNode>| shown(f, &|| fire(When::Before, f).and_then(|()| own(pre, f)));
    let after = |f: &Arc<FnNode>| shown(f, &|| own(post, f).and_then(|()| fire(When::After, f)));
    body(&NodeHooks { pre: Some(&before), post: Some(&after), ..NodeHooks::default() })
}
