//! Variables: data, gradient, and the node that made them. [`Variable`] is a user's handle; the graph itself holds
//! [`VarRef`]s, so that the engine can tell what somebody may look at.

use super::node::FnNode;
use super::{names, plan, reap};
use crate::array::NdArray;
use crate::error::{Error, Result};
use crate::shape::Shape;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

pub(crate) type VarRef = Arc<VarNode>;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);
static LIVE: AtomicU64 = AtomicU64::new(0);
/// Raised by every change that may make a plan stale.
pub(crate) static EPOCH: AtomicU64 = AtomicU64::new(1);

/// A number for each node and variable, in order of creation.
pub(crate) fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Relaxed)
}

/// Variables that are alive.
pub fn live_variables() -> u64 {
    LIVE.load(Relaxed)
}

/// What unlinked copies of a variable share: its arrays, and its identity for users.
pub(crate) struct Core {
    id: u64,
    arrays: Mutex<Arrays>,
    version: AtomicU64,
}

struct Arrays {
    data: NdArray,
    grad: Option<NdArray>,
}

impl Core {
    /// Addresses of the arrays' memory, as far as that is known without waiting.
    pub(super) fn blocks(&self, name: &str) -> Vec<(usize, String)> {
        let Ok(arrays) = self.arrays.try_lock() else { return Vec::new() };
        let of = |a: &NdArray, what: &str| a.try_address().map(|(p, shape)| (p, format!("{what}'{name}' {shape}")));
        let grad = arrays.grad.as_ref().and_then(|g| of(g, "gradient of "));
        of(&arrays.data, "").into_iter().chain(grad).collect()
    }

    fn new(data: NdArray) -> Arc<Core> {
        Arc::new(Core { id: next_id(), arrays: Mutex::new(Arrays { data, grad: None }), version: AtomicU64::new(0) })
    }

    fn lock(&self) -> MutexGuard<'_, Arrays> {
        self.arrays.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn changed(&self) {
        self.version.fetch_add(1, Relaxed);
        EPOCH.fetch_add(1, Relaxed);
    }
}

pub(crate) struct VarNode {
    pub(crate) id: u64,
    core: Arc<Core>,
    handles: AtomicU32,
    version: AtomicU64,
    /// Part of some plan: changes must be noticed.
    planned: AtomicBool,
    /// Computed at once under `recompute`: the data goes when the last handle does, and is computed again when wanted.
    pub(crate) sheds: AtomicBool,
    state: Mutex<VarState>,
}

pub(crate) struct VarState {
    /// As set by the user.
    pub(crate) need_grad: Option<bool>,
    /// As inherited from the inputs of the parent.
    pub(crate) inherited: bool,
    pub(crate) parent: Option<(Arc<FnNode>, u32)>,
    pub(crate) consumers: SmallVec<[Weak<FnNode>; 2]>,
    pub(crate) persistent: bool,
    pub(crate) recompute: bool,
    pub(crate) name: Option<Arc<str>>,
    /// Whatever the user wants to keep with the variable.
    info: Option<Info>,
    /// Plans whose root this variable is.
    pub(crate) plans: plan::Cache,
    /// The plan that decided not to keep this variable's data.
    pub(crate) elided: Option<Weak<plan::Forward>>,
    /// Computed when it was made, and its history is gone: running it again does nothing.
    pub(crate) at_once: bool,
    /// The last backward run did not keep this variable's gradient.
    pub(crate) grad_elided: bool,
}

/// What a user keeps with a variable.
pub type Info = Arc<dyn std::any::Any + Send + Sync>;

impl VarNode {
    pub(crate) fn new(data: NdArray, need_grad: Option<bool>) -> VarRef {
        VarNode::over(Core::new(data), need_grad)
    }

