//! [`FunctionRef`]: a function of the graph, as hooks, visitors and users see it.

use super::node::FnNode;
use super::variable::Variable;
use crate::function::{ArgValue, Function, used};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A function of the graph: what hooks and visitors see. It keeps the function alive, and with it the graph behind it.
///
/// ```
/// use nnrs::{functions as f, Variable};
/// let x = Variable::new([2, 3]);
/// let y = f::leaky_relu(&x, f::LeakyReLU::default())?;
/// let function = y.parent().unwrap();
/// assert_eq!((function.name(), function.class_name()), ("leaky_relu", "LeakyReLU"));
/// assert!(function.inputs()[0].is(&x) && function.outputs()[0].is(&y));
/// assert_eq!(function.arguments()[0].0, "alpha");
/// # Ok::<(), nnrs::Error>(())
/// ```
#[derive(Clone)]
pub struct FunctionRef(Arc<FnNode>);

impl FunctionRef {
    pub(crate) fn new(node: Arc<FnNode>) -> FunctionRef {
        FunctionRef(node)
    }

    pub(crate) fn node(&self) -> &Arc<FnNode> {
        &self.0
    }

    /// NNabla's name of the function's class.
    pub fn class_name(&self) -> &'static str {
        self.0.function.def().name
    }

    /// The function's name in Python.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// A number that identifies the function, in order of creation.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// The rank of its highest input: 0 where all are leaves. Functions run in this order.
    pub fn rank(&self) -> usize {
        self.0.rank()
    }

    /// The arguments by NNabla's names, as the function uses them: strides of 1, all axes and the like instead of `None`.
    ///
    /// ```
    /// use nnrs::{function::ArgValue, functions as f, Variable};
    /// let y = f::sum(&Variable::new([2, 3]), f::Sum::default())?;
    /// let arguments = y.parent().unwrap().arguments();
    /// assert_eq!(arguments[0], ("axes", ArgValue::Ints(vec![0, 1])));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn arguments(&self) -> Vec<(&'static str, ArgValue)> {
        let x: Vec<crate::Shape> = self.inputs().iter().map(Variable::shape).collect();
        used::arguments(&*self.0.function, &x)
    }

    /// Words of the user's own, by name.
    pub fn tags(&self) -> BTreeMap<String, String> {
        self.0.tags.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// Sets [`FunctionRef::tags`].
    pub fn set_tags(&self, tags: BTreeMap<String, String>) {
        *self.0.tags.lock().unwrap_or_else(|e| e.into_inner()) = tags;
    }

    /// Its inputs.
    pub fn inputs(&self) -> Vec<Variable> {
        self.0.all_inputs().into_iter().map(Variable::handle).collect()
    }

    /// Its outputs; one that was dropped comes back.
    pub fn outputs(&self) -> Vec<Variable> {
        self.0.outputs().into_iter().map(Variable::handle).collect()
    }

    /// Where and in which precision it runs.
    pub fn context(&self) -> Arc<crate::Context> {
        self.0.context.clone()
    }

    /// The implementation.
    pub fn function(&self) -> &Arc<dyn Function> {
        &self.0.function
    }

    /// The line of the Python script that made it.
    pub fn origin(&self) -> Option<&str> {
        self.0.origin.as_deref()
    }
}
