//! Variables: data, gradient, and the node that made them. [`Variable`] is a user's handle; the graph itself holds
//! [`VarRef`]s, so that the engine can tell which arrays can be observed.

mod flags;
mod handle;

pub(super) use flags::drop_states_by_hand;

pub use handle::Variable;

use super::node::{self, FnNode, maker};
use super::observe::Observed;
use super::{deferred_drop, plan};
use nnrs_kernels::array::{NdArray, VariableArray, next_time};
use nnrs_kernels::shape::Shape;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

pub(crate) type VarRef = Arc<VarNode>;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);
static LIVE: AtomicU64 = AtomicU64::new(0);
/// How often a variable was given another data array.
static EXCHANGES: AtomicU64 = AtomicU64::new(0);
/// Raised by every change that may make a plan stale.
pub(crate) static EPOCH: AtomicU64 = AtomicU64::new(1);

/// A number for each node and variable, in order of creation.
pub(crate) fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Relaxed)
}

/// Variables that are alive.
///
/// ```
/// use nnrs::{graph::live_variables, Variable};
/// let before = live_variables();
/// let x = Variable::new([2]);
/// let handle = x.clone();
/// assert_eq!(live_variables() - before, 1);
/// drop((x, handle));
/// assert_eq!(live_variables(), before);
/// ```
pub fn live_variables() -> u64 {
    LIVE.load(Relaxed)
}

/// What unlinked copies of a variable share: its arrays, and its identity for users.
pub(crate) struct Core {
    id: u64,
    arrays: Mutex<Arrays>,
    version: AtomicU64,
    /// When another data array came into the place of the first.
    since: AtomicU64,
}

pub(super) struct Arrays {
    pub(super) data: VariableArray,
    pub(super) grad: Option<VariableArray>,
    /// The last backward run did not keep the gradient.
    grad_elided: bool,
    /// What the last backward run with hooks began with here was cleared.
    seed_cleared: bool,
}

impl Arrays {
    fn new(data: NdArray) -> Arrays {
        Arrays { data: VariableArray::new(data), grad: None, grad_elided: false, seed_cleared: false }
    }

    /// True if there is a gradient with a content, or one that can be observed.
    pub(super) fn has_gradient(&self) -> bool {
        self.grad.as_ref().is_some_and(|g| !g.is_empty() || g.is_observed())
    }

    /// True if the last backward run did not keep the gradient.
    pub(super) fn has_lost_gradient(&self) -> bool {
        self.grad_elided && self.grad.as_ref().is_none_or(|g| g.is_empty())
    }
}

impl Core {
    /// Addresses of the arrays' memory, as far as that is known without waiting.
    pub(super) fn blocks(&self, name: &str) -> Vec<(usize, String)> {
        let Ok(arrays) = self.arrays.try_lock() else { return Vec::new() };
        let mut found = Vec::new();
        let mut note = |a: &NdArray, what: &str| {
            if let Some((addresses, shape)) = a.try_addresses() {
                found.extend(addresses.map(|p| (p, format!("{what}'{name}' {shape}"))));
            }
        };
        note(&arrays.data, "");
        if let Some(grad) = &arrays.grad {
            note(grad, "gradient of ");
        }
        found
    }

    fn new(data: NdArray) -> Arc<Core> {
        Core::over(Arrays::new(data), 0)
    }

