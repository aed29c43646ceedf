//! A user's handle to a variable.

use super::{Info, VarNode, VarRef};
use crate::graph::{mode, names};
use nnrs_kernels::array::{NdArray, VariableArray};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A variable of the computation graph: data, gradient, and how it was made. Clones are handles to one variable, which lives
/// as long as a handle or a function that reads it. Any thread may use it; one run of a graph at a time.
///
/// ```
/// use nnrs::{functions as f, Variable};
/// let x = Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true);
/// let y = f::leaky_relu(&x, f::LeakyReLU::default())?;
/// y.forward()?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, -0.2]);
/// # Ok::<(), nnrs::Error>(())
/// ```
///
/// `+`, `-`, `*` and `/` take variables and numbers, and give a `Result` too:
///
/// ```
/// use nnrs::Variable;
/// let x = Variable::from_slice(&[1.0f32, 2.0, 4.0], [3].into())?;
/// let y = ((1.0 - &x)? * &x)?;
/// let z = (-(&y / 2.0)?)?;
/// z.forward()?;
/// assert_eq!(z.to_vec::<f32>()?, [0.0, 1.0, 6.0]);
/// assert!((&x + &Variable::new([2])).is_err());
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
            self.node.shed(0);
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

    /// A variable of `shape` without data: it reads as zeros until something is written. Like all new variables it is marked
    /// for [recomputation](Variable::recompute) if [that mode](crate::graph::mode::set_recompute) is on.
    ///
    /// ```
    /// use nnrs::Variable;
    /// let (x, scalar) = (Variable::new([2, 3]), Variable::default());
    /// assert_eq!((x.shape(), scalar.shape()), ([2, 3].into(), [].into()));
    /// ```
    pub fn new(shape: impl Into<Shape>) -> Variable {
        Variable::from_array(NdArray::new(shape.into()))
    }

    /// A variable over an existing array, without a copy.
    ///
    /// ```
    /// use nnrs::{NdArray, Variable};
    /// let a = NdArray::from_slice(&[1.0f32, 2.0], [2].into())?;
    /// let x = Variable::from_array(a.clone()).with_need_grad(true);
    /// a.fill(3.0)?;
    /// assert_eq!(x.to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn from_array(data: NdArray) -> Variable {
        Variable::made(VarNode::new(data, None))
    }

    /// A handle to a new variable, which takes [`recompute`](Variable::recompute) from the mode.
    fn made(node: VarRef) -> Variable {
        node.lock().recompute = mode::recompute();
        Variable::handle(node)
    }

    /// A variable with a copy of `values`, row by row, of their type.
    ///
    /// # Errors
    /// Another number of values than `shape` has elements; not enough memory.
    ///
    /// ```
    /// use nnrs::Variable;
    /// let x = Variable::from_slice(&[1i32, 2, 3, 4], [2, 2].into())?;
    /// assert_eq!(x.to_vec::<f64>()?, [1.0, 2.0, 3.0, 4.0]);
    /// assert!(Variable::from_slice(&[1.0f32], [2].into()).is_err());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn from_slice<T: nnrs_kernels::dtype::Element>(values: &[T], shape: Shape) -> Result<Variable> {
        Ok(Variable::from_array(NdArray::from_slice(values, shape)?))
    }

    /// A variable with a copy of an array of the crate ndarray, whatever its layout.
    ///
    /// # Errors
    /// Not enough memory.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let a = ndarray::arr2(&[[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// let y = f::sum(&Variable::from_ndarray(&a.t())?, f::Sum { axis: Some(vec![0]), keepdims: false })?;
    /// y.forward()?;
    /// assert_eq!(y.to_ndarray::<f32>()?, a.sum_axis(ndarray::Axis(1)).into_dyn());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn from_ndarray<S: ndarray::Data, D: ndarray::Dimension>(array: &ndarray::ArrayBase<S, D>) -> Result<Variable>
    where
        S::Elem: nnrs_kernels::dtype::Element,
    {
        Ok(Variable::from_array(NdArray::from_ndarray(array)?))
    }

    /// A copy of the data as an array of the crate ndarray, converted to `T`.
    ///
    /// # Errors
    /// As [`Variable::data`].
    ///
    /// ```
    /// let x = nnrs::Variable::from_slice(&[1.5f32, 2.0], [2, 1].into())?;
    /// assert_eq!(x.to_ndarray::<f64>()?, ndarray::arr2(&[[1.5], [2.0]]).into_dyn());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn to_ndarray<T: nnrs_kernels::dtype::Element>(&self) -> Result<ndarray::ArrayD<T>> {
        self.data()?.to_ndarray()
    }

    /// A number that identifies the variable, in order of creation. Clones of a handle have the same.
    ///
    /// ```
    /// let (a, b) = (nnrs::Variable::new([2]), nnrs::Variable::new([2]));
    /// assert!(a.id() < b.id() && a.id() == a.clone().id());
    /// ```
    pub fn id(&self) -> u64 {
        self.node.id
    }

    /// True if both handles are of one variable.
    ///
    /// ```
    /// let x = nnrs::Variable::new([2]);
    /// assert!(x.is(&x.clone()) && !x.is(&x.unlinked()));
    /// ```
    pub fn is(&self, other: &Variable) -> bool {
        Arc::ptr_eq(&self.node, &other.node)
    }

    /// The sizes of the axes; row-major.
    ///
    /// ```
    /// assert_eq!(nnrs::Variable::new([2, 3]).shape(), [2, 3].into());
    /// ```
    pub fn shape(&self) -> Shape {
        self.node.shape()
    }

    /// Number of elements; 1 for shape ().
    ///
    /// ```
    /// assert_eq!((nnrs::Variable::new([2, 3]).size(), nnrs::Variable::new([]).size()), (6, 1));
    /// ```
    pub fn size(&self) -> usize {
        self.shape().size()
    }

    /// Number of axes.
    ///
    /// ```
    /// assert_eq!(nnrs::Variable::new([2, 3]).ndim(), 2);
    /// ```
    pub fn ndim(&self) -> usize {
        self.shape().ndim()
    }

    /// The data array. If the engine did not keep the data, it is computed again from what was kept.
    ///
    /// # Errors
    /// What was kept has changed since, or is gone.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::from_slice(&[0.0f32], [1].into())?;
    /// let y = f::sin(&f::exp(&x)?)?;
    /// y.forward()?; // exp's output has no handle: it is not kept
    /// let h = y.parent().unwrap().inputs().swap_remove(0);
    /// assert_eq!(h.data()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn data(&self) -> Result<NdArray> {
        let data = self.raw_data();
        data.fetch()?;
        Ok(data)
    }

    /// The data array as it is, without computing anything again: empty where the engine did not keep it.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let y = f::sin(&f::exp(&Variable::new([2]))?)?;
    /// y.forward()?; // exp's output has no handle: it is not kept
    /// assert!(y.parent().unwrap().inputs()[0].raw_data().storage().is_empty());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn raw_data(&self) -> NdArray {
        self.node.data().handle()
    }

    /// Puts another array of the same shape in the data's place, without a copy.
    ///
    /// # Errors
    /// Another shape.
    ///
    /// ```
    /// use nnrs::{NdArray, Variable};
    /// let x = Variable::new([2]);
    /// x.set_data(NdArray::from_slice(&[1.0f32, 2.0], [2].into())?)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn set_data(&self, data: NdArray) -> Result<()> {
        let shape = self.shape();
        if data.shape() != shape {
            let e = Error::shape("data", format!("shape {shape}")).actual(data.shape()).function("Variable.data");
            return Err(e.hint("NdArray.view shows an array's elements in another shape"));
        }
        let core = self.node.core();
        let mut arrays = core.lock();
        let old = std::mem::replace(&mut arrays.data, VariableArray::new(data));
        drop(arrays);
        core.exchanged();
        drop(core);
        drop(old);
        Ok(())
    }

    /// The gradient array, of the data's shape; made, as zeros, when first asked for. [`backward`](Variable::backward) adds
    /// to it. Reading one that backward [has not kept](Variable::grad_was_dropped) is an error.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::from_slice(&[0.0f32], [1].into())?.with_need_grad(true);
    /// let y = f::exp(&x)?;
    /// y.forward()?;
    /// assert_eq!(x.grad().to_vec::<f32>()?, [0.0]);
    /// y.backward()?;
    /// assert_eq!(x.grad().to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn grad(&self) -> NdArray {
        self.node.shown_grad().handle()
    }

    /// True if the last backward run did not keep this variable's gradient.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::new([2]).with_need_grad(true);
    /// let y = f::sin(&f::exp(&x)?)?;
    /// y.forward()?;
    /// y.backward()?; // exp's output has no handle
    /// assert!(y.parent().unwrap().inputs()[0].grad_was_dropped() && !x.grad_was_dropped());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn grad_was_dropped(&self) -> bool {
        self.node.core().lock().has_lost_gradient()
    }

    /// The user wrote the gradient: what backward runs know of that of an intermediate variable is over.
    #[cfg(feature = "python")]
    pub(crate) fn grad_was_set(&self) {
        if self.has_parent() {
            self.node.changed();
        }
    }

    /// Puts another array of the same shape in the gradient's place, without a copy.
    ///
    /// # Errors
    /// Another shape.
    ///
    /// ```
    /// use nnrs::{NdArray, Variable};
    /// let x = Variable::new([2]);
    /// x.set_grad(NdArray::from_slice(&[1.0f32, 2.0], [2].into())?)?;
    /// assert!(x.grad().to_vec::<f32>()? == [1.0, 2.0] && x.set_grad(NdArray::new([3].into())).is_err());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn set_grad(&self, grad: NdArray) -> Result<()> {
        let shape = self.shape();
        if grad.shape() != shape {
            let e = Error::shape("grad", format!("shape {shape}")).actual(grad.shape()).function("Variable.grad");
            return Err(e.hint("NdArray.view shows an array's elements in another shape"));
        }
        let core = self.node.core();
        let mut arrays = core.lock();
        arrays.grad_elided = false;
        let old = arrays.grad.replace(VariableArray::new(grad));
        drop(arrays);
        core.changed();
        drop(core);
        drop(old);
        Ok(())
    }

    /// The data's elements, row by row, converted to `T`.
    ///
    /// # Errors
    /// As [`Variable::data`].
    ///
    /// ```
    /// let x = nnrs::Variable::from_slice(&[1.5f32, 2.0], [2].into())?;
    /// assert_eq!((x.to_vec::<f64>()?, x.to_vec::<i32>()?), (vec![1.5, 2.0], vec![1, 2]));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn to_vec<T: nnrs_kernels::dtype::Element>(&self) -> Result<Vec<T>> {
        self.data()?.to_vec()
    }

    /// The name, if it has one. Parameters have theirs; what says that memory is used up shows it.
    ///
    /// ```
    /// let x = nnrs::Variable::new([2]);
    /// assert_eq!(x.name(), None);
    /// x.set_name("pixels");
    /// assert_eq!(x.name().as_deref(), Some("pixels"));
    /// ```
    pub fn name(&self) -> Option<Arc<str>> {
        self.node.lock().name.clone()
    }

    /// Sets [`Variable::name`].
    ///
    /// ```
    /// let x = nnrs::Variable::new([2]);
    /// x.set_name("pixels");
    /// x.set_name("colours");
    /// assert_eq!(x.name().as_deref(), Some("colours"));
    /// ```
    pub fn set_name(&self, name: &str) {
        let name: Arc<str> = name.into();
        self.node.lock().name = Some(name.clone());
        names::note(&self.node.core(), name);
    }

    /// Gives the variable a name for reports on memory alone.
    pub(crate) fn note_name(&self, name: &str) {
        names::note(&self.node.core(), name.into());
    }

    /// What the user keeps with the variable.
    ///
    /// ```
    /// assert!(nnrs::Variable::new([2]).info().is_none());
    /// ```
    pub fn info(&self) -> Option<Info> {
        self.node.lock().info.clone()
    }

    /// Keeps anything with the variable.
    ///
    /// ```
    /// let x = nnrs::Variable::new([2]);
    /// x.set_info(Some(std::sync::Arc::new("first layer")));
    /// assert_eq!(x.info().unwrap().downcast_ref::<&str>(), Some(&"first layer"));
    /// ```
    pub fn set_info(&self, info: Option<Info>) {
        let old = std::mem::replace(&mut self.node.lock().info, info);
        drop(old); // outside of the lock: it may be anything
    }

    /// How many variables share this one's arrays: itself and its unlinked copies.
    ///
    /// ```
    /// let x = nnrs::Variable::new([2]);
    /// let copy = x.unlinked();
    /// assert_eq!((x.sharers(), copy.sharers(), nnrs::Variable::new([2]).sharers()), (2, 2, 1));
    /// ```
    pub fn sharers(&self) -> usize {
        Arc::strong_count(&self.node.core())
    }

    /// The number of functions on the longest way from a leaf; 0 for a variable that no function made.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::new([2]);
    /// assert_eq!((x.rank(), f::exp(&f::exp(&x)?)?.rank()), (0, 2));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn rank(&self) -> usize {
        self.parent().map_or(0, |f| f.rank() + 1)
    }

    /// Another shape; with `force` also another size, which drops the data. Noticed by the graphs that use the variable.
    ///
    /// # Errors
    /// Another size without `force`; one that does not fit into memory.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::new([8, 3]);
    /// let y = f::exp(&x)?;
    /// x.reset_shape([5, 3], true)?;
    /// y.forward()?;
    /// assert_eq!(y.shape(), [5, 3].into());
    /// assert!(x.reset_shape([4], false).is_err());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn reset_shape(&self, shape: impl Into<Shape>, force: bool) -> Result<()> {
        let shape = shape.into().checked()?;
        let core = self.node.core();
        let mut arrays = core.lock();
        let is_new = shape.size() != arrays.data.size();
        arrays.data.reset_shape(shape.clone(), force)?;
        if let Some(g) = &arrays.grad {
            g.reset_shape(shape, force)?;
        }
        arrays.grad_elided &= !is_new; // a new array has not been dropped
        drop(arrays);
        core.changed();
        drop(core);
        self.mark_need_setup();
        Ok(())
    }

    /// A variable that shares data and gradient arrays but has no history: gradients end there. It needs none, as long as
    /// `need_grad` is not set.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let y = f::exp(&Variable::from_slice(&[0.0f32], [1].into())?.with_need_grad(true))?;
    /// let leaf = y.unlinked();
    /// y.forward()?;
    /// assert!(leaf.parent().is_none() && !leaf.need_grad_is_set() && leaf.to_vec::<f32>()? == [1.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn unlinked(&self) -> Variable {
        Variable::made(VarNode::over(self.node.core().clone(), None))
    }

    /// As [`Variable::unlinked`], with `need_grad` set; `None`: to what [`Variable::need_grad_state`] of this variable is.
    ///
    /// ```
    /// let x = nnrs::Variable::new([2]).with_need_grad(true);
    /// assert!(x.unlinked_with(None).need_grad() && !x.unlinked_with(Some(false)).need_grad());
    /// ```
    pub fn unlinked_with(&self, need_grad: Option<bool>) -> Variable {
        self.unlinked().with_need_grad(need_grad.unwrap_or_else(|| self.need_grad_state()))
    }

    /// Equal for a variable and its unlinked copies: they are one variable to a user.
    ///
    /// ```
    /// let (x, y) = (nnrs::Variable::new([2]), nnrs::Variable::new([2]));
    /// assert!(x.identity() == x.unlinked().identity() && x.identity() != y.identity());
    /// ```
    pub fn identity(&self) -> u64 {
        self.node.core().id
    }

    /// A variable of another shape that shares data and gradient memory, without history.
    ///
    /// # Errors
    /// A shape of another size; as [`Variable::data`].
    ///
    /// ```
    /// let x = nnrs::Variable::from_slice(&[1.0f32, 2.0], [2].into())?;
    /// let row = x.view([1, 2].into())?;
    /// x.data()?.fill(3.0)?;
    /// assert!(row.to_vec::<f32>()? == [3.0, 3.0] && x.view([3].into()).is_err());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn view(&self, shape: Shape) -> Result<Variable> {
        self.view_in("Variable.view", shape)
    }

    /// As [`view`](Variable::view); errors name `function`.
    pub(crate) fn view_in(&self, function: &str, shape: Shape) -> Result<Variable> {
        let view = |a: NdArray| a.reshaped(shape.clone()).map_err(|e| e.function(function));
        let (data, grad) = (view(self.data()?)?, view(self.grad())?);
        let v = VarNode::new(data, Some(self.need_grad_state()));
        v.core().lock().grad = Some(VariableArray::new(grad));
        Ok(Variable::made(v))
    }

    /// A variable of its own with a copy of the data, [`need_grad`](Variable::need_grad) set to what it is here, and with
    /// `copy_grad` a copy of the gradient too. The name, what [`Variable::info`] gives, the other flags and the history are not copied.
    ///
    /// # Errors
    /// As [`Variable::data`]; not enough memory.
    ///
    /// ```
    /// use nnrs::Variable;
    /// let x = Variable::from_slice(&[1.0f32, 2.0], [2].into())?;
    /// let copy = x.deep_copy(false)?;
    /// x.data()?.fill(0.0)?;
    /// assert_eq!(copy.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn deep_copy(&self, copy_grad: bool) -> Result<Variable> {
        let copy = Variable::from_array(self.data()?.deep_copy()?);
        copy.set_need_grad(self.need_grad());
        if copy_grad {
            copy.set_grad(self.grad().deep_copy()?)?;
        }
        Ok(copy)
    }
}

impl Default for Variable {
    /// A variable of shape () without data.
    fn default() -> Variable {
        Variable::new([])
    }
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Variable({}, need_grad={})", self.shape(), self.need_grad_state())
    }
}
