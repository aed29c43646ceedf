//! Parametric functions: their arguments, and one entry for all generated Python functions.

use super::array::PyNdArray;
use super::call::{arguments, hint, wrap};
use super::finish::attached;
use super::parameters::{PyInitializer, helper};
use super::variable::PyVariable;
use super::{convert, errors, reserve};
use crate::function::args::Object;
use crate::function::{ArgDef, ArgKind, ArgValue};
use crate::graph::{Variable as Var, mode};
use crate::initializer::{Generator, Initializer, Usual};
use crate::parametric::{Apply, GivenArrays, Init, Inits, LayerDef, Level, Rng, registry};
use nnrs_kernels::array::NdArray as Array;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::shape::Shape;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyTuple};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(parametric, m)?)?;
    m.add_function(wrap_pyfunction!(parametric_index, m)?)?;
    m.add_function(wrap_pyfunction!(parametric_registry, m)?)
}

/// Python's initializers, which draw from a generator of NumPy; by default from `nnrs.random.prng`.
pub(super) struct Drawn(pub(super) Option<Py<PyAny>>);

impl Generator for Drawn {
    fn initializer(&self, usual: Usual) -> Arc<dyn Initializer> {
        let rng = self.0.as_ref().map(|rng| attached(|py| rng.clone_ref(py)));
        let (name, numbers) = match usual {
            Usual::Constant(v) => ("ConstantInitializer", vec![v]),
            Usual::Uniform(low, high) => ("UniformInitializer", vec![low, high]),
            Usual::Normal(sigma) => ("NormalInitializer", vec![sigma]),
        };
        let make = move |py: Python<'_>| {
            let arguments = (name, PyTuple::new(py, &numbers)?, &rng);
            helper(py, "_usual_initializer")?.call1(arguments).map(Bound::unbind)
        };
        Arc::new(Later { make: Box::new(make), made: OnceLock::new() })
    }

    fn norms(&self, w: &Var, dim: i64, eps: f64) -> Arc<dyn Initializer> {
        let w = w.clone();
        let make = move |py: Python<'_>| {
            let class = py.import("nnrs.initializer")?.getattr("WeightNormalizationScaleInitializer")?;
            class.call1((PyVariable::new(w.clone()), dim, eps)).map(Bound::unbind)
        };
        Arc::new(Later { make: Box::new(make), made: OnceLock::new() })
    }
}

type Make = Box<dyn Fn(Python<'_>) -> PyResult<Py<PyAny>> + Send + Sync>;

/// An initializer that is made when its values are wanted, which is only where the parameter is new.
struct Later {
    make: Make,
    made: OnceLock<PyInitializer>,
}

impl Initializer for Later {
    fn make(&self, shape: &Shape) -> Result<Array> {
        let made = attached(|py| (self.make)(py)).map_err(errors::carry)?;
        let made = PyInitializer::new(made, "initializer");
        self.made.get_or_init(|| made).make(shape)
    }

    fn made(&self, parameter: &Var) {
        self.made.get().into_iter().for_each(|given| given.made(parameter));
    }
}

fn init(value: &Bound<'_, PyAny>, argument: impl Into<String>) -> Init {
    Init::new(PyInitializer::new(value.clone().unbind(), argument))
}

/// An argument that only parametric functions have; `None` for a value that does not fit.
pub(crate) fn argument(value: &Bound<'_, PyAny>, kind: ArgKind, name: &str) -> PyResult<Option<ArgValue>> {
    let object = match kind {
        ArgKind::Inits => {
            let Ok(given) = value.cast::<PyMapping>() else { return Ok(None) };
            let pairs = given.items()?.extract::<Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>>()?.into_iter();
            let by_name = |(key, value): (Bound<'_, PyAny>, _)| {
                let key: String = key.extract().ok()?;
                let init = init(&value, format!("{name}['{key}']"));
                Some((key, init))
            };
            Object::new(Inits(pairs.filter_map(by_name).collect()))
        }
        ArgKind::Apply if !value.is_callable() => return Ok(None),
        ArgKind::Apply => {
            let f = value.clone().unbind();
            Object::new(Apply::new(move |v| attached(|py| applied(f.bind(py), v)).map_err(errors::carry)))
        }
        ArgKind::Variable => match variable(value) {
            Some((v, _)) => Object::new(v),
            None => return Ok(None),
        },
        ArgKind::Level => match value.cast::<PyVariable>() {
            Ok(v) => Object::new(Level::Of(v.get().var().clone())),
            Err(_) => return Ok(None),
        },
        ArgKind::Arrays => match value.extract::<Vec<Bound<'_, PyNdArray>>>() {
            Ok(list) => Object::new(GivenArrays(Some(list.iter().map(|a| a.get().inner().clone()).collect()))),
            Err(_) => return Ok(None),
        },
        ArgKind::Rng => Object::new(Rng(Some(Arc::new(Drawn(Some(value.clone().unbind())))))),
        _ => Object::new(init(value, name)),
    };
    Ok(Some(ArgValue::Object(object)))
}

fn applied(f: &Bound<'_, PyAny>, v: &Var) -> PyResult<Var> {
    let made = f.call1((PyVariable::new(v.clone()),))?;
    match made.cast::<PyVariable>() {
        Ok(v) => Ok(v.get().var().clone()),
        Err(_) => Err(errors::wrong_type(f.py(), "apply", "result", "a Variable", errors::describe(&made))),
    }
}

