//! Frees graphs without recursion: nodes that lose their last owner while others are being freed wait in a list.

use super::node::FnNode;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

thread_local! {
    static WAITING: RefCell<Vec<Arc<FnNode>>> = const { RefCell::new(Vec::new()) };
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Drops `node` now, or after the one that is being dropped.
pub(crate) fn later(node: Arc<FnNode>) {
    let Ok(busy) = BUSY.try_with(Cell::get) else { return };
    if busy {
        let _ = WAITING.try_with(|w| w.borrow_mut().push(node));
        return;
    }
    BUSY.set(true);
    drop(node);
    while let Some(next) = WAITING.with(|w| w.borrow_mut().pop()) {
        drop(next);
    }
    BUSY.set(false);
}
