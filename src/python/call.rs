//! Calling functions: the registry for the generator, and one entry for all generated Python functions.

use super::array::PyNdArray;
use super::variable::PyVariable;
use super::{convert, errors, reserve};
use crate::function::{ArgDef, ArgKind, ArgValue, Args, Def, Function, InputKind, elementwise, registry};
use crate::graph::{self, Variable as Var, describe_inputs, mode};
use nnrs_kernels::array::NdArray as Array;
use nnrs_kernels::error::{Error, ErrorKind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyList, PyTuple};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

static DEFS: OnceLock<Vec<&'static Def>> = OnceLock::new();

fn defs() -> &'static [&'static Def] {
    DEFS.get_or_init(|| registry().collect())
}

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(call, m)?)?;
    m.add_function(wrap_pyfunction!(registry_list, m)?)?;
    m.add_function(wrap_pyfunction!(function_index, m)?)?;
    m.add_function(wrap_pyfunction!(grad, m)?)
}

/// Inputs of a call, and whether they are to be computed at once.
pub(crate) struct Inputs {
    vars: SmallVec<[Var; 4]>,
    imperative: bool,
}

pub(crate) fn inputs(def: &Def, given: &Bound<'_, PyTuple>) -> PyResult<Inputs> {
    let mut vars: SmallVec<[Var; 4]> = SmallVec::new();
    let mut imperative = false;
    let mut absent = false;
    for (i, v) in given.iter_borrowed().enumerate() {
        if let Ok(v) = v.cast::<PyVariable>() {
            vars.push(v.get().var().clone());
        } else if let Ok(a) = v.cast::<PyNdArray>() {
            vars.push(Var::from_array(a.get().inner().clone()));
            imperative = true;
        } else if v.is_none() && def.input(i).kind == InputKind::Optional {
            absent = true;
            continue;
        } else {
            let e =
                Error::new(ErrorKind::Type, "a Variable or NdArray").argument(def.input(i).name).function(def.snake);
            return Err(errors::raise(
                given.py(),
                e.actual(v.get_type().name()?).hint("nn.Variable.from_numpy_array makes one of an array"),
            ));
        }
        if absent {
            let e = Error::new(ErrorKind::Type, "the optional inputs before it to be given too")
                .argument(def.input(i).name);
            return Err(errors::raise(given.py(), e.function(def.snake)));
        }
    }
    Ok(Inputs { vars, imperative })
}

/// Lists of whole numbers that may also be given as one number, as in NNabla.
const AXES: [&str; 5] = ["axis", "axes", "batch_axis", "reps", "n_outmaps"];

/// What may be given for an argument, as a type hint.
pub(crate) fn hint(arg: &ArgDef) -> &'static str {
    match arg.kind {
        // `axes` of transpose and flip want a list.
        ArgKind::Ints if AXES.contains(&arg.name) && arg.name != "axes" => "int | Sequence[int]",
        kind => kind.hint(),
    }
}

fn build(def: &Def, inputs: &Inputs, given: &Bound<'_, PyTuple>) -> PyResult<Arc<dyn Function>> {
    let py = given.py();
    let fail = |e: Error| {
        let nodes: SmallVec<[_; 4]> = inputs.vars.iter().map(|v| v.node().clone()).collect();
        let origin = if inputs.imperative { None } else { convert::script_line(py) };
        errors::raise(py, describe_inputs(e, def, &|i| def.input(i).name, &nodes, origin.as_deref()))
    };
    (def.build)(&mut arguments(def.args, given, &fail)?).map_err(fail)
}

