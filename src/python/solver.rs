//! `nnrs.solver.Solver`: the part that is the engine's. python/nnrs/solver.py adds states and files.

use super::finish::{attached, detached};
use super::variable::PyVariable;
use super::{collector, convert, errors, files, reserve};
use crate::function::{ArgKind, ArgValue};
use crate::graph::Variable as Var;
use crate::io;
use crate::solver::{self as solvers, Hooks, Keep, SOLVERS, State, hooks};
use nnrs_kernels::error::{Error, ErrorKind, Result};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PySolver>()?;
    m.add_function(wrap_pyfunction!(solver_registry, m)?)?;
    m.add_function(wrap_pyfunction!(write_states, m)?)?;
    m.add_function(wrap_pyfunction!(read_states, m)?)?;
    m.add_function(wrap_pyfunction!(set_solver_hook, m)?)?;
    m.add_function(wrap_pyfunction!(unset_solver_hook, m)?)
}

/// Updates parameters by their gradients.
#[pyclass(frozen, subclass, weakref, name = "Solver", module = "nnrs._core")]
pub(crate) struct PySolver {
    solver: Arc<solvers::Solver>,
}

type ConstructorArgument = Option<Py<PyAny>>;
/// A parameter's name, its count of updates, and its state arrays by name.
type StateTuple = (String, u64, Vec<(String, Py<PyVariable>)>);

/// A hook of one call: called without arguments.
fn hook(f: &ConstructorArgument) -> Option<impl Fn() -> Result<()> + '_> {
    let f = f.as_ref()?;
    Some(move || attached(|py| f.call0(py).map(drop)).map_err(errors::carry))
}

fn number(value: &Bound<'_, PyAny>, function: &str, name: &str) -> PyResult<f64> {
    match convert::argument(value, ArgKind::Float, "")? {
        Some(ArgValue::Float(v)) => Ok(v),
        _ => {
            let e = Error::new(ErrorKind::Type, "float").argument(name).function(function);
            Err(errors::raise(value.py(), e.actual(errors::print(value))))
        }
    }
}

impl PySolver {
    /// Runs `f` with the hooks and without the GIL.
    fn hooked<R: Send>(
        &self,
        py: Python<'_>,
        pre: ConstructorArgument,
        post: ConstructorArgument,
        f: impl FnOnce(&solvers::Solver, Hooks) -> Result<R> + Send,
    ) -> PyResult<R> {
        errors::hook(py, self.solver.name(), "pre_hook", &pre)?;
        errors::hook(py, self.solver.name(), "post_hook", &post)?;
        let present = |h: ConstructorArgument| h.filter(|h| !h.is_none(py));
        let (pre, post) = (present(pre), present(post));
        errors::detached(py, || {
            let (pre, post) = (hook(&pre), hook(&post));
            f(&self.solver, Hooks { pre: pre.as_ref().map(|h| h as _), post: post.as_ref().map(|h| h as _) })
        })
    }

    /// The solver's lock may be held by a thread that wants the GIL: it is never waited for with the GIL.
    fn quick<R: Send>(&self, py: Python<'_>, f: impl FnOnce(&solvers::Solver) -> R + Send) -> R {
        detached(py, || f(&self.solver))
    }
}

/// Parameters from a dict, in its order.
fn named(given: &Bound<'_, PyAny>) -> PyResult<Vec<(String, Var)>> {
    let py = given.py();
    let wrong = |expected: &str, v: &Bound<'_, PyAny>| -> PyErr {
        let kind = v.get_type().name().map_or("?".into(), |n| n.to_string());
        let e = Error::new(ErrorKind::Type, expected).argument("param_dict").function("set_parameters");
        errors::raise(py, e.actual(kind).hint("nn.get_parameters() gives such a dict"))
    };
    let dict = given.cast::<PyDict>().map_err(|_| wrong("a dict of str to Variable", given))?;
    let one = |(name, v): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name = name.cast::<PyString>().map_err(|_| wrong("names as str", &name))?.extract()?;
        Ok((name, v.cast::<PyVariable>().map_err(|_| wrong("Variables", &v))?.get().var().clone()))
    };
    dict.iter().map(one).collect()
}

#[pymethods]
impl PySolver {
    #[new]
    fn py_new(py: Python<'_>, name: &str, args: &Bound<'_, PyTuple>) -> PyResult<PySolver> {
        let def = SOLVERS.iter().find(|d| d.name == name);
        let mut values = Vec::new();
        for (a, value) in def.map_or(&[][..], |d| d.args).iter().zip(args.iter()) {
            let v = convert::argument(&value, a.kind, a.name)?.filter(|v| *v != ArgValue::None).ok_or_else(|| {
                let e = Error::new(ErrorKind::Type, a.kind.hint()).argument(a.name).function(name);
                errors::raise(py, e.actual(errors::print(&value)))
            })?;
            values.push((a.name, v));
        }
        let solver = Arc::new(errors::run(py, || solvers::create(name, values))?);
        collector::new_solver(&solver);
        Ok(PySolver { solver })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        collector::traverse_solver(&self.solver, &visit)
    }

