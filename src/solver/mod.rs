//! Solvers: they update parameters by their gradients. One solver = one file with its update rule as one expression, from
//! which comes the pass over all parameters at once.
//!
//! ```
//! use nnrs::solver::{Adam, AdamW, Momentum, Nesterov, Sgd, Solver};
//! use nnrs::{functions as f, Variable};
//! let solvers: [Solver; 5] = [
//!     Sgd { lr: 0.1 }.into(),
//!     Momentum { lr: 0.1, momentum: 0.5 }.into(),
//!     Nesterov { lr: 0.1, momentum: 0.5 }.into(),
//!     Adam { alpha: 0.1, ..Default::default() }.into(),
//!     AdamW { alpha: 0.1, wd: 1e-3, ..Default::default() }.into(),
//! ];
//! for solver in solvers {
//!     let w = Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true);
//!     let loss = f::sum(&(&w * &w)?, f::Sum::default())?;
//!     solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
//!     for _ in 0..200 {
//!         loss.forward()?;
//!         solver.zero_grad()?;
//!         loss.backward()?;
//!         solver.update()?;
//!     }
//!     assert!(w.to_vec::<f32>()?.iter().all(|w| w.abs() < 1e-2), "{}", solver.name());
//! }
//! # Ok::<(), nnrs::Error>(())
//! ```

mod fused;
mod gradient_kernels;
mod gradients;
pub mod hooks;
mod params;
mod rule;
mod states;

mod adabelief;
mod adabound;
mod adadelta;
mod adagrad;
mod adam;
mod adamax;
mod adamw;
mod amsbound;
mod amsgrad;
mod lamb;
mod lars;
mod lion;
mod momentum;
mod nesterov;
mod rmsprop;
mod rmspropgraves;
mod sgd;
mod sgdw;

use crate::function::ArgValue;
use crate::graph::Variable;
pub use adabelief::AdaBelief;
pub use adabound::AdaBound;
pub use adadelta::Adadelta;
pub use adagrad::Adagrad;
pub use adam::Adam;
pub use adamax::Adamax;
pub use adamw::AdamW;
pub use amsbound::AMSBound;
pub use amsgrad::AMSGRAD;
use fused::{AnyRule, Counted};
pub use hooks::Hooks;
pub use lamb::Lamb;
pub use lars::Lars;
pub use lion::Lion;
pub use momentum::Momentum;
pub use nesterov::Nesterov;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::kernel::update::{TensorUpdate, Update};
use params::{Entry, SolverParameters};
pub use params::{Keep, State};
pub use rmsprop::RMSprop;
pub use rmspropgraves::RMSpropGraves;
pub use rule::{Declared, Held, Number, Rule, Scalars, SolverDef, UpdateStep, create};
pub use sgd::Sgd;
pub use sgdw::SgdW;
use std::sync::{Mutex, MutexGuard};

/// All solvers, in the order of the documentation.
///
/// ```
/// assert_eq!(nnrs::solver::SOLVERS.iter().filter(|solver| solver.fuses_weight_decay).count(), 5);
/// ```
pub const SOLVERS: &[&SolverDef] = &[
    Sgd::DEF,
    SgdW::DEF,
    Momentum::DEF,
    Lars::DEF,
    Nesterov::DEF,
    Adadelta::DEF,
    Adagrad::DEF,
    AdaBelief::DEF,
    RMSprop::DEF,
    RMSpropGraves::DEF,
    Adam::DEF,
    AdamW::DEF,
    AdaBound::DEF,
    Adamax::DEF,
    AMSGRAD::DEF,
    AMSBound::DEF,
    Lamb::DEF,
    Lion::DEF,
];

/// A solver: parameters, their states, and the rule that updates them.
///
/// A parameter whose gradient was zeroed and not computed since takes no part in an update: weight, states and its count
/// of steps stay as they are. All methods may be called from any thread, and from hooks.
///
/// ```
/// use nnrs::solver::{Sgd, Solver};
/// use nnrs::Variable;
/// let w = Variable::from_slice(&[1.0f32, 2.0], [2].into())?.with_need_grad(true);
/// w.grad().fill(0.5)?;
/// let solver = Solver::new(Sgd { lr: 0.1 });
/// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
/// solver.update()?;
/// assert_eq!(w.to_vec::<f32>()?, [0.95, 1.95]);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub struct Solver {
    rule: Box<dyn AnyRule>,
    update: Update,
    inner: Mutex<SolverState>,
}

