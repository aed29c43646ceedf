//! Running graphs: forward, backward, forward_all.

use super::callbacks::{CommunicatorBackwardCallback, ToldCallbacks};
use super::plan::{self, Closed, ForwardOptions};
use super::variable::{VarRef, Variable, drop_states_by_hand};
use super::{FunctionRef, hooks};
use nnrs_kernels::array::{NdArray, dropped_gradient};
use nnrs_kernels::error::{Error, Result};

/// The gradient that a backward pass starts with.
///
/// ```
/// use nnrs::{functions as f, BackwardOptions, NdArray, Seed, Variable};
/// let x = Variable::new([2]).with_need_grad(true);
/// let y = f::exp(&x)?; // exp(0) = 1
/// y.forward()?;
/// let seed = Seed::Array(NdArray::from_slice(&[3.0f32, 5.0], [2].into())?);
/// y.backward_with(BackwardOptions { seed, ..Default::default() })?;
/// assert_eq!(x.grad().to_vec::<f32>()?, [3.0, 5.0]);
/// # Ok::<(), nnrs::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Seed {
    /// The same number for all elements.
    Value(f64),
    /// An array of the variable's size.
    Array(NdArray),
    /// What the variable's own gradient holds.
    Own,
}

/// Options of a backward run; `..Default::default()` stands for what is as usual.
///
/// ```
/// use nnrs::{functions as f, BackwardOptions, Seed, Variable};
/// let x = Variable::new([2]).with_need_grad(true);
/// let h = f::exp(&x)?;
/// let y = f::sin(&h)?;
/// y.forward()?;
/// y.backward_with(BackwardOptions { seed: Seed::Value(0.5), clear_buffer: true, ..Default::default() })?;
/// assert!(h.raw_data().storage().is_empty()); // intermediate data goes when it is used
/// assert!((x.grad().to_vec::<f32>()?[0] - 0.5 * 1.0f32.cos()).abs() < 1e-6);
/// # Ok::<(), nnrs::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BackwardOptions {
    /// The gradient that it starts with: 1 unless given.
    pub seed: Seed,
    /// Drop data and gradients of intermediate variables as soon as they are used (not of persistent ones).
    pub clear_buffer: bool,
    /// With `clear_buffer`: drop the array that the pass starts with as soon as it is used, if it was given (not with
    /// [`Seed::Own`]), the variable is not persistent, and no variable has the array. Reading it afterwards is an error.
    pub clear_initial_grad: bool,
}

impl Default for BackwardOptions {
    fn default() -> Self {
        BackwardOptions { seed: Seed::Value(1.0), clear_buffer: false, clear_initial_grad: false }
    }
}

/// A hook of one run: an error stops the run.
///
/// ```
/// use nnrs::{functions as f, graph::{ForwardRun, RunHook}, Variable};
/// let pre: RunHook = Some(&|f| Err(nnrs::Error::graph(format!("before {}", f.name()))));
/// let error = f::exp(&Variable::new([2]))?.forward_with(ForwardRun { pre, ..Default::default() }).unwrap_err();
/// assert_eq!(error.to_string(), "before exp");
/// # Ok::<(), nnrs::Error>(())
/// ```
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
    /// What to clear.
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
///
/// ```
/// use nnrs::{functions as f, graph::{BackwardRun, FunctionRef}, Variable};
/// let x = Variable::new([2]).with_need_grad(true);
/// let y = f::sin(&f::exp(&x)?)?;
/// let seen = std::cell::RefCell::new(Vec::new());
/// let note = |f: &FunctionRef| Ok(seen.borrow_mut().push(f.name()));
/// y.forward()?;
/// y.backward_with(BackwardRun { post: Some(&note), ..Default::default() })?;
/// assert_eq!(*seen.borrow(), ["sin", "exp"]);
/// # Ok::<(), nnrs::Error>(())
/// ```
#[derive(Default)]
pub struct BackwardRun<'a> {
    /// What to start with, and what to clear.
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
    drop_states_by_hand(&roots, run.closed.as_deref());
    hooks::with(run.pre, run.post, |h| {
        let key = plan::key(run.options, h.any());
        let Some(closed) = run.closed else {
            return plan::forward_plan(&roots, key)?.run(h);
        };
        let plan = plan::forward_plan_after(&roots, key, closed)?;
        plan.run(h)?;
        closed.extend(plan.nodes.iter().map(|n| n.f.id));
        Ok(())
    })
}

