//! `nnrs.function.PythonFunction`: functions whose setup, forward and backward are Python methods.

use super::finish::{self, attached};
use super::variable::PyVariable;
use super::{call, errors};
use crate::function::args::{ArgumentsKey, key};
use crate::function::{ArgValue, Def, Described, Function, Grad, Group, InputDef, InputKind, Needs, OnVariables};
use crate::function::{OnGpu, OutputDef, Shapes};
use crate::graph::Variable as Var;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::shape::Shape;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping, PyTuple};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(call_python_function, m)?)
}

static NEXT: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicU64 = AtomicU64::new(0);

/// Nodes of Python functions that are alive.
pub(crate) fn live() -> u64 {
    LIVE.load(Relaxed)
}

/// One call of a PythonFunction: what the node holds.
pub(crate) struct UserFunction {
    def: &'static Def,
    number: u64,
    object: Py<PyAny>,
    outputs: usize,
    depends: Mutex<Depends>,
}

/// For each input's gradient what it reads, as the user says.
#[derive(Clone, Default)]
struct Depends(Vec<Needs>);

impl UserFunction {
    fn new(object: &Bound<'_, PyAny>, name: &str, outputs: usize) -> UserFunction {
        LIVE.fetch_add(1, Relaxed);
        let number = NEXT.fetch_add(1, Relaxed);
        UserFunction { def: def(name), number, object: object.clone().unbind(), outputs, depends: Mutex::default() }
    }

    /// The user's object.
    pub(crate) fn object(&self) -> &Py<PyAny> {
        &self.object
    }

    /// A copy of the mapping that the user's class gives as `args`; an empty one where it gives none, or raises.
    pub(crate) fn args<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let given: PyResult<_> = finish::calling(py, || {
            let args = self.object.bind(py).getattr("args")?;
            let copy = PyDict::new(py);
            copy.update(args.cast::<PyMapping>()?)?;
            Ok(copy)
        });
        match given {
            Err(e) if e.is_instance_of::<PyException>(py) => Ok(PyDict::new(py)),
            given => given,
        }
    }

    /// The user's function behind a node, if it is one.
    pub(crate) fn of(f: &dyn Function) -> Option<&UserFunction> {
        (f as &dyn std::any::Any).downcast_ref()
    }

    /// Calls a method with lists of variables first.
    fn call<'py>(&self, py: Python<'py>, method: &str, x: &[Var], y: &[Var], more: &[&[bool]]) -> PyResult<()> {
        let list = |vars: &[Var], of: fn(Var) -> PyVariable| {
            PyList::new(py, vars.iter().map(|v| of(v.clone())).collect::<Vec<_>>()).map(Bound::into_any)
        };
        let mut args = match method {
            "forward_impl" => vec![list(x, PyVariable::new)?, list(y, PyVariable::result)?],
            "backward_impl" => vec![list(x, PyVariable::result)?, list(y, PyVariable::new)?],
            _ => vec![list(x, PyVariable::new)?, list(y, PyVariable::new)?],
        };
        for flags in more {
            args.push(PyList::new(py, flags.iter())?.into_any());
        }
        self.object.bind(py).call_method1(method, PyTuple::new(py, args)?).map(drop)
    }

    /// The gradients of the inputs as a graph, by what nnrs's own functions in Python have for it; they read no data.
    fn own_rule(&self, py: Python<'_>, gy: &[Var]) -> PyResult<Option<Vec<Option<Var>>>> {
        let object = self.object.bind(py);
        if !object.hasattr("_nnrs_gradient")? {
            return Ok(None);
        }
        let given: Vec<PyVariable> = gy.iter().cloned().map(PyVariable::new).collect();
        let parts = object.call_method1("_nnrs_gradient", (given,))?;
        let parts: Vec<Option<PyRef<'_, PyVariable>>> = parts.extract()?;
        Ok(Some(parts.into_iter().map(|v| v.map(|v| v.var().clone())).collect()))
    }

    fn ask_depends(&self, py: Python<'_>, inputs: usize) -> PyResult<Depends> {
        let object = self.object.bind(py);
        let mask = |method: &str, i: usize, n: usize| -> PyResult<u32> {
            let mut mask = 0;
            for k in 0..n {
                mask |= (object.call_method1(method, (i, k))?.is_truthy()? as u32) << k.min(31);
            }
            Ok(mask)
        };
        let needs = |i| -> PyResult<Needs> {
            let y = mask("grad_depends_output_data", i, self.outputs)?;
            Ok(Needs { x: mask("grad_depends_input_data", i, inputs)?, y })
        };
        (0..inputs).map(needs).collect::<PyResult<Vec<_>>>().map(Depends)
    }

    fn depends(&self) -> Vec<Needs> {
        self.depends.lock().unwrap_or_else(|e| e.into_inner()).0.clone()
    }
}