    /// NNabla's name of the solver.
    #[getter]
    fn name(&self) -> &'static str {
        self.solver.name()
    }

    /// The arguments given to the constructor.
    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let d = PyDict::new(py);
        for (name, v) in self.solver.arguments() {
            d.set_item(name, convert::to_object(py, &v)?)?;
        }
        Ok(d)
    }

    /// The learning rate of the next update.
    fn learning_rate(&self, py: Python<'_>) -> f64 {
        self.quick(py, |s| s.learning_rate())
    }

    /// Sets the learning rate of the updates to come.
    fn set_learning_rate(&self, py: Python<'_>, learning_rate: &Bound<'_, PyAny>) -> PyResult<()> {
        let rate = number(learning_rate, "set_learning_rate", "learning_rate")?;
        self.quick(py, |s| s.set_learning_rate(rate));
        Ok(())
    }

    /// Gives the solver its parameters, a dict of str to Variable. With `reset` they take the place of all that it has, states
    /// included; else they are added, and those of known names start afresh, or with `retain_state` keep their state.
    #[pyo3(signature = (param_dict, reset=true, retain_state=false))]
    fn set_parameters(
        &self,
        py: Python<'_>,
        param_dict: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = convert::flag)] reset: bool,
        #[pyo3(from_py_with = convert::flag)] retain_state: bool,
    ) -> PyResult<()> {
        reserve::check(py)?;
        let params = named(param_dict)?;
        let keep = match (reset, retain_state) {
            (true, _) => Keep::Nothing,
            (false, false) => Keep::Others,
            (false, true) => Keep::States,
        };
        let set = || self.solver.set_parameters(&params, keep).map_err(|e| e.function("set_parameters"));
        errors::detached(py, set)
    }

    /// The parameters by name.
    fn get_parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let all = self.quick(py, |s| s.get_parameters());
        let d = py.import("collections")?.getattr("OrderedDict")?.call0()?;
        all.into_iter().try_for_each(|(name, v)| d.set_item(name, Bound::new(py, PyVariable::new(v))?))?;
        Ok(d)
    }

    /// Takes parameters and their states away; unknown names are ignored.
    fn remove_parameters(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        let one = keys.extract::<String>().map(|key| vec![key]);
        let keys: Vec<String> = one.or_else(|_| keys.try_iter()?.map(|k| k?.extract()).collect::<PyResult<_>>())?;
        let names: Vec<&str> = keys.iter().map(String::as_str).collect();
        self.quick(py, |s| s.remove_parameters(&names));
        Ok(())
    }

    /// Takes all parameters and states away.
    fn clear_parameters(&self, py: Python<'_>) {
        self.quick(py, |s| s.clear_parameters());
    }

    /// Zeroes all gradients, without touching their memory.
    fn zero_grad(&self, py: Python<'_>) -> PyResult<()> {
        errors::detached(py, || self.solver.zero_grad())
    }

    /// Updates all parameters by their gradients; those that were zeroed and not computed since are left as they are.
    /// The hooks are called without arguments, before and after each parameter.
    #[pyo3(signature = (update_pre_hook=None, update_post_hook=None))]
    fn update(
        &self,
        py: Python<'_>,
        update_pre_hook: ConstructorArgument,
        update_post_hook: ConstructorArgument,
    ) -> PyResult<()> {
        self.hooked(py, update_pre_hook, update_post_hook, |s, h| s.update_hooked(h))
    }

    /// Adds `decay_rate` times the weight to each gradient; where weight decay is fused, sets the rate of the next update.
    #[pyo3(signature = (decay_rate, pre_hook=None, post_hook=None))]
    fn weight_decay(
        &self,
        py: Python<'_>,
        decay_rate: &Bound<'_, PyAny>,
        pre_hook: ConstructorArgument,
        post_hook: ConstructorArgument,
    ) -> PyResult<()> {
        let rate = number(decay_rate, "weight_decay", "decay_rate")?;
        self.hooked(py, pre_hook, post_hook, |s, h| s.weight_decay_hooked(rate, h))
    }

    /// Whether weight decay is a part of the update instead of a change of the gradients.
    fn weight_decay_is_fused(&self) -> bool {
        self.solver.fuses_weight_decay()
    }

    /// Scales each gradient whose L2 norm is above `clip_norm` down to that norm, each parameter on its own.
    #[pyo3(signature = (clip_norm, pre_hook=None, post_hook=None))]
    fn clip_grad_by_norm(
        &self,
        py: Python<'_>,
        clip_norm: &Bound<'_, PyAny>,
        pre_hook: ConstructorArgument,
        post_hook: ConstructorArgument,
    ) -> PyResult<()> {
        let norm = number(clip_norm, "clip_grad_by_norm", "clip_norm")?;
        self.hooked(py, pre_hook, post_hook, |s, h| s.clip_grad_by_norm_hooked(norm, h))
    }

    /// Multiplies all gradients by `scale`.
    #[pyo3(signature = (scale, pre_hook=None, post_hook=None))]
    fn scale_grad(
        &self,
        py: Python<'_>,
        scale: &Bound<'_, PyAny>,
        pre_hook: ConstructorArgument,
        post_hook: ConstructorArgument,
    ) -> PyResult<()> {
        let scale = number(scale, "scale_grad", "scale")?;
        self.hooked(py, pre_hook, post_hook, |s, h| s.scale_grad_hooked(scale, h))
    }

    /// Whether a gradient holds an infinity.
    #[pyo3(signature = (pre_hook=None, post_hook=None))]
    fn check_inf_grad(
        &self,
        py: Python<'_>,
        pre_hook: ConstructorArgument,
        post_hook: ConstructorArgument,
    ) -> PyResult<bool> {
        self.hooked(py, pre_hook, post_hook, |s, h| s.check_inf_grad_hooked(h))
    }

    /// Whether a gradient holds a NaN.
    #[pyo3(signature = (pre_hook=None, post_hook=None))]
    fn check_nan_grad(
        &self,
        py: Python<'_>,
        pre_hook: ConstructorArgument,
        post_hook: ConstructorArgument,
    ) -> PyResult<bool> {
        self.hooked(py, pre_hook, post_hook, |s, h| s.check_nan_grad_hooked(h))
    }

    /// Whether a gradient holds an infinity or a NaN.
    #[pyo3(signature = (pre_hook=None, post_hook=None))]
    fn check_inf_or_nan_grad(
        &self,
        py: Python<'_>,
        pre_hook: ConstructorArgument,
        post_hook: ConstructorArgument,
    ) -> PyResult<bool> {
        self.hooked(py, pre_hook, post_hook, |s, h| s.check_inf_or_nan_grad_hooked(h))
    }

    /// States as tuples; solver.py makes objects of them.
    fn _states(&self, py: Python<'_>) -> PyResult<Vec<StateTuple>> {
        tuples(py, self.quick(py, |s| s.get_states()))
    }

    fn _set_states(&self, py: Python<'_>, states: Vec<StateTuple>) -> PyResult<()> {
        let states = from_tuples(states);
        errors::detached(py, || self.solver.set_states(&states))
    }
}

