//! Modes of the current thread: auto_forward, no_grad, recompute, and the current context.
//!
//! ```
//! use nnrs::graph::mode;
//! use nnrs::{functions as f, Context, DType, Variable};
//! let x = Variable::from_slice(&[0.0f32], [1].into())?;
//! let old = mode::set_auto_forward(true);
//! assert_eq!(f::exp(&x)?.to_vec::<f32>()?, [1.0]); // no forward()
//! mode::set_auto_forward(old);
//! mode::set_context(Context::cpu(DType::F64).into());
//! let y = f::exp(&x)?;
//! y.forward()?;
//! assert_eq!(y.data()?.dtype(), DType::F64);
//! # Ok::<(), nnrs::Error>(())
//! ```

use crate::context::Context;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

thread_local! {
    static AUTO_FORWARD: Cell<bool> = const { Cell::new(false) };
    static NO_GRAD: Cell<bool> = const { Cell::new(false) };
    static RECOMPUTE: Cell<bool> = const { Cell::new(false) };
    static AGAIN: Cell<bool> = const { Cell::new(false) };
    static CONTEXT: RefCell<Option<Arc<Context>>> = const { RefCell::new(None) };
}

/// True while functions compute as soon as they are applied.
pub fn auto_forward() -> bool {
    AUTO_FORWARD.get()
}

/// Sets auto_forward for this thread; gives the old value.
pub fn set_auto_forward(on: bool) -> bool {
    AUTO_FORWARD.replace(on)
}

/// True while new nodes need no gradient.
pub fn no_grad() -> bool {
    NO_GRAD.get()
}

/// Sets no_grad for this thread; gives the old value.
pub fn set_no_grad(on: bool) -> bool {
    NO_GRAD.replace(on)
}

/// True while outputs of new nodes are marked for recomputation.
pub fn recompute() -> bool {
    RECOMPUTE.get()
}

/// Sets recompute for this thread; gives the old value.
pub fn set_recompute(on: bool) -> bool {
    RECOMPUTE.replace(on)
}

/// True while data is computed again that was computed before.
pub fn in_recomputing() -> bool {
    AGAIN.get()
}

/// Runs `f` as work that is done again.
pub(crate) fn again<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            AGAIN.set(self.0);
        }
    }
    let _restore = Restore(AGAIN.replace(true));
    f()
}

/// The context of new nodes.
pub fn context() -> Arc<Context> {
    CONTEXT.with_borrow(|c| c.clone()).unwrap_or_else(Context::default_cpu)
}

/// Sets the context of this thread; gives the old one.
pub fn set_context(context: Arc<Context>) -> Arc<Context> {
    CONTEXT.with_borrow_mut(|c| c.replace(context)).unwrap_or_else(Context::default_cpu)
}

/// Runs `f` with modes for inner work: dynamic, without history, in `context`; restores them, also on a panic.
pub fn inner<R>(context: Arc<Context>, f: impl FnOnce() -> R) -> R {
    struct Restore(bool, bool, bool, Arc<Context>);
    impl Drop for Restore {
        fn drop(&mut self) {
            set_auto_forward(self.0);
            set_no_grad(self.1);
            set_recompute(self.2);
            set_context(self.3.clone());
        }
    }
    let _restore = Restore(set_auto_forward(true), set_no_grad(true), set_recompute(false), set_context(context));
    f()
}
