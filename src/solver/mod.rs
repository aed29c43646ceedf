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
mod grads;
pub mod hooks;
mod params;
mod pass;
mod rule;
mod states;

mod adam;
mod adamw;
mod momentum;
mod nesterov;
mod sgd;

use crate::error::{Error, ErrorKind, Result};
use crate::function::ArgValue;
use crate::graph::Variable;
pub use adam::Adam;
pub use adamw::AdamW;
use fused::{AnyRule, Counted};
use grads::Odd;
pub use hooks::Hooks;
pub use momentum::Momentum;
pub use nesterov::Nesterov;
use params::{Entries, Entry};
pub use params::{Keep, State};
use pass::{Job, Kernel};
pub use rule::{Declared, Held, Number, Rule, Scalars, SolverDef, Step, create};
pub use sgd::Sgd;
use std::sync::{Mutex, MutexGuard};

/// All solvers, in the order of the documentation.
pub const SOLVERS: &[&SolverDef] = &[Sgd::DEF, Momentum::DEF, Nesterov::DEF, Adam::DEF, AdamW::DEF];

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
    kernel: Kernel,
    inner: Mutex<Inner>,
}

struct Inner {
    entries: Entries,
    learning_rate: f64,
    /// Rate for the next update, where weight decay is fused.
    weight_decay: Option<f64>,
}

impl Solver {
    /// A solver by its rule. Arguments are rounded to float, as NNabla holds them.
    pub fn new<const S: usize, const K: usize>(mut rule: impl Rule<S, K>) -> Solver {
        rule.round_to_float();
        let learning_rate = first_rate(&rule);
        let rule = Counted(rule);
        let kernel = Kernel::new(rule.expression());
        let inner = Inner { entries: Entries::default(), learning_rate, weight_decay: None };
        Solver { rule: Box::new(rule), kernel, inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// NNabla's name of the solver.
    pub fn name(&self) -> &'static str {
        self.def().name
    }

    /// What is known about solvers of this kind.
    pub fn def(&self) -> &'static SolverDef {
        self.rule.declared().def()
    }

    /// The arguments given to the constructor.
    pub fn arguments(&self) -> Vec<(&'static str, ArgValue)> {
        self.rule.declared().arguments()
    }

    /// The learning rate of the next update.
    pub fn learning_rate(&self) -> f64 {
        self.lock().learning_rate
    }

    /// Sets the learning rate of the updates to come.
    pub fn set_learning_rate(&self, rate: f64) {
        self.lock().learning_rate = rate as f32 as f64;
    }

    /// Gives the solver its parameters, by name; [`Keep`] says what becomes of those that it has.
    ///
    /// # Errors
    /// If a state is to be retained for a parameter of another shape; then nothing changes.
    pub fn set_parameters(&self, params: &[(String, Variable)], keep: Keep) -> Result<()> {
        let names = self.def().states;
        // What goes is freed without the lock: it may end a whole graph, with user code in it.
        let gone = self.lock().entries.set(params, keep, |v| states::fresh(names, v));
        gone.map(drop).map_err(|e| self.named(e))
    }

    /// Takes parameters and their states away; unknown names are ignored.
    pub fn remove_parameters(&self, names: &[&str]) {
        let gone = self.lock().entries.remove(names);
        drop(gone);
    }

    /// Takes all parameters and states away.
    pub fn clear_parameters(&self) {
        let gone = self.lock().entries.clear();
        drop(gone);
    }

    /// The parameters by name, in the order in which they were added.
    pub fn get_parameters(&self) -> Vec<(String, Variable)> {
        self.lock().entries.list.iter().map(|e| (e.name.clone(), e.param.clone())).collect()
    }

    /// Zeroes all gradients, lazily: no memory is touched.
    pub fn zero_grad(&self) -> Result<()> {
        self.lock().entries.list.iter().try_for_each(|e| e.param.grad().zero())
    }

    /// Updates all parameters by their gradients.
    ///
    /// # Errors
    /// If a gradient or a state has another size than its parameter, or memory runs out; then nothing changes.
    pub fn update(&self) -> Result<()> {
        self.update_hooked(Hooks::default())
    }

    /// As [`Solver::update`], with hooks around the work on each parameter.
    pub fn update_hooked(&self, hooks: Hooks) -> Result<()> {
        self.each(hooks, &mut |inner, which| self.advance(inner, which))?;
        self.lock().weight_decay = None;
        Ok(())
    }

    fn advance(&self, inner: &mut Inner, which: &[usize]) -> Result<()> {
        let jobs = which.iter().map(|&i| self.job(inner, i)).collect::<Result<Vec<Job>>>()?;
        self.kernel.run_fused(&jobs, self.rule.as_ref())?;
        for &i in which {
            let t = &mut inner.entries.list[i].state.t;
            *t = t.saturating_add(1);
        }
        Ok(())
    }