fn tuples(py: Python<'_>, states: Vec<(String, State)>) -> PyResult<Vec<StateTuple>> {
    let object = |(name, v)| Ok((name, Py::new(py, PyVariable::new(v))?));
    let one =
        |(name, s): (String, State)| Ok((name, s.t, s.arrays.into_iter().map(object).collect::<PyResult<Vec<_>>>()?));
    states.into_iter().map(one).collect()
}

fn from_tuples(states: Vec<StateTuple>) -> Vec<(String, State)> {
    let array = |(name, v): (String, Py<PyVariable>)| (name, v.get().var().clone());
    let state = |(name, t, arrays): StateTuple| (name, State { t, arrays: arrays.into_iter().map(array).collect() });
    states.into_iter().map(state).collect()
}

/// Writes states in place, in NNabla's protobuf format.
#[pyfunction]
fn write_states(py: Python<'_>, function: &str, path: PathBuf, states: Vec<StateTuple>) -> PyResult<()> {
    let states = from_tuples(states);
    errors::detached(py, || {
        File::create(&path)
            .map_err(Error::from)
            .and_then(|mut file| io::states::write_to(&mut file, &states))
            .map_err(|e| e.function(function))
    })
}

/// Reads states in NNabla's protobuf format.
#[pyfunction]
fn read_states(py: Python<'_>, path: PathBuf) -> PyResult<Vec<StateTuple>> {
    let states = errors::detached(py, || io::states::read_from(&path)).map_err(|e| files::plain(py, e))?;
    tuples(py, states)
}

/// Everything that the registry knows of the solvers, for the generator.
#[pyfunction]
fn solver_registry(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let describe = |def: &&solvers::SolverDef| {
        let d = PyDict::new(py);
        d.set_item("name", def.name)?;
        d.set_item("doc", def.doc)?;
        let args = def.args.iter().map(|a| (a.name, a.kind.hint(), a.default.map(|f| f().repr()), a.doc));
        d.set_item("args", args.collect::<Vec<_>>())?;
        d.set_item("states", def.states)?;
        Ok(d)
    };
    SOLVERS.iter().map(describe).collect()
}

fn when(before: bool) -> hooks::When {
    if before { hooks::When::Before } else { hooks::When::After }
}

#[pyfunction]
fn set_solver_hook(before: bool, key: &str, hook: Py<PyAny>) {
    let call = move || attached(|py| hook.call0(py).map(drop)).map_err(errors::carry);
    hooks::set(when(before), key, Arc::new(call));
}

#[pyfunction]
fn unset_solver_hook(before: bool, key: &str) {
    hooks::unset(when(before), key);
}