/// The variable that is given, also as an array; whether it is one.
pub(super) fn variable(given: &Bound<'_, PyAny>) -> Option<(Var, bool)> {
    match (given.cast::<PyVariable>(), given.cast::<PyNdArray>()) {
        (Ok(v), _) => Some((v.get().var().clone(), false)),
        (_, Ok(a)) => Some((Var::from_array(a.get().inner().clone()), true)),
        _ => None,
    }
}

/// The inputs of a layer, and whether they are arrays, as all of them are or none.
fn layer_inputs(
    def: &LayerDef,
    inputs: &Bound<'_, PyTuple>,
    args: &Bound<'_, PyTuple>,
) -> PyResult<(SmallVec<[Var; 4]>, bool)> {
    let mut vars = SmallVec::new();
    let mut arrays = None;
    let required = def.inputs.iter().map(|x| x.name).zip(inputs.iter_borrowed());
    let is_input = |(arg, v): &(&ArgDef, Borrowed<'_, '_, PyAny>)| arg.kind == ArgKind::Variable && !v.is_none();
    let optional = def.args.iter().zip(args.iter_borrowed()).filter(is_input).map(|(arg, v)| (arg.name, v));
    for (i, (name, given)) in required.chain(optional).enumerate() {
        let found = variable(&given).filter(|(_, is_array)| *arrays.get_or_insert(*is_array) == *is_array);
        let (v, _) = found.ok_or_else(|| wrong_input(def, name, &given, arrays))?;
        if i < def.inputs.len() {
            vars.push(v);
        }
    }
    Ok((vars, arrays == Some(true)))
}

fn wrong_input(def: &LayerDef, name: &str, given: &Bound<'_, PyAny>, arrays: Option<bool>) -> PyErr {
    let (expected, hint) = match (variable(given), arrays) {
        (Some((_, is_array)), Some(before)) if is_array != before => {
            let expected = if before {
                "an NdArray, as the inputs before it are"
            } else {
                "a Variable, as the inputs before it are"
            };
            (
                expected,
                "Variable.from_numpy_array(a.data) makes a Variable of an NdArray a, v.data is that of a Variable v",
            )
        }
        _ => ("a Variable or NdArray", "Variable.from_numpy_array makes one from an array"),
    };
    let e = Error::new(ErrorKind::Type, expected).argument(name).function(def.name);
    errors::raise(given.py(), e.actual(errors::describe(given)).hint(hint))
}

/// Refuses initial values for a parameter that the layer does not have.
fn check_names(def: &LayerDef, args: &Bound<'_, PyTuple>) -> PyResult<()> {
    for (arg, given) in def.args.iter().zip(args.iter_borrowed()).filter(|(arg, _)| arg.kind == ArgKind::Inits) {
        let Ok(given) = given.cast::<PyMapping>() else { continue };
        for name in given.keys()?.iter() {
            let own = name.extract::<String>().is_ok_and(|name| def.parameters.iter().any(|p| p.name == name));
            if !own {
                let known: Vec<String> = def.parameters.iter().map(|p| format!("'{}'", p.name)).collect();
                let e = Error::arg(arg.name, format!("names among {}", known.join(", "))).function(def.name);
                return Err(errors::raise(name.py(), e.actual(errors::print(&name))));
            }
        }
    }
    Ok(())
}

/// Calls layer number `index` in the current scope.
#[pyfunction]
fn parametric<'py>(
    py: Python<'py>,
    index: usize,
    inputs: &Bound<'py, PyTuple>,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let def = *registry()
        .get(index)
        .ok_or_else(|| PyTypeError::new_err("the generated functions are older than the extension"))?;
    let (x, is_array) = layer_inputs(def, inputs, args)?;
    let fail = |e: Error| errors::raise(py, e.function(def.name));
    check_names(def, args)?;
    let call = (def.build)(&mut arguments(def.args, args, &fail)?).map_err(fail)?;
    reserve::check(py)?;
    let named = || call(&x).map_err(|e| def.told(e));
    if is_array {
        let made = errors::run(py, || mode::inner(mode::context(), named))?;
        return wrap(py, made, |py, v| Ok(Bound::new(py, PyNdArray::new(v.raw_data()))?.into_any()));
    }
    let made = errors::run(py, || mode::with_origin(convert::script_line(py), named))?;
    wrap(py, made, |py, v| Ok(Bound::new(py, PyVariable::new(v))?.into_any()))
}

/// Number of a layer in the registry.
#[pyfunction]
fn parametric_index(name: &str) -> Option<usize> {
    registry().iter().position(|d| d.name == name)
}

/// Everything that is known about layers, for the generator.
#[pyfunction]
fn parametric_registry(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    registry().iter().map(|def| describe(py, def)).collect()
}

fn describe<'py>(py: Python<'py>, def: &LayerDef) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("name", def.name)?;
    d.set_item("scope", def.scope)?;
    d.set_item("doc", def.doc)?;
    d.set_item("inputs", def.inputs.iter().map(|x| (x.name, x.doc)).collect::<Vec<_>>())?;
    let args = def.args.iter().map(|a| (a.name, hint(a), a.optional, a.default.map(|f| f().repr()), a.doc));
    d.set_item("args", args.collect::<Vec<_>>())?;
    let parameters = def.parameters.iter().map(|p| (p.name, p.doc, p.shape, p.is_trained));
    d.set_item("parameters", parameters.collect::<Vec<_>>())?;
    d.set_item("returns", def.returns)?;
    d.set_item("several", def.has_several_outputs)?;
    d.set_item("example", def.example)?;
    Ok(d)
}
