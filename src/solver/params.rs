//! A solver's parameters with their states: which there are, and how they come and go.

use crate::graph::{Variable, mode};
use nnrs_kernels::array::NdArray;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use std::collections::HashMap;

/// What `set_parameters` keeps of the parameters that are there.
///
/// ```
/// use nnrs::{solver::{Keep, Sgd, Solver}, Variable};
/// let (a, b, solver) = (Variable::new([2]), Variable::new([2]), Solver::new(Sgd::default()));
/// solver.set_parameters(&[("a".into(), a)], Keep::Nothing)?;
/// solver.set_parameters(&[("b".into(), b.clone())], Keep::Others)?;
/// assert_eq!(solver.get_parameters().len(), 2);
/// solver.set_parameters(&[("b".into(), b)], Keep::Nothing)?;
/// assert_eq!(solver.get_parameters().len(), 1);
/// # Ok::<(), nnrs::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Nothing: the new ones take the place of all (NNabla's `reset=True`).
    #[default]
    Nothing,
    /// The others; parameters of the names given start afresh (`reset=False`).
    Others,
    /// The others, and the states of those given (`reset=False, retain_state=True`).
    States,
}

/// The state of one parameter.
///
/// ```
/// use nnrs::{solver::{Adam, Solver}, Variable};
/// let solver = Solver::new(Adam::default());
/// solver.set_parameters(&[("w".into(), Variable::new([2]))], Default::default())?;
/// let state = solver.get_states().swap_remove(0).1;
/// assert_eq!((state.t, state.arrays[0].0.as_str(), state.arrays[1].0.as_str()), (0, "var", "mean"));
/// # Ok::<(), nnrs::Error>(())
/// ```
#[derive(Clone, Default, Debug)]
pub struct State {
    /// Updates done; the count stays at `i64::MAX` (2<sup>63</sup> - 1), which is the largest that files hold.
    pub t: u64,
    /// State arrays by name, in the solver's order.
    pub arrays: Vec<(String, Variable)>,
}

/// A parameter under its name.
pub(super) struct Entry {
    pub name: String,
    pub param: Variable,
    pub state: State,
    /// Doubles stay what they are.
    double: bool,
}

impl Entry {
    /// The type that an array of type `dtype` has after a solver's work: small steps would be lost in half.
    pub fn stored(&self, dtype: DType) -> DType {
        if self.double && dtype == DType::F64 { dtype } else { DType::F32 }
    }

    /// The gradient is zero without having been computed: such a parameter takes no part.
    pub fn is_idle(&self) -> bool {
        self.param.grad().is_zeroed()
    }

    /// Has a gradient that was not kept made again; an error where that cannot be.
    pub fn fetch_gradient(&self) -> Result<()> {
        self.param.grad().fetch().map_err(|e| e.inputs(format!("parameter '{}' {}", self.name, self.param.shape())))
    }

    pub fn array(&self, i: usize) -> NdArray {
        self.state.arrays[i].1.raw_data()
    }

    /// Whether gradient and states have the parameter's size.
    pub fn check(&self) -> Result<()> {
        let n = self.param.size();
        let grad = self.param.grad();
        if grad.size() != n {
            return Err(self.misfit("its gradient", &grad));
        }
        match self.state.arrays.iter().find(|(_, v)| v.size() != n) {
            Some((name, v)) => Err(self.misfit(&format!("its state '{name}'"), &v.raw_data())),
            None => Ok(()),
        }
    }

    fn misfit(&self, what: &str, a: &NdArray) -> Error {
        let shape = self.param.shape();
        Error::new(ErrorKind::Parameter, format!("{what} of shape {shape}, as parameter '{}'", self.name))
            .actual(a.shape())
            .hint("after a change of a parameter's shape, give it to the solver again with set_parameters")
    }
}

/// Parameters in the order in which they were added.
#[derive(Default)]
pub(super) struct SolverParameters {
    pub list: Vec<Entry>,
    index: HashMap<String, usize>,
    /// Updates done on parameters that went, for solvers without state arrays: those count on (NNabla's `Sgd`).
    steps: HashMap<String, u64>,
    /// Made in a context that computes in double.
    double: bool,
}

impl SolverParameters {
    /// None yet, for a solver of the current context.
    pub fn of_context() -> SolverParameters {
        SolverParameters { double: mode::context().dtype() == DType::F64, ..Default::default() }
    }

    pub fn position(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// Adds or replaces parameters; checks all before it changes any. Gives what is no longer here, to be freed later.
    pub fn set(
        &mut self,
        params: &[(String, Variable)],
        keep: Keep,
        fresh: impl Fn(&Variable) -> State,
    ) -> Result<Vec<Entry>> {
        if keep == Keep::States {
            params.iter().try_for_each(|(name, v)| self.check_retained(name, v))?;
        }
        let mut gone = if keep == Keep::Nothing { self.clear() } else { Vec::new() };
        for (name, param) in params {
            gone.extend(self.put(name, param.clone(), keep, &fresh));
        }
        Ok(gone)
    }

    fn check_retained(&self, name: &str, v: &Variable) -> Result<()> {
        let Some(i) = self.position(name) else { return Ok(()) };
        let entry = &self.list[i]; // whose shape may have changed since the states were made
        let (old, new) = (entry.state.arrays.first().map_or_else(|| entry.param.shape(), |a| a.1.shape()), v.shape());
        if old == new {
            return Ok(());
        }
        Err(Error::graph(format!("could not retain the state of '{name}': its shape was {old}, now it is {new}"))
            .hint("call set_parameters with retain_state=False for parameters of another shape"))
    }

    fn put(&mut self, name: &str, param: Variable, keep: Keep, fresh: impl Fn(&Variable) -> State) -> Option<Entry> {
        let mut entry = Entry { name: name.to_string(), state: fresh(&param), param, double: self.double };
        let Some(i) = self.position(name) else {
            entry.state.t = self.steps.remove(name).unwrap_or(0);
            self.index.insert(name.to_string(), self.list.len());
            self.list.push(entry);
            return None;
        };
        if keep == Keep::States || entry.state.arrays.is_empty() {
            entry.state = self.list[i].state.clone();
        }
        Some(std::mem::replace(&mut self.list[i], entry))
    }

    /// Removes parameters; unknown names are ignored. Gives what is no longer here.
    pub fn remove(&mut self, names: &[&str]) -> Vec<Entry> {
        let gone = |e: &Entry| names.contains(&e.name.as_str());
        let (gone, kept) = std::mem::take(&mut self.list).into_iter().partition(gone);
        self.list = kept;
        self.index = self.list.iter().enumerate().map(|(i, e)| (e.name.clone(), i)).collect();
        self.remember(&gone);
        gone
    }

    fn remember(&mut self, gone: &[Entry]) {
        let counted = gone.iter().filter(|e| e.state.arrays.is_empty() && e.state.t > 0);
        self.steps.extend(counted.map(|e| (e.name.clone(), e.state.t)));
    }

    /// Removes all, and gives them.
    pub fn clear(&mut self) -> Vec<Entry> {
        self.index.clear();
        let gone = std::mem::take(&mut self.list);
        self.remember(&gone);
        gone
    }
}
