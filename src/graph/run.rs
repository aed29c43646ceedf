//! Running graphs: forward, backward, forward_all.

use super::callbacks::{self, CommunicatorBackwardCallback};
use super::plan::{self, Closed, ForwardOptions};
use super::variable::{VarRef, Variable};
use super::{FunctionRef, hooks};
use crate::array::NdArray;
use crate::error::{Error, Result};

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
    /// Drop the array that the pass starts with as soon as it is used.
    pub clear_initial_grad: bool,
}

impl Default for BackwardOptions {
    fn default() -> Self {
        BackwardOptions { seed: Seed::Value(1.0), clear_buffer: false, clear_initial_grad: false }
    }
}

/// A hook of one run: an error stops the run.
pub type RunHook<'a> = Option<&'a dyn Fn(&FunctionRef) -> Result<()>>;

/// All that can be said about a forward run; [`ForwardOptions`] alone make one too.
///
/// ```
/// use nnrs::{functions as f, graph::ForwardRun, Variable};
/// let x = Variable::from_slice(&[0.0f32], [1].into())?;
/// let y = f::exp(&f::abs(&x)?)?;
/// let seen = std::cell::RefCell::new(Vec::new());
/// let note = |f: &nnrs::graph::FunctionRef| Ok(seen.borrow_mut().push(f.name()));
/// y.forward_with(ForwardRun { pre: Some(&note), ..Default::default() })?;
/// assert_eq!(*seen.borrow(), ["abs", "exp"]);
/// # Ok::<(), nnrs::Error>(())
/// ```
#[derive(Default)]
pub struct ForwardRun<'a> {
    pub options: ForwardOptions,
    /// Functions that are not run, since they have run; those that this run has run are added.
    pub closed: Option<&'a mut Closed>,
    /// Called before each function.
    pub pre: RunHook<'a>,
    /// Called after each function.
    pub post: RunHook<'a>,
}

impl From<ForwardOptions> for ForwardRun<'_> {
    fn from(options: ForwardOptions) -> Self {
        ForwardRun { options, ..Default::default() }
    }
}

/// All that can be said about a backward run; [`BackwardOptions`] alone make one too.
#[derive(Default)]
pub struct BackwardRun<'a> {
    pub options: BackwardOptions,
    /// Told about each function that is done, after `post`, and about the end.
    pub callbacks: &'a [&'a dyn CommunicatorBackwardCallback],
    /// Called before each function.
    pub pre: RunHook<'a>,
    /// Called after each function.
    pub post: RunHook<'a>,
}

impl From<BackwardOptions> for BackwardRun<'_> {
    fn from(options: BackwardOptions) -> Self {
        BackwardRun { options, ..Default::default() }
    }
}

/// Runs the graphs behind several variables in one pass; shared parts run once.
///
/// # Errors
/// What a function or a hook says, or that a graph is running already; what was computed until then stays.
///
/// ```
/// use nnrs::{functions as f, forward_all, graph::ForwardOptions, Variable};
/// let x = Variable::from_slice(&[1.0f32], [1].into())?;
/// let h = f::sin(&x)?;
/// let (a, b) = (f::exp(&h)?, f::abs(&h)?);
/// forward_all(&[&a, &b], ForwardOptions { clear_buffer: true, ..Default::default() })?;
/// assert_eq!(b.to_vec::<f32>()?, [1.0f32.sin()]);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn forward_all<'a>(variables: &[&Variable], run: impl Into<ForwardRun<'a>>) -> Result<()> {
    let run = run.into();
    let roots: Vec<VarRef> = variables.iter().map(|v| v.node().clone()).collect();
    if roots.iter().all(|r| r.parent().is_none()) {
        return Ok(());
    }
    hooks::with(run.pre, run.post, |h| {
        let key = plan::key(run.options, h.any());
        let Some(closed) = run.closed else {
            let plan = plan::forward_plan(&roots, key)?;
            plan.fetch_roots(&roots)?;
            return plan.run(h);
        };
        let plan = plan::forward_plan_after(&roots, key, closed)?;
        plan.run(h)?;
        closed.extend(plan.nodes.iter().map(|n| n.f.id));
        Ok(())
    })
}

impl Variable {
    /// Computes this variable's data from the leaves of the graph.
    pub fn forward(&self) -> Result<()> {
        self.forward_with(ForwardOptions::default())
    }

    /// As [`Variable::forward`], with options, hooks, or functions that have run already.
    pub fn forward_with<'a>(&self, run: impl Into<ForwardRun<'a>>) -> Result<()> {
        self.check_parent("forward")?;
        forward_all(&[self], run)
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

    /// As [`Variable::backward`], with options, hooks and callbacks.
    pub fn backward_with<'a>(&self, run: impl Into<BackwardRun<'a>>) -> Result<()> {
        let BackwardRun { options, callbacks, pre, post } = run.into();
        let seed = self.seed(&options.seed)?;
        self.check_parent("backward")?;
        let told = |f: &FunctionRef| {
            post.map_or(Ok(()), |hook| hook(f))?;
            callbacks::finish_function(callbacks, f)
        };
        let after: RunHook = if callbacks.is_empty() { post } else { Some(&told) };
        if self.has_parent() {
            hooks::with(pre, after, |h| {
                let plan = plan::backward_plan(self.node(), options.clear_buffer, h.any())?;
                let _shown = h.any().then(|| Shown::new(self.node(), seed.clone()));
                plan.run(&seed, h, options.clear_initial_grad)
            })?;
        }
        callbacks::finish(callbacks)
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