    fn over(arrays: Arrays, version: u64) -> Arc<Core> {
        let (arrays, version) = (Mutex::new(arrays), AtomicU64::new(version));
        Arc::new(Core { id: next_id(), arrays, version, since: AtomicU64::new(0) })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Arrays> {
        self.arrays.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// It has another data array now.
    fn exchanged(&self) {
        EXCHANGES.fetch_add(1, Relaxed);
        self.since.store(next_time(), Relaxed);
        self.changed();
    }

    fn changed(&self) {
        self.version.fetch_add(1, Relaxed);
        EPOCH.fetch_add(1, Relaxed);
    }
}

pub(crate) struct VarNode {
    pub(crate) id: u64,
    /// Another one when the variable takes the place of another and its unlinked copies stay what they are.
    core: Mutex<Arc<Core>>,
    pub(super) handles: AtomicU32,
    version: AtomicU64,
    /// Part of some plan: changes must be noticed.
    planned: AtomicBool,
    /// Computed at once under `recompute`: the data goes when the last handle does, and is computed again when wanted.
    pub(crate) sheds: AtomicBool,
    /// What is kept with it belongs to a garbage collector (Python's).
    is_foreign: AtomicBool,
    state: Mutex<VarState>,
}

pub(crate) struct VarState {
    /// As set by the user.
    pub(crate) need_grad: Option<bool>,
    /// As inherited from the inputs of the parent.
    pub(crate) inherited: bool,
    /// What is inherited, if the user says it instead of the inputs: `Some(None)` is nothing at all.
    by_hand: Option<Option<bool>>,
    pub(crate) parent: Option<(Arc<FnNode>, u32)>,
    pub(crate) consumers: SmallVec<[Weak<FnNode>; 2]>,
    pub(crate) persistent: bool,
    pub(crate) prohibit_clear_data: bool,
    /// Nothing may take its place.
    fixed: bool,
    pub(crate) recompute: bool,
    pub(crate) name: Option<Arc<str>>,
    /// Whatever the user wants to keep with the variable.
    pub(crate) info: Option<Info>,
    /// Plans whose root this variable is.
    pub(crate) plans: plan::Cache,
    /// Computed when it was made, and its history is gone: running it again does nothing.
    pub(crate) at_once: bool,
}

impl VarState {
    /// Takes over what the inputs say, unless the user says otherwise.
    pub(crate) fn inherit(&mut self, inherited: bool) {
        self.inherited = self.state_by_hand().unwrap_or(inherited);
    }

    fn state_by_hand(&self) -> Option<bool> {
        self.by_hand.map(|state| state == Some(true))
    }

    /// The parent, taken away: what has none inherits nothing.
    pub(crate) fn take_parent(&mut self) -> Option<(Arc<FnNode>, u32)> {
        node::note_change();
        self.inherit(false);
        self.parent.take()
    }

    /// Its data stays whatever the clear flags say.
    pub(crate) fn keeps_data(&self) -> bool {
        self.persistent || self.prohibit_clear_data
    }

    /// `need_grad` as set for this variable, whatever its inputs say.
    pub(crate) fn own_need_grad(&self) -> Option<bool> {
        self.need_grad.or(self.state_by_hand())
    }
}

/// What a user keeps with a variable.
pub type Info = Arc<dyn std::any::Any + Send + Sync>;

pub(crate) fn exchanges() -> u64 {
    EXCHANGES.load(Relaxed)
}

impl VarNode {
    pub(crate) fn new(data: NdArray, need_grad: Option<bool>) -> VarRef {
        VarNode::over(Core::new(data), need_grad)
    }

    /// A variable without history over the data of `v` and another gradient.
    pub(crate) fn stand_in(v: &VarRef, grad: NdArray) -> VarRef {
        let node = VarNode::new(v.data(), Some(v.need_grad()));
        node.core().lock().grad = Some(VariableArray::new(grad));
        node
    }

    /// An output that was dropped, under its old number, with the `core` that unlinked copies still have.
    pub(crate) fn revived(id: u64, core: Option<Arc<Core>>, data: NdArray) -> VarRef {
        let node = VarNode::numbered(id, core.unwrap_or_else(|| Core::new(data)), None);
        node.mark_planned();
        node
    }

    fn over(core: Arc<Core>, need_grad: Option<bool>) -> VarRef {
        VarNode::numbered(next_id(), core, need_grad)
    }

    fn numbered(id: u64, core: Arc<Core>, need_grad: Option<bool>) -> VarRef {
        LIVE.fetch_add(1, Relaxed);
        let state = VarState {
            need_grad,
            inherited: false,
            by_hand: None,
            parent: None,
            consumers: SmallVec::new(),
            persistent: false,
            prohibit_clear_data: false,
            fixed: false,
            recompute: false,
            name: None,
            info: None,
            plans: plan::Cache::default(),
            at_once: false,
        };
        Arc::new(VarNode {
            id,
            core: Mutex::new(core),
            handles: AtomicU32::new(0),
            version: AtomicU64::new(0),
            planned: AtomicBool::new(false),
            sheds: AtomicBool::new(false),
            is_foreign: AtomicBool::new(false),
            state: Mutex::new(state),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, VarState> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The state, unless another thread is at work on it.
    #[cfg(feature = "python")]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, VarState>> {
        self.state.try_lock().ok()
    }

    pub(super) fn core(&self) -> MutexGuard<'_, Arc<Core>> {
        self.core.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(crate) fn data(&self) -> NdArray {
        NdArray::clone(&self.core().lock().data)
    }

    /// Equal for a variable and its unlinked copies.
    pub(crate) fn identity(&self) -> u64 {
        self.core().id
    }

    pub(crate) fn shape(&self) -> Shape {
        self.core().lock().data.shape()
    }

    /// The gradient array, made when first asked for.
    pub(crate) fn grad(&self) -> NdArray {
        let core = self.core();
        let mut s = core.lock();
        let shape = s.data.shape();
        NdArray::clone(s.grad.get_or_insert_with(|| VariableArray::new(NdArray::of_engine(shape))))
    }

    /// The gradient array as users get it: one that backward did not keep does not read as zeros.
    pub(crate) fn shown_grad(&self) -> NdArray {
        let grad = self.grad();
        if self.core().lock().has_lost_gradient() {
            grad.storage().mark_dropped();
        }
        grad
    }

    /// The gradient array, if it was asked for yet.
    pub(crate) fn existing_grad(&self) -> Option<NdArray> {
        self.core().lock().grad.as_deref().cloned()
    }

    /// Puts another gradient array in the place of this one; gives the old one.
    pub(crate) fn swap_grad(&self, grad: Option<NdArray>) -> Option<NdArray> {
        let old = std::mem::replace(&mut self.core().lock().grad, grad.map(VariableArray::new));
        old.as_deref().cloned()
    }

    /// Takes the arrays of another variable, and what is known of them. Unlinked copies of this one keep those that they
    /// have.
    pub(crate) fn take_arrays(&self, other: &VarNode) {
        let grad = Some(VariableArray::new(other.grad()));
        let arrays = {
            let from = other.core();
            let from = from.lock();
            let data = VariableArray::new(NdArray::clone(&from.data));
            Arrays { data, grad, grad_elided: from.grad_elided, seed_cleared: false }
        };
        if self.is_copied() {
            let new = Core::over(arrays, self.core().version.load(Relaxed));
            new.exchanged();
            let old = std::mem::replace(&mut *self.core(), new);
            drop(old);
            return;
        }
        let old = std::mem::replace(&mut *self.core().lock(), arrays);
        drop(old);
        self.core().exchanged();
    }

    /// The script has written its data since the function ran that makes it, or has put another array in its place.
    pub(crate) fn is_overwritten(&self) -> bool {
        let storage = self.data().storage();
        let is_as_made = |f: Arc<FnNode>| storage.is_as_at(f.ran()) && self.has_its_array_since(f.ran());
        !storage.is_empty() && self.parent().is_some_and(|f| !is_as_made(f))
    }

    /// It has had its data array since that time, or longer.
    pub(crate) fn has_its_array_since(&self, time: u64) -> bool {
        self.core().since.load(Relaxed) <= time
    }

    pub(crate) fn set_grad_elided(&self, elided: bool) {
        self.core().lock().grad_elided = elided;
    }

    /// Notes whether the last backward run has kept no gradient. If it has not: the array that an earlier one has left, and
    /// whether it is observed.
    pub(crate) fn note_elided(&self, elided: bool) -> Option<(Option<NdArray>, bool)> {
        let is_held = self.is_held();
        let core = self.core();
        let mut arrays = core.lock();
        arrays.grad_elided = elided;
        let is_observed = || is_held || Observed::of(&arrays).grad;
        elided.then(|| (arrays.grad.as_deref().cloned(), is_observed()))
    }

    pub(crate) fn set_seed_cleared(&self, cleared: bool) {
        self.core().lock().seed_cleared = cleared;
    }

    #[cfg(feature = "python")]
    pub(crate) fn seed_was_cleared(&self) -> bool {
        self.core().lock().seed_cleared
    }

    pub(crate) fn parent(&self) -> Option<Arc<FnNode>> {
        self.lock().parent.as_ref().map(|(f, _)| f.clone())
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Relaxed) + self.core().version.load(Relaxed)
    }

    pub(crate) fn mark_planned(&self) {
        self.planned.store(true, Relaxed);
    }

    pub(crate) fn is_planned(&self) -> bool {
        self.planned.load(Relaxed)
    }

    /// Tells plans that something about this variable changed.
    pub(crate) fn changed(&self) {
        self.version.fetch_add(1, Relaxed);
        if self.planned.load(Relaxed) {
            EPOCH.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn set_recompute(&self, on: bool) {
        self.lock().recompute = on;
        if !on {
            self.sheds.store(false, Relaxed);
        }
        self.changed();
    }

    /// Drops the data if it can be computed again and is observed by the `own` handles of the caller alone.
    fn shed(&self, own: u32) {
        if !self.sheds.load(Relaxed) || self.observed_beyond(own).data || self.lock().keeps_data() {
            return;
        }
        let storage = self.data().storage();
        if let Some(f) = self.parent().filter(|f| storage.is_as_at(f.ran())) {
            self.data().lose(&maker(&f), false);
        }
    }

    pub(crate) fn is_foreign(&self) -> bool {
        self.is_foreign.load(Relaxed)
    }

    /// User code made it, or something of the user's is kept with it, or with what is before it.
    pub(crate) fn has_user_code(&self) -> bool {
        self.is_foreign() || self.parent().is_some_and(|f| f.user_code.load(Relaxed))
    }

    /// What is kept with it belongs to a garbage collector: all functions behind it are told.
    #[cfg(feature = "python")]
    pub(crate) fn set_foreign(&self) {
        self.is_foreign.store(true, Relaxed);
        let mut todo: Vec<Weak<FnNode>> = self.lock().consumers.to_vec();
        while let Some(f) = todo.pop() {
            let new = f.upgrade().filter(|f| !f.user_code.swap(true, Relaxed));
            let outputs = new.map_or(Default::default(), |f| f.living_outputs());
            outputs.iter().for_each(|y| todo.extend(y.lock().consumers.iter().cloned()));
        }
    }

    /// An unlinked copy has its arrays too.
    pub(crate) fn is_copied(&self) -> bool {
        Arc::strong_count(&self.core()) > 1
    }

    /// Its data was not kept, and can be computed again.
    pub(crate) fn is_lost(&self) -> bool {
        self.data().storage().is_lost()
    }

    pub(crate) fn need_grad(&self) -> bool {
        let s = self.lock();
        s.need_grad.unwrap_or(s.inherited)
    }
}

impl Drop for VarNode {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Relaxed);
        let s = self.state.get_mut().unwrap_or_else(|e| e.into_inner());
        flags::set_by_hand(s, None);
        let plans = std::mem::take(&mut s.plans);
        if let Some((parent, i)) = s.parent.take() {
            parent.output_dropped(i as usize, self.core.get_mut().unwrap_or_else(|e| e.into_inner()));
            deferred_drop::later(parent);
        }
        drop(plans);
    }
}