struct SolverState {
    entries: SolverParameters,
    learning_rate: f64,
    /// Rate for the next update, where weight decay is fused.
    weight_decay: Option<f64>,
}

impl Solver {
    /// A solver by its rule. Arguments are rounded to float, as NNabla holds them.
    ///
    /// ```
    /// use nnrs::solver::{Sgd, Solver};
    /// assert_eq!(Solver::new(Sgd { lr: 0.1 }).learning_rate(), 0.1f32 as f64);
    /// ```
    pub fn new<const S: usize, const K: usize, const M: usize>(mut rule: impl Rule<S, K, M>) -> Solver {
        rule.round_to_float();
        let learning_rate = first_rate(&rule);
        let rule = Counted(rule);
        let update = rule.update();
        let inner = SolverState { entries: SolverParameters::of_context(), learning_rate, weight_decay: None };
        Solver { rule: Box::new(rule), update, inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, SolverState> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// NNabla's name of the solver.
    ///
    /// ```
    /// assert_eq!(nnrs::solver::Solver::new(nnrs::solver::Adam::default()).name(), "Adam");
    /// ```
    pub fn name(&self) -> &'static str {
        self.def().name
    }

    /// What is known about solvers of this kind.
    ///
    /// ```
    /// assert_eq!(nnrs::solver::Solver::new(nnrs::solver::Adam::default()).def().states, ["var", "mean"]);
    /// ```
    pub fn def(&self) -> &'static SolverDef {
        self.rule.declared().def()
    }

