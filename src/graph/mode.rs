//! Modes of the current thread: auto_forward, no_grad, recompute, and the current context. A thread that has set none has those
//! of the process ([`set_auto_forward_of_process`] and its like).
//!
//! ```
//! use nnrs::graph::mode;
//! use nnrs::{functions as f, Context, DType, Variable};
//! let x = Variable::from_slice(&[0.0f32], [1].into())?;
//! let old = mode::set_auto_forward(true);
//! assert_eq!(f::exp(&x)?.to_vec::<f32>()?, [1.0]); // no forward()
//! mode::set_auto_forward(old);
//! mode::set_context(Context::cpu(DType::F64)?.into());
//! let y = f::exp(&x)?;
//! y.forward()?;
//! assert_eq!(y.data()?.dtype(), DType::F64);
//! # Ok::<(), nnrs::Error>(())
//! ```

use nnrs_kernels::context::Context;
use nnrs_kernels::dtype::DType;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::LocalKey;

thread_local! {
    static AUTO_FORWARD: Cell<Option<bool>> = const { Cell::new(None) };
    static NO_GRAD: Cell<bool> = const { Cell::new(false) };
    static RECOMPUTE: Cell<Option<bool>> = const { Cell::new(None) };
    static AGAIN: Cell<bool> = const { Cell::new(false) };
    static KEEP_HISTORY: Cell<bool> = const { Cell::new(false) };
    static STORED: Cell<Option<DType>> = const { Cell::new(None) };
    static CONTEXT: RefCell<Option<Arc<Context>>> = const { RefCell::new(None) };
    static ORIGIN: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// What threads have that have set nothing of their own.
static AUTO_FORWARD_OF_PROCESS: AtomicBool = AtomicBool::new(false);
static RECOMPUTE_OF_PROCESS: AtomicBool = AtomicBool::new(false);
static CONTEXT_OF_PROCESS: RwLock<Option<Arc<Context>>> = RwLock::new(None);

/// True while functions compute as soon as they are applied.
///
/// ```
/// assert!(!nnrs::graph::mode::auto_forward());
/// ```
pub fn auto_forward() -> bool {
    AUTO_FORWARD.get().unwrap_or_else(|| AUTO_FORWARD_OF_PROCESS.load(Relaxed))
}

/// Sets auto_forward for this thread; gives the old value.
///
/// ```
/// use nnrs::{functions as f, graph::mode, Variable};
/// let old = mode::set_auto_forward(true);
/// let y = f::exp(&Variable::from_slice(&[0.0f32], [1].into())?)?;
/// assert_eq!((old, y.to_vec::<f32>()?), (false, vec![1.0]));
/// mode::set_auto_forward(old);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn set_auto_forward(on: bool) -> bool {
    let old = auto_forward();
    AUTO_FORWARD.set(Some(on));
    old
}

/// Sets auto_forward for all threads that have set none of their own; in one that has, for that alone.
///
/// ```
/// use nnrs::graph::mode;
/// mode::set_auto_forward_of_process(true);
/// assert!(std::thread::spawn(mode::auto_forward).join().unwrap());
/// mode::set_auto_forward_of_process(false);
/// ```
pub fn set_auto_forward_of_process(on: bool) {
    set_own_or(&AUTO_FORWARD, &AUTO_FORWARD_OF_PROCESS, on);
}

fn set_own_or(own: &'static LocalKey<Cell<Option<bool>>>, of_process: &AtomicBool, on: bool) {
    match own.get() {
        Some(_) => own.set(Some(on)),
        None => of_process.store(on, Relaxed),
    }
}

/// True while new nodes need no gradient.
///
/// ```
/// assert!(!nnrs::graph::mode::no_grad());
/// ```
pub fn no_grad() -> bool {
    NO_GRAD.get()
}