impl Drop for UserFunction {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Relaxed);
    }
}

static DEFS: Mutex<BTreeMap<String, &'static Def>> = Mutex::new(BTreeMap::new());

/// What the engine knows of functions of this name: made once for each, for good.
fn def(name: &str) -> &'static Def {
    let mut defs = DEFS.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(def) = defs.get(name) {
        return def;
    }
    let leaked: &'static str = Box::leak(name.to_string().into_boxed_str());
    let made: &'static Def = Box::leak(Box::new(Def { name: leaked, snake: leaked, ..TEMPLATE }));
    defs.insert(name.to_string(), made);
    made
}

const TEMPLATE: Def = Def {
    name: "PythonFunction",
    snake: "PythonFunction",
    group: Group::Special,
    doc: "A function written in Python.",
    elementwise: false,
    on_gpu: OnGpu::Nothing,
    inputs: &[InputDef { name: "inputs", kind: InputKind::Variadic, doc: "N-D arrays." }],
    args: &[],
    outputs: &[OutputDef { name: "outputs", variadic: true, doc: "N-D arrays." }],
    build: |_| Err(Error::unsupported("Python functions are made in Python")),
};

impl Described for UserFunction {
    fn def(&self) -> &'static Def {
        self.def
    }
    fn arguments(&self) -> Vec<(&'static str, ArgValue)> {
        vec![]
    }
    fn key(&self) -> ArgumentsKey {
        key(|h| h(self.number))
    }
}

impl Function for UserFunction {
    fn grad(&self, g: &Grad) -> Result<Vec<Option<Var>>> {
        if let Some(parts) = attached(|py| self.own_rule(py, &g.gy)).map_err(errors::carry)? {
            return Ok(parts);
        }
        let name = self.def.name;
        let e = Error::new(ErrorKind::Argument, format!("no gradient rule is registered for '{name}'"));
        Err(e.hint(format!("nnrs.backward_functions.register('{name}', rule) tells nn.grad the gradient as a graph")))
    }

    fn on_variables(&self) -> Option<&dyn OnVariables> {
        Some(self)
    }
}

impl OnVariables for UserFunction {
    fn setup(&self, x: &[Var]) -> Result<Shapes> {
        let y: Vec<Var> = (0..self.outputs).map(|_| Var::new(Shape::default())).collect();
        let depends = attached(|py| {
            self.call(py, "setup_impl", x, &y, &[])?;
            // As NNabla: a function without a gradient need not say what it would read.
            if x.iter().any(Var::need_grad_state) { self.ask_depends(py, x.len()) } else { Ok(Depends::default()) }
        });
        *self.depends.lock().unwrap_or_else(|e| e.into_inner()) = depends.map_err(errors::carry)?;
        Ok(y.iter().map(Var::shape).collect())
    }

    fn forward(&self, x: &[Var], y: &[Var]) -> Result<()> {
        attached(|py| self.call(py, "forward_impl", x, y, &[])).map_err(errors::carry)
    }

    fn backward(&self, x: &[Var], y: &[Var], want: &[bool], accumulate: &[bool]) -> Result<()> {
        attached(|py| self.call(py, "backward_impl", x, y, &[want, accumulate])).map_err(errors::carry)
    }

    fn needs(&self, want: &[bool]) -> Needs {
        let depends = self.depends();
        if depends.len() != want.len() {
            return Needs::ALL;
        }
        let wanted = depends.iter().zip(want).filter(|(_, w)| **w);
        wanted.fold(Needs::NONE, |all, (n, _)| Needs { x: all.x | n.x, y: all.y | n.y })
    }
}

/// Applies a PythonFunction to variables, or at once where an NdArray is among them.
#[pyfunction]
#[pyo3(signature = (function, given, n_outputs=None, outputs=None))]
pub(crate) fn call_python_function<'py>(
    py: Python<'py>,
    function: &Bound<'py, PyAny>,
    given: &Bound<'py, PyTuple>,
    n_outputs: Option<&Bound<'py, PyAny>>,
    outputs: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    finish::calling(py, || {
        let name: String = function.getattr("name")?.extract()?;
        let least: usize = function.call_method0("min_outputs")?.extract()?;
        let n = usize::try_from(call::wanted_outputs(&name, n_outputs)?).unwrap_or(least);
        if n < least.max(1) {
            let e = Error::arg("n_outputs", format!("at least {}", least.max(1))).actual(n).function(name);
            return Err(errors::raise(py, e));
        }
        super::collector::watch(py)?;
        let f: Arc<dyn Function> = Arc::new(UserFunction::new(function, &name, n));
        let inputs = call::inputs(f.def(), given)?;
        let outputs = outputs.filter(|o| !o.is_none());
        call::apply(py, f, inputs, call::into_arrays(&name, outputs)?)
    })
}
