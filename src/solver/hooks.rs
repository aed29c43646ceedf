//! Hooks of solvers: called, without arguments, before and after the work on each parameter.

pub use crate::graph::hooks::When;
use nnrs_kernels::error::Result;
use nnrs_kernels::fork::at_fork;
use std::sync::{Arc, Mutex, MutexGuard};

/// A hook of one call.
///
/// ```
/// use nnrs::solver::hooks::Hook;
/// let stop: Hook = Some(&|| Err(nnrs::Error::graph("stop")));
/// assert!(stop.is_some_and(|hook| hook().is_err()));
/// ```
pub type Hook<'a> = Option<&'a dyn Fn() -> Result<()>>;

/// The hooks of one call.
///
/// ```
/// use nnrs::solver::{Hooks, Sgd, Solver};
/// use nnrs::Variable;
/// let w = Variable::new([2]).with_need_grad(true);
/// w.grad().fill(1.0)?;
/// let (solver, count) = (Solver::new(Sgd::default()), std::cell::Cell::new(0));
/// solver.set_parameters(&[("w".into(), w)], Default::default())?;
/// let pre = || Ok(count.set(count.get() + 1));
/// solver.update_hooked(Hooks { pre: Some(&pre), post: None })?;
/// assert_eq!(count.get(), 1);
/// # Ok::<(), nnrs::Error>(())
/// ```
#[derive(Clone, Copy, Default)]
pub struct Hooks<'a> {
    /// Called before the work on each parameter.
    pub pre: Hook<'a>,
    /// Called after it.
    pub post: Hook<'a>,
}

/// A hook of all solvers.
///
/// ```
/// use nnrs::solver::hooks::{self, GlobalHook, When};
/// let hook: GlobalHook = std::sync::Arc::new(|| Ok(()));
/// hooks::set(When::Before, "nothing", hook.clone());
/// assert_eq!(std::sync::Arc::strong_count(&hook), 2);
/// ```
pub type GlobalHook = Arc<dyn Fn() -> Result<()> + Send + Sync>;

type UpdateHookList = Vec<(String, GlobalHook)>;
static BEFORE: Mutex<UpdateHookList> = Mutex::new(Vec::new());
static AFTER: Mutex<UpdateHookList> = Mutex::new(Vec::new());

fn list(when: When) -> MutexGuard<'static, UpdateHookList> {
    let list = if when == When::Before { &BEFORE } else { &AFTER };
    list.lock().unwrap_or_else(|e| e.into_inner())
}

at_fork!(Hold, [When::Before, When::After].map(list));

/// Sets the hook of name `key`, which all solvers call; in the place of the one that had this name.
///
/// ```
/// use nnrs::solver::{Sgd, Solver, hooks::{self, When}};
/// use nnrs::Variable;
/// let (w, solver) = (Variable::new([2]).with_need_grad(true), Solver::new(Sgd::default()));
/// w.grad().fill(1.0)?;
/// solver.set_parameters(&[("w".into(), w)], Default::default())?;
/// hooks::set(When::Before, "stop", std::sync::Arc::new(|| Err(nnrs::Error::graph("stop"))));
/// assert!(solver.update().unwrap_err().to_string().contains("stop"));
/// hooks::set(When::Before, "stop", std::sync::Arc::new(|| Ok(()))); // in the place of the other
/// solver.update()?;
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn set(when: When, key: &str, hook: GlobalHook) {
    let mut hooks = list(when);
    let old = match hooks.iter_mut().find(|(k, _)| k == key) {
        Some((_, old)) => Some(std::mem::replace(old, hook)),
        None => {
            hooks.push((key.into(), hook));
            None
        }
    };
    drop(hooks);
    // What a hook holds is freed without the lock: it may be anything.
    drop(old);
}

/// Removes the hook of name `key`, if there is one.
///
/// ```
/// use nnrs::solver::{Sgd, Solver, hooks::{self, When}};
/// use nnrs::Variable;
/// let (w, solver) = (Variable::new([2]).with_need_grad(true), Solver::new(Sgd::default()));
/// w.grad().fill(1.0)?;
/// solver.set_parameters(&[("w".into(), w)], Default::default())?;
/// hooks::set(When::After, "stop", std::sync::Arc::new(|| Err(nnrs::Error::graph("stop"))));
/// hooks::unset(When::After, "stop");
/// hooks::unset(When::After, "no such hook");
/// solver.update()?;
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn unset(when: When, key: &str) {
    let mut hooks = list(when);
    let old = hooks.iter().position(|(k, _)| k == key).map(|i| hooks.remove(i));
    drop(hooks);
    // What a hook holds is freed without the lock: it may be anything.
    drop(old);
}

impl Hooks<'_> {
    /// True if there is nothing to call.
    pub(super) fn is_empty(&self) -> bool {
        self.pre.is_none() && self.post.is_none() && list(When::Before).is_empty() && list(When::After).is_empty()
    }

    /// Runs `body` between the hooks: global ones outside, as NNabla.
    pub(super) fn around(&self, body: impl FnOnce() -> Result<()>) -> Result<()> {
        fire(When::Before)?;
        self.pre.map_or(Ok(()), |h| h())?;
        body()?;
        self.post.map_or(Ok(()), |h| h())?;
        fire(When::After)
    }
}

fn fire(when: When) -> Result<()> {
    let hooks: UpdateHookList = list(when).clone();
    hooks.iter().try_for_each(|(_, hook)| hook())
}
