//! Which arrays can be observed after a run: the one place that decides it. Plans, units, clearing and reviving ask here.
//!
//! An array is observed if one of these is alive: a handle of a variable that has it as data or gradient, a handle of the
//! array, a view of NumPy's, another variable that shares it. Persistent variables stay whatever is asked. All other arrays
//! may be left out, taken over or freed: what a living variable reaches by walking its graph is computed again
//! (`plan/recompute.rs`).

use super::variable::{Arrays, VarNode};
use nnrs_kernels::array::NdArray;
use nnrs_kernels::shape::Shape;
use std::sync::atomic::Ordering::Relaxed;

/// Which arrays of a variable can be observed from outside the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Observed {
    pub(crate) data: bool,
    pub(crate) grad: bool,
}

impl Observed {
    pub(crate) fn any(self) -> bool {
        self.data || self.grad
    }

    /// Beside handles of the variable itself.
    pub(super) fn of(arrays: &Arrays) -> Observed {
        Observed { data: arrays.data.is_observed(), grad: arrays.grad.as_deref().is_some_and(NdArray::is_observed) }
    }
}

impl VarNode {
    pub(crate) fn observed(&self) -> Observed {
        self.observed_beyond(0)
    }

    /// All of it is observed: by handles of the variable, or of an unlinked copy.
    pub(super) fn is_held(&self) -> bool {
        self.handles.load(Relaxed) > 0 || self.is_copied()
    }

    /// By others than the `own` handles of the caller.
    pub(crate) fn observed_beyond(&self, own: u32) -> Observed {
        match self.handles.load(Relaxed) > own || self.is_copied() {
            true => Observed { data: true, grad: true },
            false => Observed::of(&self.core().lock()),
        }
    }

    pub(crate) fn observed_and_shape(&self) -> (Observed, Shape) {
        let all = self.is_held();
        let core = self.core();
        let arrays = core.lock();
        let observed = if all { Observed { data: true, grad: true } } else { Observed::of(&arrays) };
        (observed, arrays.data.shape())
    }

    /// Another variable or array has the elements of its data.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_copied() || self.core().lock().data.is_shared()
    }
}