    fn job(&self, inner: &Inner, i: usize) -> Result<Job> {
        let e = &inner.entries.list[i];
        let w = e.param.data()?;
        let dtype = grads::stored(w.dtype());
        let step = Step {
            t: e.state.t.saturating_add(1),
            learning_rate: inner.learning_rate,
            weight_decay: inner.weight_decay,
        };
        let place = e.param.grad().storage().place();
        let mut job = Job::new(w.size(), dtype, place, self.rule.scalars(&step));
        job.modify(&w, dtype)?;
        job.read(&e.param.grad())?;
        (0..e.state.arrays.len()).try_for_each(|k| states::add(&mut job, &e.array(k), dtype))?;
        Ok(job)
    }

    /// Adds `rate` times the weight to each gradient; where [`SolverDef::fuses_weight_decay`], sets the rate of the next update.
    pub fn weight_decay(&self, rate: f64) -> Result<()> {
        self.weight_decay_hooked(rate, Hooks::default())
    }

    /// As [`Solver::weight_decay`], with hooks (which are not called where the decay is fused).
    pub fn weight_decay_hooked(&self, rate: f64, hooks: Hooks) -> Result<()> {
        let rate = rate as f32 as f64;
        if self.def().fuses_weight_decay {
            self.lock().weight_decay = Some(rate);
            return Ok(());
        }
        self.on_gradients(hooks, &mut |entries| grads::decay(entries, rate))
    }

    /// Scales each gradient whose L2 norm is above `norm` down to that norm (each parameter on its own).
    pub fn clip_grad_by_norm(&self, norm: f64) -> Result<()> {
        self.clip_grad_by_norm_hooked(norm, Hooks::default())
    }

    /// As [`Solver::clip_grad_by_norm`], with hooks.
    pub fn clip_grad_by_norm_hooked(&self, norm: f64, hooks: Hooks) -> Result<()> {
        let norm = norm as f32 as f64;
        self.on_gradients(hooks, &mut |entries| grads::clip_by_norm(entries, norm))
    }

    /// Multiplies all gradients by `scale`.
    pub fn scale_grad(&self, scale: f64) -> Result<()> {
        self.scale_grad_hooked(scale, Hooks::default())
    }

    /// As [`Solver::scale_grad`], with hooks.
    pub fn scale_grad_hooked(&self, scale: f64, hooks: Hooks) -> Result<()> {
        let scale = scale as f32 as f64;
        self.on_gradients(hooks, &mut |entries| grads::scale(entries, scale))
    }

    /// True if a gradient holds an infinity.
    pub fn check_inf_grad(&self) -> Result<bool> {
        self.check_inf_grad_hooked(Hooks::default())
    }

    /// As [`Solver::check_inf_grad`], with hooks.
    pub fn check_inf_grad_hooked(&self, hooks: Hooks) -> Result<bool> {
        self.check(Odd::Inf, hooks)
    }

    /// True if a gradient holds a NaN.
    pub fn check_nan_grad(&self) -> Result<bool> {
        self.check_nan_grad_hooked(Hooks::default())
    }

    /// As [`Solver::check_nan_grad`], with hooks.
    pub fn check_nan_grad_hooked(&self, hooks: Hooks) -> Result<bool> {
        self.check(Odd::NaN, hooks)
    }

    /// True if a gradient holds an infinity or a NaN.
    pub fn check_inf_or_nan_grad(&self) -> Result<bool> {
        self.check_inf_or_nan_grad_hooked(Hooks::default())
    }

    /// As [`Solver::check_inf_or_nan_grad`], with hooks.
    pub fn check_inf_or_nan_grad_hooked(&self, hooks: Hooks) -> Result<bool> {
        self.check(Odd::InfOrNaN, hooks)
    }

    fn check(&self, odd: Odd, hooks: Hooks) -> Result<bool> {
        let mut found = false;
        self.on_gradients(hooks, &mut |entries| {
            found |= grads::any(entries, odd)?;
            Ok(())
        })?;
        Ok(found)
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
    pub fn set_states(&self, states: &[(String, State)]) -> Result<()> {
        let mut inner = self.lock();
        let def = self.def();
        let checked = states.iter().map(|(name, s)| states::checked(def, &inner.entries, name, s));
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
    fn each(&self, hooks: Hooks, body: &mut dyn FnMut(&mut Inner, &[usize]) -> Result<()>) -> Result<()> {
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
    fn one(&self, name: &str, hooks: Hooks, body: &mut dyn FnMut(&mut Inner, &[usize]) -> Result<()>) -> Result<()> {
        let active = |inner: &Inner| inner.entries.position(name).filter(|&i| !inner.entries.list[i].is_idle());
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