/// Sets no_grad for this thread; gives the old value.
///
/// ```
/// use nnrs::{functions as f, graph::mode, Variable};
/// let x = Variable::new([2]).with_need_grad(true);
/// let old = (mode::set_no_grad(true), mode::set_auto_forward(true));
/// let y = f::exp(&x)?;
/// assert!(!y.need_grad() && !y.has_parent());
/// (mode::set_no_grad(old.0), mode::set_auto_forward(old.1));
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn set_no_grad(on: bool) -> bool {
    NO_GRAD.replace(on)
}

/// True while outputs of new nodes are marked for recomputation.
///
/// ```
/// assert!(!nnrs::graph::mode::recompute());
/// ```
pub fn recompute() -> bool {
    RECOMPUTE.get().unwrap_or_else(|| RECOMPUTE_OF_PROCESS.load(Relaxed))
}

/// Sets recompute for this thread; gives the old value.
///
/// ```
/// use nnrs::{functions as f, graph::mode, Variable};
/// let old = mode::set_recompute(true);
/// assert!(f::exp(&Variable::new([2]))?.recompute());
/// mode::set_recompute(old);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn set_recompute(on: bool) -> bool {
    let old = recompute();
    RECOMPUTE.set(Some(on));
    old
}

/// Sets recompute for all threads that have set none of their own; in one that has, for that alone.
///
/// ```
/// use nnrs::graph::mode;
/// mode::set_recompute_of_process(true);
/// assert!(std::thread::spawn(mode::recompute).join().unwrap());
/// mode::set_recompute_of_process(false);
/// ```
pub fn set_recompute_of_process(on: bool) {
    set_own_or(&RECOMPUTE, &RECOMPUTE_OF_PROCESS, on);
}

/// True while data is computed again that was computed before.
///
/// ```
/// assert!(!nnrs::graph::mode::in_recomputing());
/// ```
pub fn in_recomputing() -> bool {
    AGAIN.get()
}

/// The thread's own auto_forward and recompute, which it may have none of, for scopes that take back what they set.
#[cfg(feature = "python")]
pub(crate) mod own {
    use super::{AUTO_FORWARD, CONTEXT, Context, RECOMPUTE};
    use std::sync::Arc;

    pub(crate) fn auto_forward() -> Option<bool> {
        AUTO_FORWARD.get()
    }
    pub(crate) fn set_auto_forward(on: Option<bool>) {
        AUTO_FORWARD.set(on);
    }
    pub(crate) fn recompute() -> Option<bool> {
        RECOMPUTE.get()
    }
    pub(crate) fn set_recompute(on: Option<bool>) {
        RECOMPUTE.set(on);
    }
    pub(crate) fn context() -> Option<Arc<Context>> {
        CONTEXT.with_borrow(|c| c.clone())
    }
}

/// Puts a cell's old value back, also on a panic.
struct Restore<T: Copy + 'static>(&'static LocalKey<Cell<T>>, T);

impl<T: Copy> Drop for Restore<T> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// Runs `f` as work that is done again.
pub(crate) fn again<R>(f: impl FnOnce() -> R) -> R {
    let _restore = Restore(&AGAIN, AGAIN.replace(true));
    f()
}

/// Runs `f`, in which what is computed at once keeps its history even where no gradient needs it.
pub(crate) fn keeping_history<R>(f: impl FnOnce() -> R) -> R {
    let _restore = Restore(&KEEP_HISTORY, KEEP_HISTORY.replace(true));
    f()
}

/// True if what is computed at once has no history where no gradient needs it.
pub(crate) fn forgets() -> bool {
    !KEEP_HISTORY.get()
}

/// Runs `f` with nodes that are made for later.
pub(crate) fn statically<R>(f: impl FnOnce() -> R) -> R {
    let _restore = Restore(&AUTO_FORWARD, AUTO_FORWARD.replace(Some(false)));
    f()
}

/// Runs `f` with new nodes in `context`.
pub(crate) fn in_context<R>(context: Arc<Context>, f: impl FnOnce() -> R) -> R {
    struct RestoreContext(Option<Arc<Context>>);
    impl Drop for RestoreContext {
        fn drop(&mut self) {
            set_own_context(self.0.take());
        }
    }
    let _restore = RestoreContext(set_own_context(Some(context)));
    f()
}

