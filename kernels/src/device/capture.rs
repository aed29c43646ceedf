//! Whether this thread captures a run, whose work is noted and not done, and which blocks of memory that run has worked on.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

thread_local! {
    static CAPTURING: Cell<bool> = const { Cell::new(false) };
    /// Addresses of the blocks that the run has worked on.
    static TOUCHED: RefCell<BTreeSet<usize>> = const { RefCell::new(BTreeSet::new()) };
}

/// True while this thread captures a run: then nothing is compiled, loaded or waited for.
pub fn is_capturing() -> bool {
    CAPTURING.get()
}

/// Notes that a block is worked on, if a run is being captured.
pub fn touch(block: usize) {
    if is_capturing() {
        TOUCHED.with_borrow_mut(|t| t.insert(block));
    }
}

/// This thread captures from now on.
pub(crate) fn begin() {
    CAPTURING.set(true);
}

/// This thread does not capture any more. Gives the blocks that were worked on.
pub(crate) fn end() -> BTreeSet<usize> {
    CAPTURING.set(false);
    TOUCHED.take()
}