impl Variable {
    /// What became of the runs of this variable's graph as CUDA graphs: a line for each plan, with the reason where its
    /// runs are not captured.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let y = f::exp(&Variable::new([2]))?;
    /// y.forward()?;
    /// assert!(y.cuda_graphs()[0].starts_with("forward: not captured"));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn cuda_graphs(&self) -> Vec<String> {
        self.node().lock().plans.cuda_graphs()
    }

    /// Computes this variable's data from the leaves of the graph.
    ///
    /// # Errors
    /// No function computes this variable; what a function says; the graph is running already.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::from_slice(&[-1.0f32, 2.0], [2].into())?;
    /// let y = f::abs(&x)?;
    /// y.forward()?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0]);
    /// assert!(x.forward().is_err());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn forward(&self) -> Result<()> {
        self.forward_with(ForwardOptions::default())
    }

    /// As [`Variable::forward`], with [options](ForwardOptions), or with hooks and functions that have run already
    /// ([`ForwardRun`]).
    ///
    /// # Errors
    /// As [`Variable::forward`], and what a hook says, which ends the run.
    ///
    /// ```
    /// use nnrs::{functions as f, graph::{Closed, ForwardRun}, Variable};
    /// let h = f::exp(&Variable::from_slice(&[0.0f32], [1].into())?)?;
    /// let (a, b, mut closed) = (f::sin(&h)?, f::cos(&h)?, Closed::default());
    /// a.forward_with(ForwardRun { closed: Some(&mut closed), ..Default::default() })?;
    /// b.forward_with(ForwardRun { closed: Some(&mut closed), ..Default::default() })?; // runs cos alone
    /// assert_eq!((closed.len(), b.to_vec::<f32>()?), (3, vec![1.0f32.cos()]));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
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

    /// Computes the gradients of all variables that this one depends on and that need one, and adds them to those that the
    /// leaves have; starts with 1.
    ///
    /// # Errors
    /// No function computes this variable; it was not computed yet; what a function says; intermediate data that was not kept
    /// cannot be computed again, since a leaf was written after forward read it.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::from_slice(&[0.0f32, 1.0], [2].into())?.with_need_grad(true);
    /// let y = f::sum(&f::exp(&x)?, f::Sum::default())?;
    /// y.forward()?;
    /// y.backward()?;
    /// assert_eq!(x.grad().to_vec::<f32>()?[0], 1.0);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn backward(&self) -> Result<()> {
        self.backward_with(BackwardOptions::default())
    }

    /// As [`Variable::backward`], with [options](BackwardOptions), or with hooks and callbacks ([`BackwardRun`]).
    ///
    /// # Errors
    /// As [`Variable::backward`]; a seed of another size; what a hook or callback says, which ends the run.
    ///
    /// ```
    /// use nnrs::{functions as f, graph::{BackwardOptions, Seed}, Variable};
    /// let x = Variable::from_slice(&[1.0f32, 2.0], [2].into())?.with_need_grad(true);
    /// let y = f::mul2(&x, &x, Default::default())?;
    /// y.forward()?;
    /// y.backward_with(BackwardOptions { seed: Seed::Value(10.0), ..Default::default() })?;
    /// assert_eq!(x.grad().to_vec::<f32>()?, [20.0, 40.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn backward_with<'a>(&self, run: impl Into<BackwardRun<'a>>) -> Result<()> {
        let BackwardRun { options, callbacks, pre, post } = run.into();
        ToldCallbacks::during(callbacks, |told| {
            let tell = |f: &FunctionRef| {
                post.map_or(Ok(()), |hook| hook(f))?;
                told.function(f)
            };
            self.backward_between(&options, pre, if callbacks.is_empty() { post } else { Some(&tell) })
        })
    }

    fn backward_between(&self, options: &BackwardOptions, pre: RunHook, after: RunHook) -> Result<()> {
        let seed = self.seed(options)?;
        self.check_parent("backward")?;
        let given = !matches!(options.seed, Seed::Own);
        let clear_seed = options.clear_initial_grad && options.clear_buffer && given && !self.persistent();
        if !self.has_parent() {
            return Ok(());
        }
        hooks::with(pre, after, |h| {
            let plan = plan::backward_plan(self.node(), options.clear_buffer, h.any())?;
            let _shown = h.any().then(|| SeedGuard::new(self.node(), seed.clone()));
            let h = plan::NodeHooks { has_own_seed: matches!(options.seed, Seed::Own), ..*h };
            plan.run(&seed, &h, clear_seed)
        })
    }

    fn seed(&self, options: &BackwardOptions) -> Result<NdArray> {
        let shape = self.shape();
        if let Seed::Array(a) = &options.seed {
            a.fetch()?; // it may have been dropped by an earlier pass
        }
        match &options.seed {
            Seed::Own if self.grad_was_dropped() => Err(dropped_gradient()),
            Seed::Own => Ok(self.node().grad()),
            Seed::Value(v) => {
                let a = NdArray::of_engine(shape);
                a.fill(*v)?;
                Ok(a)
            }
            // What a variable has, be it a part of it, may be cleared in the course of the run.
            Seed::Array(a)
                if a.size() == shape.size() && options.clear_buffer && (a.is_of_variable() || a.is_shared()) =>
            {
                let own = NdArray::of_engine(shape);
                own.copy_from(a)?;
                Ok(own)
            }
            Seed::Array(a) if a.size() == shape.size() => a.reshaped(shape),
            Seed::Array(a) => {
                Err(Error::shape("grad", format!("shape {shape}")).actual(a.shape()).function("backward"))
            }
        }
    }
}

/// While it lives, a variable's gradient is the seed of the run, so that hooks see what the functions see.
struct SeedGuard<'a> {
    root: &'a VarRef,
    own: Option<NdArray>,
}

impl SeedGuard<'_> {
    fn new(root: &VarRef, seed: NdArray) -> SeedGuard<'_> {
        root.set_seed_cleared(false);
        SeedGuard { root, own: root.swap_grad(Some(seed)) }
    }
}

impl Drop for SeedGuard<'_> {
    fn drop(&mut self) {
        self.root.swap_grad(self.own.take());
    }
}