    /// Names of the states, in NNabla's order.
    ///
    /// ```
    /// let belief = nnrs::solver::AdaBelief { amsgrad: true, ..Default::default() };
    /// assert_eq!(nnrs::Solver::from(belief).states(), ["s_max", "mean", "var"]);
    /// ```
    pub fn states(&self) -> &'static [&'static str] {
        self.rule.declared().states()
    }

    /// Whether `weight_decay` becomes part of the next update instead of changing the gradients.
    ///
    /// ```
    /// let belief = nnrs::solver::AdaBelief { weight_decouple: true, ..Default::default() };
    /// assert!(nnrs::Solver::from(belief).fuses_weight_decay());
    /// ```
    pub fn fuses_weight_decay(&self) -> bool {
        self.rule.declared().fuses_weight_decay()
    }

    /// The arguments given to the constructor.
    ///
    /// ```
    /// use nnrs::{function::ArgValue, solver::{Sgd, Solver}};
    /// assert_eq!(Solver::new(Sgd { lr: 0.5 }).arguments(), [("lr", ArgValue::Float(0.5))]);
    /// ```
    pub fn arguments(&self) -> Vec<(&'static str, ArgValue)> {
        self.rule.declared().arguments()
    }

    /// The learning rate of the next update.
    ///
    /// ```
    /// assert_eq!(nnrs::solver::Solver::new(nnrs::solver::Sgd { lr: 0.5 }).learning_rate(), 0.5);
    /// ```
    pub fn learning_rate(&self) -> f64 {
        self.lock().learning_rate
    }

    /// Sets the learning rate of the updates to come.
    ///
    /// ```
    /// use nnrs::{solver::{Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[1.0f32, 1.0])?;
    /// solver.set_learning_rate(0.25);
    /// solver.update()?;
    /// assert_eq!(w.to_vec::<f32>()?, [0.75, -2.25]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn set_learning_rate(&self, rate: f64) {
        self.lock().learning_rate = rate as f32 as f64;
    }

    /// Gives the solver its parameters, by name; [`Keep`] says what becomes of those that it has.
    ///
    /// # Errors
    /// If a state is to be retained for a parameter of another shape; then nothing changes.
    ///
    /// ```
    /// use nnrs::{solver::{Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::new([2]), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// assert!(solver.get_parameters()[0].1.is(&w));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn set_parameters(&self, params: &[(String, Variable)], keep: Keep) -> Result<()> {
        let names = self.states();
        // What goes is freed without the lock: it may end a whole graph, with user code in it.
        let gone = self.lock().entries.set(params, keep, |v| states::fresh(names, v));
        gone.map(drop).map_err(|e| self.named(e))
    }

    /// Takes parameters and their states away; unknown names are ignored.
    ///
    /// ```
    /// use nnrs::{solver::{Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[0.0f32, 0.0])?;
    /// solver.remove_parameters(&["w", "no such parameter"]);
    /// assert!(solver.get_parameters().is_empty());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn remove_parameters(&self, names: &[&str]) {
        let gone = self.lock().entries.remove(names);
        drop(gone);
    }

    /// Takes all parameters and states away.
    ///
    /// ```
    /// use nnrs::{solver::{Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[0.0f32, 0.0])?;
    /// solver.clear_parameters();
    /// assert!(solver.get_parameters().is_empty());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn clear_parameters(&self) {
        let gone = self.lock().entries.clear();
        drop(gone);
    }

    /// The parameters by name, in the order in which they were added.
    ///
    /// ```
    /// use nnrs::{solver::{Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[0.0f32, 0.0])?;
    /// assert_eq!(solver.get_parameters()[0].0, "w");
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn get_parameters(&self) -> Vec<(String, Variable)> {
        self.lock().entries.list.iter().map(|e| (e.name.clone(), e.param.clone())).collect()
    }

    /// All variables that it owns, parameters and states; nothing where another thread is at work on it.
    #[cfg(feature = "python")]
    pub(crate) fn owned_variables(&self) -> Vec<Variable> {
        let Ok(inner) = self.inner.try_lock() else { return Vec::new() };
        let states = |e: &Entry| e.state.arrays.iter().map(|(_, v)| v.clone()).collect::<Vec<_>>();
        inner.entries.list.iter().flat_map(|e| std::iter::once(e.param.clone()).chain(states(e))).collect()
    }

    /// Zeroes all gradients, lazily: no memory is touched.
    ///
    /// # Errors
    /// Not enough memory, which a gradient that is a part of another array may need.
    ///
    /// ```
    /// use nnrs::{solver::{Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[3.0f32, 4.0])?;
    /// solver.zero_grad()?;
    /// assert_eq!(w.grad().to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn zero_grad(&self) -> Result<()> {
        self.lock().entries.list.iter().try_for_each(|e| e.param.grad().zero())
    }

    /// Updates all parameters by their gradients.
    ///
    /// # Errors
    /// If a gradient or a state has another size than its parameter, or memory runs out; then nothing changes.
    ///
    /// ```
    /// use nnrs::{solver::{Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[2.0f32, 4.0])?;
    /// solver.update()?;
    /// assert_eq!(w.to_vec::<f32>()?, [0.0, -4.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn update(&self) -> Result<()> {
        self.update_hooked(Hooks::default())
    }

    /// As [`Solver::update`], with hooks around the work on each parameter.
    ///
    /// # Errors
    /// As [`Solver::update`], and what a hook says, which ends the update: the parameters before it are updated then.
    ///
    /// ```
    /// use nnrs::{solver::{Hooks, Sgd, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Sgd { lr: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[2.0f32, 4.0])?;
    /// let count = std::cell::Cell::new(0);
    /// let note = || Ok(count.set(count.get() + 1));
    /// let hooks = Hooks { pre: Some(&note), post: Some(&note) };
    /// solver.update_hooked(hooks)?;
    /// assert_eq!((count.get(), w.to_vec::<f32>()?), (2, vec![0.0, -4.0]));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn update_hooked(&self, hooks: Hooks) -> Result<()> {
        self.each(hooks, &mut |inner, which| self.advance(inner, which))?;
        self.lock().weight_decay = None;
        Ok(())
    }

    fn advance(&self, inner: &mut SolverState, which: &[usize]) -> Result<()> {
        // A gradient that was not kept is made again first: of the parameters as they are.
        which.iter().try_for_each(|&i| inner.entries.list[i].fetch_gradient())?;
        let mut jobs = which.iter().map(|&i| self.job(inner, i)).collect::<Result<Vec<TensorUpdate>>>()?;
        self.rule.run(&self.update, &mut jobs)?;
        for &i in which {
            let t = &mut inner.entries.list[i].state.t;
            *t = t.saturating_add(1).min(i64::MAX as u64);
        }
        Ok(())
    }

    fn job(&self, inner: &SolverState, i: usize) -> Result<TensorUpdate> {
        let e = &inner.entries.list[i];
        let w = e.param.data()?;
        let dtype = e.stored(w.dtype());
        let step = UpdateStep {
            t: e.state.t.saturating_add(1),
            learning_rate: inner.learning_rate,
            weight_decay: inner.weight_decay,
        };
        let place = e.param.grad().storage().place();
        let mut job = TensorUpdate::new(w.size(), dtype, place, self.rule.scalars(&step));
        job.modify(&w, dtype)?;
        job.read(&e.param.grad())?;
        (0..e.state.arrays.len()).try_for_each(|k| states::add(&mut job, &e.array(k), dtype))?;
        Ok(job)
    }

    /// The states by parameter. Their arrays are the solver's own: writing to them changes it.
    ///
    /// ```
    /// use nnrs::solver::{Momentum, Solver};
    /// use nnrs::Variable;
    /// let (w, solver) = (Variable::new([2]).with_need_grad(true), Solver::new(Momentum { lr: 0.5, momentum: 0.9 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().fill(1.0)?;
    /// solver.update()?;
    /// let (name, state) = solver.get_states().swap_remove(0);
    /// assert_eq!((name.as_str(), state.t, state.arrays[0].1.to_vec::<f32>()?), ("w", 1, vec![0.5, 0.5]));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn get_states(&self) -> Vec<(String, State)> {
        self.lock().entries.list.iter().map(|e| (e.name.clone(), e.state.clone())).collect()
    }

    /// Replaces the states of parameters that the solver has; its arrays become the solver's own.
    ///
    /// # Errors
    /// If a parameter is unknown, or a state has other names or shapes than the solver's; then nothing changes.
    ///
    /// ```
    /// use nnrs::{solver::{Momentum, Solver}, Variable};
    /// let (w, solver) = (Variable::from_slice(&[1.0f32, -2.0], [2].into())?.with_need_grad(true), Solver::new(Momentum { lr: 0.5, momentum: 0.5 }));
    /// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
    /// w.grad().write(&[2.0f32, 4.0])?;
    /// let old = solver.get_states();
    /// solver.update()?;
    /// solver.set_states(&old)?;
    /// assert_eq!(solver.get_states()[0].1.t, 0);
    /// assert!(solver.set_states(&[("no such parameter".into(), old[0].1.clone())]).is_err());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn set_states(&self, states: &[(String, State)]) -> Result<()> {
        let mut inner = self.lock();
        let (kind, own) = (self.name(), self.states());
        let checked = states.iter().map(|(name, s)| states::checked(kind, own, &inner.entries, name, s));
        let checked = checked.collect::<Result<Vec<(usize, State)>>>()?;
        checked.into_iter().for_each(|(i, s)| inner.entries.list[i].state = s);
        Ok(())
    }

    fn on_gradients(&self, hooks: Hooks, body: &mut dyn FnMut(&[&Entry]) -> Result<()>) -> Result<()> {
        self.each(hooks, &mut |inner, which| {
            let entries: Vec<&Entry> = which.iter().map(|&i| &inner.entries.list[i]).collect();
            body(&entries)
        })
    }

    /// Calls `body` for the parameters that take part: for all at once, or, if there are hooks, one by one between them.
    fn each(&self, hooks: Hooks, body: &mut dyn FnMut(&mut SolverState, &[usize]) -> Result<()>) -> Result<()> {
        let mut inner = self.lock();
        let list = &inner.entries.list;
        let active: Vec<usize> = (0..list.len()).filter(|&i| !list[i].is_idle()).collect();
        active.iter().try_for_each(|&i| list[i].check()).map_err(|e| self.named(e))?;
        if hooks.is_empty() {
            return body(&mut inner, &active).map_err(|e| self.named(e));
        }
        let names: Vec<String> = list.iter().map(|e| e.name.clone()).collect();
        drop(inner);
        names.iter().try_for_each(|name| self.one(name, hooks, body))
    }

    /// The lock is free while hooks run, so they may use the solver, even take the parameter away.
    fn one(
        &self,
        name: &str,
        hooks: Hooks,
        body: &mut dyn FnMut(&mut SolverState, &[usize]) -> Result<()>,
    ) -> Result<()> {
        let active = |inner: &SolverState| inner.entries.position(name).filter(|&i| !inner.entries.list[i].is_idle());
        if active(&self.lock()).is_none() {
            return Ok(());
        }
        hooks.around(|| {
            let mut inner = self.lock();
            let Some(i) = active(&inner) else { return Ok(()) };
            inner.entries.list[i].check().and_then(|_| body(&mut inner, &[i])).map_err(|e| self.named(e))
        })
    }

    fn named(&self, e: Error) -> Error {
        if e.kind() == ErrorKind::External { e } else { e.function(self.name()) }
    }
}

/// The learning rate that the arguments give.
fn first_rate(rule: &dyn Declared) -> f64 {
    let name = rule.def().rate;
    match rule.arguments().into_iter().find(|(n, _)| *n == name) {
        Some((_, ArgValue::Float(rate))) => rate,
        _ => 0.0,
    }
}