    /// A variable without history over the data of `v` and another gradient. If the data was not kept, the plan of `v`
    /// can compute it for this one too: it goes under the same number.
    pub(crate) fn stand_in(v: &VarRef, grad: NdArray) -> VarRef {
        let (data, elided) = (v.data(), v.lock().elided.clone());
        let id = if data.storage().is_empty() { v.id } else { next_id() };
        let node = VarNode::numbered(id, Core::new(data), Some(v.need_grad()));
        node.core.lock().grad = Some(grad);
        node.lock().elided = elided;
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
            parent: None,
            consumers: SmallVec::new(),
            persistent: false,
            recompute: false,
            name: None,
            info: None,
            plans: plan::Cache::default(),
            elided: None,
            grad_elided: false,
            at_once: false,
        };
        Arc::new(VarNode {
            id,
            core,
            handles: AtomicU32::new(0),
            version: AtomicU64::new(0),
            planned: AtomicBool::new(false),
            sheds: AtomicBool::new(false),
            state: Mutex::new(state),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, VarState> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The state, unless somebody is at work on it.
    #[cfg(feature = "python")]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, VarState>> {
        self.state.try_lock().ok()
    }

    pub(crate) fn data(&self) -> NdArray {
        self.core.lock().data.clone()
    }

    /// Equal for a variable and its unlinked copies.
    pub(crate) fn identity(&self) -> u64 {
        self.core.id
    }

    pub(crate) fn shape(&self) -> Shape {
        self.core.lock().data.shape()
    }

    /// The gradient array, made when first asked for.
    pub(crate) fn grad(&self) -> NdArray {
        let mut s = self.core.lock();
        let shape = s.data.shape();
        s.grad.get_or_insert_with(|| NdArray::new(shape)).clone()
    }

    /// The gradient array, if anybody asked for it yet.
    pub(crate) fn existing_grad(&self) -> Option<NdArray> {
        self.core.lock().grad.clone()
    }

    /// Puts another gradient array in the place of this one; gives the old one.
    pub(crate) fn swap_grad(&self, grad: Option<NdArray>) -> Option<NdArray> {
        std::mem::replace(&mut self.core.lock().grad, grad)
    }

    /// Takes the arrays of another variable.
    pub(crate) fn set_arrays(&self, data: NdArray, grad: NdArray) {
        *self.core.lock() = Arrays { data, grad: Some(grad) };
        self.core.changed();
    }

    pub(crate) fn parent(&self) -> Option<Arc<FnNode>> {
        self.lock().parent.as_ref().map(|(f, _)| f.clone())
    }

    pub(crate) fn is_held(&self) -> bool {
        self.handles.load(Relaxed) > 0
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Relaxed) + self.core.version.load(Relaxed)
    }

    pub(crate) fn mark_planned(&self) {
        self.planned.store(true, Relaxed);
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

    /// Drops the data if it can be computed again and nobody looks at it.
    fn shed(&self) {
        if !self.sheds.load(Relaxed) || self.lock().parent.is_none() {
            return;
        }
        let data = self.data();
        if !data.is_held() {
            drop(data.storage().release());
        }
    }

    /// Its data went with its last handle.
    pub(crate) fn is_shed(&self) -> bool {
        self.sheds.load(Relaxed) && self.data().storage().is_empty()
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
        let plans = std::mem::take(&mut s.plans);
        if let Some((parent, i)) = s.parent.take() {
            parent.output_dropped(i as usize, self.core.lock().data.clone());
            reap::later(parent);
        }
        drop(plans);
    }
}

/// A variable of the computation graph: data, gradient, and how it was made. Clones are handles to one variable.
///
/// ```
/// use nnrs::{functions as f, Variable};
/// let x = Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true);
/// let y = f::leaky_relu(&x, f::LeakyReLU::default())?;
/// y.forward()?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, -0.2]);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub struct Variable {
    node: VarRef,
}

impl Clone for Variable {
    fn clone(&self) -> Variable {
        Variable::handle(self.node.clone())
    }
}