/// The arguments of a call, in the order in which they are declared.
pub(crate) fn arguments(
    defs: &'static [ArgDef],
    given: &Bound<'_, PyTuple>,
    fail: &impl Fn(Error) -> PyErr,
) -> PyResult<Args> {
    let py = given.py();
    let mut values: Vec<(&'static str, ArgValue)> = Vec::with_capacity(defs.len());
    for (arg, value) in defs.iter().zip(given.iter_borrowed()) {
        let any = arg.kind != ArgKind::Ints || value.is_none() || AXES.contains(&arg.name);
        let listed = any || convert::fits(py, value.try_iter())?.is_some();
        let converted = if listed { convert::declared(&value, arg)? } else { None };
        let v = converted.filter(|v| *v != ArgValue::None || arg.optional).ok_or_else(|| {
            let shown = errors::print(&value);
            let large =
                value.is_instance_of::<PyInt>() && (listed && arg.kind == ArgKind::Ints || arg.kind == ArgKind::Int);
            let none = if arg.optional { " | None" } else { "" };
            let expected = match arg.kind {
                _ if large => "an int of 64 bits".to_string(),
                ArgKind::Inits => "initial values by name, as {'beta': 0.5}, or None".into(),
                ArgKind::Apply => "a function of a Variable, or None".into(),
                ArgKind::Variable => "a Variable or NdArray, or None".into(),
                ArgKind::Level => "a number or a Variable".into(),
                _ => format!("{}{none}", hint(arg)),
            };
            fail(Error::new(ErrorKind::Type, expected).argument(arg.name).actual(shown))
        })?;
        values.push((arg.name, v));
    }
    Ok(Args::new(values))
}

/// How many outputs a call asks for; below 0: as many as there are. Fractions are cut off, as in NNabla.
pub(crate) fn wanted_outputs(function: &str, n: Option<&Bound<'_, PyAny>>) -> PyResult<i64> {
    let Some(n) = n.filter(|n| !n.is_none()) else { return Ok(-1) };
    let whole = |v: f64| (v.abs() < 9e15).then_some(v as i64);
    // An array with one element can be made a number too, but is a mistake here.
    let number = Some(n).filter(|n| !n.is_instance_of::<PyVariable>() && !n.is_instance_of::<PyNdArray>());
    let Some(n) = number else {
        return Err(errors::wrong_type(n.py(), function, "n_outputs", "an int of 64 bits", errors::describe(n)));
    };
    let found = match convert::fitting(n)? {
        Some(int) => Some(int),
        None => convert::fitting(n)?.and_then(whole),
    };
    found.ok_or_else(|| errors::wrong_type(n.py(), function, "n_outputs", "an int of 64 bits", errors::describe(n)))
}

/// Applies function number `index` of the registry.
#[pyfunction]
#[pyo3(signature = (index, given, args, n_outputs=None, outputs=None))]
fn call<'py>(
    py: Python<'py>,
    index: usize,
    given: &Bound<'py, PyTuple>,
    args: &Bound<'py, PyTuple>,
    n_outputs: Option<&Bound<'py, PyAny>>,
    outputs: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let def = defs()
        .get(index)
        .ok_or_else(|| PyTypeError::new_err("the generated functions are older than the extension"))?;
    wanted_outputs(def.snake, n_outputs)?;
    let inputs = inputs(def, given)?;
    let f = build(def, &inputs, args)?;
    apply(py, f, inputs, into_arrays(def.snake, outputs)?)
}

/// Applies an operator's function, with at most one number.
pub(crate) fn operator<'py>(
    py: Python<'py>,
    def: &Def,
    given: &Bound<'py, PyTuple>,
    val: Option<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let values = val.map(|v| ("val", ArgValue::Float(v))).into_iter().collect();
    let f = errors::run(py, || (def.build)(&mut Args::new(values)))?;
    apply(py, f, inputs(def, given)?, None)
}

pub(crate) fn into_arrays(function: &str, outputs: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Vec<Array>>> {
    let Some(list) = outputs else { return Ok(None) };
    let wrong = || errors::wrong_type(list.py(), function, "outputs", "a list of NdArray", errors::type_name(list));
    let items = list.cast::<PyList>().map_err(|_| wrong())?;
    let array = |a: Bound<'_, PyAny>| match a.cast::<PyNdArray>() {
        Ok(a) => Ok(a.get().inner().clone()),
        Err(_) => Err(errors::wrong_type(
            a.py(),
            function,
            "outputs",
            "a list of NdArray",
            format!("a list with {}", errors::describe(&a)),
        )),
    };
    items.iter().map(array).collect::<PyResult<Vec<_>>>().map(Some)
}

/// Applies a function: to variables, or at once where an NdArray is among the inputs.
pub(crate) fn apply<'py>(
    py: Python<'py>,
    f: Arc<dyn Function>,
    inputs: Inputs,
    into: Option<Vec<Array>>,
) -> PyResult<Bound<'py, PyAny>> {
    reserve::check(py)?;
    let refs: SmallVec<[&Var; 4]> = inputs.vars.iter().collect();
    let hidden = f.hidden_outputs();
    let shown = |mut made: Vec<Var>| {
        made.truncate(made.len() - hidden);
        made
    };
    if inputs.imperative {
        let context = mode::context();
        let run = || mode::inner(context, || graph::apply_into(f, &refs, into, None));
        let made = shown(errors::detached(py, run)?);
        return wrap(py, made, |py, v| Ok(Bound::new(py, PyNdArray::new(v.raw_data()))?.into_any()));
    }
    let made = match mode::auto_forward() {
        true => errors::run(py, || graph::apply_into(f, &refs, into, None))?,
        false => {
            let origin = convert::script_line(py);
            errors::run(py, || graph::apply_into(f, &refs, into, origin))?
        }
    };
    wrap(py, shown(made), |py, v| Ok(Bound::new(py, PyVariable::new(v))?.into_any()))
}

/// What a graph of functions gives: arrays, computed at once, or variables.
pub(super) fn made_of<'py, const N: usize>(
    py: Python<'py>,
    made: impl FnOnce() -> Result<[Var; N], Error>,
    is_array: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if is_array {
        let made = errors::run(py, || mode::inner(mode::context(), made))?;
        wrap(py, made.into(), |py, v| Ok(Bound::new(py, PyNdArray::new(v.raw_data()))?.into_any()))
    } else {
        let named = || made().map_err(|e| mode::origin().into_iter().fold(e, |e, line| e.origin(line.to_string())));
        let made = errors::run(py, || mode::with_origin(convert::script_line(py), named))?;
        wrap(py, made.into(), |py, v| Ok(Bound::new(py, PyVariable::new(v))?.into_any()))
    }
}

