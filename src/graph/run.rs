//! Running graphs: forward, backward, forward_all, visiting.

use super::hooks;
use super::node::FnNode;
use super::plan::{self, ForwardOptions};
use super::variable::{VarRef, Variable};
use crate::array::NdArray;
use crate::error::{Error, Result};
use crate::function::{ArgValue, Function};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The gradient that a backward pass starts with.
#[derive(Clone, Debug)]
pub enum Seed {
    /// The same number for all elements.
    Value(f64),
    /// An array of the variable's size.
    Array(NdArray),
    /// What the variable's own gradient holds.
    Own,
}

/// Options of a backward run.
#[derive(Clone, Debug)]
pub struct BackwardOptions {
    pub seed: Seed,
    /// Drop data and gradients of intermediate variables as soon as they are used.
    pub clear_buffer: bool,
}

impl Default for BackwardOptions {
    fn default() -> Self {
        BackwardOptions { seed: Seed::Value(1.0), clear_buffer: false }
    }
}

/// A hook of one run.
pub type RunHook<'a> = Option<&'a dyn Fn(&FunctionRef) -> Result<()>>;

/// Runs the graphs behind several variables in one pass; shared parts run once.
pub fn forward_all(variables: &[&Variable], options: ForwardOptions, pre: RunHook, post: RunHook) -> Result<()> {
    let roots: Vec<VarRef> = variables.iter().map(|v| v.node().clone()).collect();
    if roots.iter().all(|r| r.parent().is_none()) {
        return Ok(());
    }
    hooks::with(pre, post, |h| plan::forward_plan(&roots, plan::key(options, h.any()))?.run(h))
}

impl Variable {
    /// Computes this variable's data from the leaves of the graph.
    pub fn forward(&self) -> Result<()> {
        self.forward_with(ForwardOptions::default())
    }

    /// As [`Variable::forward`], with options.
    pub fn forward_with(&self, options: ForwardOptions) -> Result<()> {
        self.forward_hooked(options, None, None)
    }

    /// As [`Variable::forward_with`], with hooks.
    pub fn forward_hooked(&self, options: ForwardOptions, pre: RunHook, post: RunHook) -> Result<()> {
        self.check_parent("forward")?;
        forward_all(&[self], options, pre, post)
    }

    fn check_parent(&self, what: &str) -> Result<()> {
        if self.has_parent() || self.node().lock().at_once {
            return Ok(());
        }
        Err(Error::graph("the variable has no parent: no function computes it")
            .function(what)
            .hint("call it on the output of a function"))
    }

    /// Computes the gradients of all variables that this one depends on and that need one; starts with 1.
    pub fn backward(&self) -> Result<()> {
        self.backward_with(BackwardOptions::default())
    }

    /// As [`Variable::backward`], with options.
    pub fn backward_with(&self, options: BackwardOptions) -> Result<()> {
        self.backward_hooked(options, None, None)
    }

    /// As [`Variable::backward_with`], with hooks.
    pub fn backward_hooked(&self, options: BackwardOptions, pre: RunHook, post: RunHook) -> Result<()> {
        let seed = self.seed(&options.seed)?;
        self.check_parent("backward")?;
        if !self.has_parent() {
            return Ok(());
        }
        hooks::with(pre, post, |h| {
            let plan = plan::backward_plan(self.node(), options.clear_buffer, h.any())?;
            let _shown = h.any().then(|| Shown::new(self.node(), seed.clone()));
            plan.run(&seed, h)
        })
    }

    fn seed(&self, seed: &Seed) -> Result<NdArray> {
        let shape = self.shape();
        match seed {
            Seed::Own if self.grad_was_dropped() => Err(self.grad_is_gone()),
            Seed::Own => Ok(self.grad()),
            Seed::Value(v) => {
                let a = NdArray::new(shape);
                a.fill(*v)?;
                Ok(a)
            }
            Seed::Array(a) if a.size() == shape.size() => a.view(shape),
            Seed::Array(a) => {
                Err(Error::shape("grad", format!("shape {shape}")).actual(a.shape()).function("backward"))
            }
        }
    }

    /// The function that made this variable.
    pub fn parent(&self) -> Option<FunctionRef> {
        self.node().parent().map(FunctionRef::new)
    }

    /// The functions that read this variable.
    pub fn function_references(&self) -> Vec<FunctionRef> {
        let mut list: Vec<_> = self.node().lock().consumers.iter().filter_map(|c| c.upgrade()).collect();
        list.dedup_by(|a, b| Arc::ptr_eq(a, b));
        list.into_iter()
            .filter(|f| f.inputs().iter().any(|x| Arc::ptr_eq(x, self.node())))
            .map(FunctionRef::new)
            .collect()
    }

    /// Calls `f` with each function behind this variable, in the order of running.
    pub fn visit(&self, mut f: impl FnMut(&FunctionRef) -> Result<()>) -> Result<()> {
        plan::collect(&[self.node().clone()]).into_iter().try_for_each(|n| f(&FunctionRef::new(n)))
    }
}

/// While it lives, a variable's gradient is the seed of the run, so that hooks see what the functions see.
struct Shown<'a> {
    root: &'a VarRef,
    own: Option<NdArray>,
}

impl Shown<'_> {
    fn new(root: &VarRef, seed: NdArray) -> Shown<'_> {
        Shown { root, own: root.swap_grad(Some(seed)) }
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.root.swap_grad(self.own.take());
    }
}

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

    pub fn arguments(&self) -> Vec<(&'static str, ArgValue)> {
        self.0.function.arguments()
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