impl Drop for Variable {
    fn drop(&mut self) {
        if self.node.handles.fetch_sub(1, Relaxed) == 1 {
            if self.node.planned.load(Relaxed) {
                self.node.changed();
            }
            self.node.shed();
        }
    }
}

impl Variable {
    /// A handle to a variable of the graph.
    pub(crate) fn handle(node: VarRef) -> Variable {
        if node.handles.fetch_add(1, Relaxed) == 0 && node.planned.load(Relaxed) {
            node.changed();
        }
        Variable { node }
    }

    pub(crate) fn node(&self) -> &VarRef {
        &self.node
    }

    /// A variable of `shape` without data.
    pub fn new(shape: impl Into<Shape>) -> Variable {
        Variable::from_array(NdArray::new(shape.into()))
    }

    /// A variable over an existing array.
    pub fn from_array(data: NdArray) -> Variable {
        Variable::handle(VarNode::new(data, None))
    }

    /// A variable with a copy of `values`.
    pub fn from_slice<T: crate::dtype::Element>(values: &[T], shape: Shape) -> Result<Variable> {
        Ok(Variable::from_array(NdArray::from_slice(values, shape)?))
    }

    /// The same variable with `need_grad` set.
    pub fn with_need_grad(self, need_grad: bool) -> Variable {
        self.set_need_grad(Some(need_grad));
        self
    }

    /// A number that identifies the variable, in order of creation.
    pub fn id(&self) -> u64 {
        self.node.id
    }

    /// True if both handles are of one variable.
    pub fn is(&self, other: &Variable) -> bool {
        Arc::ptr_eq(&self.node, &other.node)
    }

    pub fn shape(&self) -> Shape {
        self.node.shape()
    }

    pub fn size(&self) -> usize {
        self.shape().size()
    }

    pub fn ndim(&self) -> usize {
        self.shape().ndim()
    }

    /// The data array. If the engine did not keep the data, it is computed again from what was kept; an error if
    /// that has changed since.
    pub fn data(&self) -> Result<NdArray> {
        plan::materialize(&self.node)?;
        Ok(self.node.data())
    }

    /// The data array as it is, without computing anything again.
    pub fn raw_data(&self) -> NdArray {
        self.node.data()
    }

    /// Puts another array of the same size in the data's place.
    pub fn set_data(&self, data: NdArray) -> Result<()> {
        let shape = self.shape();
        if data.size() != shape.size() {
            return Err(Error::shape("data", format!("{} elements as in {shape}", shape.size())).actual(data.shape()));
        }
        self.node.core.lock().data = if data.shape() == shape { data } else { data.view(shape)? };
        self.node.lock().elided = None;
        self.node.core.changed();
        Ok(())
    }

    /// The gradient array.
    pub fn grad(&self) -> NdArray {
        self.node.grad()
    }

    /// True if the last backward run did not keep this variable's gradient.
    pub fn grad_was_dropped(&self) -> bool {
        self.node.lock().grad_elided && self.grad().storage().is_empty()
    }

    /// Puts another array of the same size in the gradient's place.
    pub fn set_grad(&self, grad: NdArray) -> Result<()> {
        let shape = self.shape();
        if grad.size() != shape.size() {
            return Err(Error::shape("grad", format!("{} elements as in {shape}", shape.size())).actual(grad.shape()));
        }
        self.node.core.lock().grad = Some(if grad.shape() == shape { grad } else { grad.view(shape)? });
        self.node.lock().grad_elided = false;
        self.node.core.changed();
        Ok(())
    }

    /// The data's elements as `T`.
    pub fn to_vec<T: crate::dtype::Element>(&self) -> Result<Vec<T>> {
        self.data()?.to_vec()
    }

    /// Whether a gradient is computed for this variable: as set, or inherited from what it was computed from.
    pub fn need_grad(&self) -> bool {
        self.node.need_grad()
    }