/// One object, or a tuple of several.
pub(crate) fn wrap<'py>(
    py: Python<'py>,
    mut made: Vec<Var>,
    one: impl Fn(Python<'py>, Var) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if made.len() == 1 {
        return one(py, made.swap_remove(0));
    }
    let mut list = Vec::with_capacity(made.len());
    for (i, v) in made.into_iter().enumerate() {
        if i % graph::MANY == graph::MANY - 1 {
            py.check_signals()?;
        }
        list.push(one(py, v)?);
    }
    Ok(PyTuple::new(py, list)?.into_any())
}

/// Variables as a tuple, however many they are.
pub(crate) fn tuple_of<'py>(py: Python<'py>, made: Vec<Var>) -> PyResult<Bound<'py, PyTuple>> {
    let list = made.into_iter().map(|v| Bound::new(py, PyVariable::new(v))).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, list)
}

/// Number of a function in the registry.
#[pyfunction]
fn function_index(name: &str) -> Option<usize> {
    defs().iter().position(|d| d.snake == name)
}

static REGISTRY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Everything that the registry knows, for generators and tests.
#[pyfunction]
#[pyo3(name = "registry")]
fn registry_list(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let make = || -> PyResult<Py<PyAny>> {
        let list = defs().iter().map(|d| describe(py, d)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, list)?.into_any().unbind())
    };
    Ok(convert::filled(py, &REGISTRY, make)?.bind(py).clone())
}

fn describe<'py>(py: Python<'py>, def: &Def) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("name", def.snake)?;
    d.set_item("class_name", def.name)?;
    d.set_item("group", format!("{:?}", def.group))?;
    d.set_item("doc", def.doc)?;
    d.set_item("elementwise", def.elementwise)?;
    let inputs = def.inputs.iter().map(|i| (i.name, format!("{:?}", i.kind).to_lowercase(), i.doc));
    d.set_item("inputs", inputs.collect::<Vec<_>>())?;
    let args = def.args.iter().map(|a| (a.name, hint(a), a.optional, a.default.map(|f| f().repr()), a.doc));
    d.set_item("args", args.collect::<Vec<_>>())?;
    let outputs = def.outputs.iter().map(|o| (o.name, o.variadic, o.doc));
    d.set_item("outputs", outputs.collect::<Vec<_>>())?;
    let example = example(def);
    d.set_item("gradients", example.as_deref().map_or_else(Vec::new, |f| gradients(def, f)))?;
    d.set_item("on_gpu", example.is_some_and(|f| f.runs_on_gpu()))?;
    Ok(d)
}

/// A function with its arguments at their defaults, and any where there is none.
fn example(def: &Def) -> Option<Arc<dyn Function>> {
    let any = |kind| match kind {
        ArgKind::Bool => ArgValue::Bool(false),
        ArgKind::Int => ArgValue::Int(1),
        ArgKind::Float => ArgValue::Float(1.0),
        ArgKind::Str => ArgValue::Str(String::new()),
        ArgKind::Ints => ArgValue::Ints(vec![1]),
        ArgKind::Floats => ArgValue::Floats(vec![1.0]),
        ArgKind::Level => ArgValue::Int(0),
        ArgKind::Init | ArgKind::Inits | ArgKind::Apply | ArgKind::Rng | ArgKind::Variable | ArgKind::Arrays => {
            ArgValue::None
        }
    };
    let required = def.args.iter().filter(|a| a.default.is_none()).map(|a| (a.name, any(a.kind)));
    (def.build)(&mut Args::new(required.collect())).ok()
}

/// For each input whether it gets a gradient.
fn gradients(def: &Def, f: &dyn Function) -> Vec<bool> {
    let n = def.inputs.len();
    let formulas = f.elementwise().map(|e| elementwise::rules(e, n).backward.eval(&vec![0.5; n + 2]));
    let has = |i: usize| f.differentiable(i) && formulas.as_ref().is_none_or(|g| g[i].is_some());
    (0..n).map(|i| def.inputs[i].kind != InputKind::Index && has(i)).collect()
}

/// Gradients of the sum of `outputs` with respect to `inputs` as a graph.
#[pyfunction]
fn grad<'py>(
    py: Python<'py>,
    outputs: Vec<PyRef<'py, PyVariable>>,
    inputs: Vec<PyRef<'py, PyVariable>>,
    seeds: Vec<Option<PyRef<'py, PyVariable>>>,
) -> PyResult<Vec<Option<PyVariable>>> {
    let outs: Vec<&Var> = outputs.iter().map(|v| v.var()).collect();
    let ins: Vec<&Var> = inputs.iter().map(|v| v.var()).collect();
    let seeds: Vec<Option<&Var>> = seeds.iter().map(|s| s.as_ref().map(|v| v.var())).collect();
    let grads = errors::run(py, || graph::grad(&outs, &ins, &seeds))?;
    Ok(grads.into_iter().map(|g| g.map(PyVariable::new)).collect())
}