/// The line of a script that is making functions, where it does so by way of other code.
pub(crate) fn origin() -> Option<Arc<str>> {
    ORIGIN.with_borrow(|o| o.clone())
}

/// Runs `f`, whose functions were made by this line of a script.
#[cfg(feature = "python")]
pub(crate) fn with_origin<R>(origin: Option<Arc<str>>, f: impl FnOnce() -> R) -> R {
    struct RestoreOrigin(Option<Arc<str>>);
    impl Drop for RestoreOrigin {
        fn drop(&mut self) {
            ORIGIN.set(self.0.take());
        }
    }
    let _restore = RestoreOrigin(ORIGIN.replace(origin));
    f()
}

/// Runs user code whose results are stored in `dtype`.
pub(crate) fn stored_in<R>(dtype: DType, f: impl FnOnce() -> R) -> R {
    let _restore = Restore(&STORED, STORED.replace(Some(dtype)));
    f()
}

/// The type in which the results of the user code that is running are stored.
#[cfg(feature = "python")]
pub(crate) fn stored() -> Option<DType> {
    STORED.get()
}

/// The context of new nodes.
///
/// ```
/// use nnrs::{graph::mode, DType};
/// assert_eq!(mode::context().dtype(), DType::F32);
/// ```
pub fn context() -> Arc<Context> {
    CONTEXT.with_borrow(|c| c.clone()).unwrap_or_else(context_of_process)
}

fn context_of_process() -> Arc<Context> {
    CONTEXT_OF_PROCESS.read().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_else(Context::default_cpu)
}

/// Sets the context of this thread; gives the old one.
///
/// ```
/// use nnrs::{functions as f, graph::mode, Context, DType, Variable};
/// let old = mode::set_context(Context::cpu(DType::F16)?.into());
/// let y = f::exp(&Variable::from_slice(&[0.0f32], [1].into())?)?;
/// mode::set_context(old);
/// y.forward()?;
/// assert_eq!(y.data()?.dtype(), DType::F16);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn set_context(context: Arc<Context>) -> Arc<Context> {
    set_own_context(Some(context)).unwrap_or_else(context_of_process)
}

/// The thread's own context, which it may have none of; gives the old one.
pub(crate) fn set_own_context(context: Option<Arc<Context>>) -> Option<Arc<Context>> {
    CONTEXT.with_borrow_mut(|c| std::mem::replace(c, context))
}

/// Sets the context for all threads that have set none of their own; in one that has, for that alone.
///
/// ```
/// use nnrs::{graph::mode, Context, DType};
/// mode::set_context_of_process(Context::cpu(DType::F64)?.into());
/// assert_eq!(std::thread::spawn(|| mode::context().dtype()).join().unwrap(), DType::F64);
/// mode::set_context_of_process(Context::default_cpu());
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn set_context_of_process(context: Arc<Context>) {
    match CONTEXT.with_borrow(Option::is_some) {
        true => drop(set_own_context(Some(context))),
        false => *CONTEXT_OF_PROCESS.write().unwrap_or_else(PoisonError::into_inner) = Some(context),
    }
}

/// Runs `f` with modes for inner work: dynamic, without history, in `context`; restores them, also on a panic.
///
/// ```
/// use nnrs::{functions as f, graph::mode, Context, DType, Variable};
/// let x = Variable::from_slice(&[0.0f32], [1].into())?.with_need_grad(true);
/// let y = mode::inner(Context::cpu(DType::F64)?.into(), || f::exp(&x))?;
/// assert!(!y.has_parent() && !mode::auto_forward());
/// assert_eq!((y.data()?.dtype(), y.to_vec::<f64>()?), (DType::F64, vec![1.0]));
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn inner<R>(context: Arc<Context>, f: impl FnOnce() -> R) -> R {
    let _auto = Restore(&AUTO_FORWARD, AUTO_FORWARD.replace(Some(true)));
    let _grad = Restore(&NO_GRAD, set_no_grad(true));
    let _recompute = Restore(&RECOMPUTE, RECOMPUTE.replace(Some(false)));
    in_context(context, f)
}