    /// `need_grad` as set by the user, `None` if it is inherited.
    pub fn need_grad_setting(&self) -> Option<bool> {
        self.node.lock().need_grad
    }

    /// Sets `need_grad`; `None`: inherit it.
    pub fn set_need_grad(&self, need_grad: Option<bool>) {
        let mut s = self.node.lock();
        if s.need_grad != need_grad {
            s.need_grad = need_grad;
            drop(s);
            self.node.changed();
        }
    }

    /// Persistent variables keep data and gradient whatever the clear flags say.
    pub fn persistent(&self) -> bool {
        self.node.lock().persistent
    }

    pub fn set_persistent(&self, on: bool) {
        let mut s = self.node.lock();
        if s.persistent != on {
            s.persistent = on;
            drop(s);
            self.node.changed();
        }
    }

    /// Whether the data is dropped in the forward pass and computed again for the backward pass.
    pub fn recompute(&self) -> bool {
        self.node.lock().recompute
    }

    pub fn set_recompute(&self, on: bool) {
        self.node.set_recompute(on);
    }

    pub fn name(&self) -> Option<Arc<str>> {
        self.node.lock().name.clone()
    }

    pub fn set_name(&self, name: &str) {
        let name: Arc<str> = name.into();
        self.node.lock().name = Some(name.clone());
        names::note(&self.node.core, name);
    }

    /// Gives the variable a name for reports on memory alone.
    pub(crate) fn note_name(&self, name: &str) {
        names::note(&self.node.core, name.into());
    }

    /// What the user keeps with the variable.
    pub fn info(&self) -> Option<Info> {
        self.node.lock().info.clone()
    }

    /// Keeps anything with the variable.
    pub fn set_info(&self, info: Option<Info>) {
        let old = std::mem::replace(&mut self.node.lock().info, info);
        drop(old); // outside of the lock: it may be anything
    }

    /// How many variables share this one's arrays: itself and its unlinked copies.
    pub fn sharers(&self) -> usize {
        Arc::strong_count(&self.node.core)
    }

    /// Distance from the leaves; 0 for a variable that no function made.
    pub fn rank(&self) -> usize {
        self.node.parent().map_or(0, |f| f.rank() + 1)
    }

    /// Another shape; with `force` also another size. Noticed by the graphs that use the variable.
    pub fn reset_shape(&self, shape: impl Into<Shape>, force: bool) -> Result<()> {
        let shape = shape.into();
        let arrays = self.node.core.lock();
        arrays.data.reset_shape(shape.clone(), force)?;
        if let Some(g) = &arrays.grad {
            g.reset_shape(shape, force)?;
        }
        drop(arrays);
        self.node.core.changed();
        Ok(())
    }

    /// A variable that shares data and gradient arrays but has no history.
    pub fn unlinked(&self) -> Variable {
        self.unlinked_with(None)
    }

    /// As [`Variable::unlinked`], with `need_grad` set.
    pub fn unlinked_with(&self, need_grad: Option<bool>) -> Variable {
        let need_grad = need_grad.or(Some(self.need_grad()));
        Variable::handle(VarNode::over(self.node.core.clone(), need_grad))
    }

    /// Equal for a variable and its unlinked copies: they are one variable to a user.
    pub fn identity(&self) -> u64 {
        self.node.core.id
    }

    /// A variable of another shape that shares data and gradient memory.
    pub fn view(&self, shape: Shape) -> Result<Variable> {
        let (data, grad) = (self.data()?.view(shape.clone())?, self.grad().view(shape)?);
        let v = VarNode::new(data, self.need_grad_setting());
        v.core.lock().grad = Some(grad);
        Ok(Variable::handle(v))
    }

    /// True if some function made this variable.
    pub fn has_parent(&self) -> bool {
        self.node.lock().parent.is_some()
    }
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Variable({}, need_grad={})", self.shape(), self.need_grad())
    }
}
