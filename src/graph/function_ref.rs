//! [`FunctionRef`]: a function of the graph, as hooks, visitors and users see it.

use super::node::FnNode;
use super::variable::Variable;
use crate::function::{ArgValue, Function, used};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A function of the graph: what hooks and visitors see.
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

    pub fn id(&self) -> u64 {
        self.0.id
    }

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

    pub fn set_tags(&self, tags: BTreeMap<String, String>) {
        *self.0.tags.lock().unwrap_or_else(|e| e.into_inner()) = tags;
    }

    pub fn inputs(&self) -> Vec<Variable> {
        self.0.all_inputs().into_iter().map(Variable::handle).collect()
    }

    pub fn outputs(&self) -> Vec<Variable> {
        self.0.outputs().into_iter().map(Variable::handle).collect()
    }

    pub fn context(&self) -> Arc<crate::Context> {
        self.0.context.clone()
    }

    pub fn function(&self) -> &Arc<dyn Function> {
        &self.0.function
    }

    /// The script line that made the node.
    pub fn origin(&self) -> Option<&str> {
        self.0.origin.as_deref()
    }
}
