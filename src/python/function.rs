//! `nnrs.function.Function`: a function of the graph, as `Variable.parent`, hooks and visitors give it.

use super::collector::{Noted, new_function};
use super::context::PyContext;
use super::python_function::{UserFunction, call_python_function};
use super::shared_statistics::communicator_of;
use super::variable::PyVariable;
use super::{call, convert, errors, finish};
use crate::function::Group;
use crate::graph::{FunctionRef, Variable as Var, mode};
use nnrs_kernels::random::{Draw, LastDraw};
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::collections::BTreeMap;

/// A function of the graph.
#[pyclass(frozen, weakref, name = "Function", module = "nnrs._core")]
pub(crate) struct PyGraphFunction {
    f: FunctionRef,
    noted: Noted,
}

impl PyGraphFunction {
    pub(crate) fn new(f: FunctionRef) -> PyGraphFunction {
        PyGraphFunction { noted: new_function(&f), f }
    }

    pub(super) fn noted(&self) -> &Noted {
        &self.noted
    }

    pub(crate) fn inner(&self) -> &FunctionRef {
        &self.f
    }

    fn args_of<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if let Some(user) = UserFunction::of(&**self.f.function()) {
            return user.args(py);
        }
        let d = PyDict::new(py);
        if let Some(comm) = communicator_of(&**self.f.function()) {
            d.set_item("comm", comm)?;
        }
        for (name, value) in self.f.arguments() {
            d.set_item(name, convert::to_object(py, &value)?)?;
        }
        Ok(d)
    }
}

type Vars<'py> = Vec<PyRef<'py, PyVariable>>;

fn vars<'a>(list: &'a Vars<'_>) -> Vec<&'a Var> {
    list.iter().map(|v| v.var()).collect()
}

impl PyGraphFunction {
    fn last_draw(&self) -> Option<LastDraw> {
        self.f.node().setup().ok().and_then(|setup| setup.kernels()?.last_draw())
    }
}

/// What it is.
#[pymethods]
impl PyGraphFunction {
    /// NNabla's class name of the function, as "Affine"; of a PythonFunction its `name`.
    #[getter]
    fn name(&self) -> &'static str {
        self.f.class_name()
    }

    /// The input Variables, in the order of the call.
    #[getter]
    fn inputs(&self) -> Vec<PyVariable> {
        self.f.inputs().into_iter().map(PyVariable::new).collect()
    }

    /// The output Variables; those that the script dropped come back.
    #[getter]
    fn outputs(&self) -> Vec<PyVariable> {
        self.f.outputs().into_iter().map(PyVariable::new).collect()
    }

    /// The arguments by NNabla's names, as the function uses them: what the call left to default is filled in.
    ///
    /// >>> import nnrs as nn, nnrs.functions as F
    /// >>> F.sum(nn.Variable((2, 3))).parent.arguments
    /// {'axes': [0, 1], 'keep_dims': False}
    ///
    /// >>> F.leaky_relu(nn.Variable((2,)), alpha=0.5).parent.arguments["alpha"]
    /// 0.5
    #[getter]
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.args_of(py)
    }

    /// The same as `arguments`.
    #[getter]
    fn args<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.args_of(py)
    }

    /// Name, arguments and tags in one object, with the members `type_name`, `args` and `tags`.
    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let info = (self.name(), self.args_of(py)?, self.f.tags());
        finish::calling(py, || py.import("nnrs.function")?.getattr("Info")?.call1(info))
    }

    /// Words of your own by name, kept with the function of the graph. A copy: assign it to change them.
    ///
    /// >>> import nnrs as nn, nnrs.functions as F
    /// >>> y = F.exp(nn.Variable((2,)))
    /// >>> y.parent.tags = {"block": "encoder"}
    /// >>> y.parent.tags
    /// {'block': 'encoder'}
    #[getter]
    fn get_tags(&self) -> BTreeMap<String, String> {
        self.f.tags()
    }

    #[setter]
    fn set_tags(&self, value: BTreeMap<String, String>) {
        self.f.set_tags(value);
    }

    /// The Context in which the function was made and runs.
    #[getter]
    fn context(&self) -> PyContext {
        PyContext::new(self.f.context())
    }

    /// The longest way to a leaf, counted in functions: lower ranks run first in forward, last in backward.
    #[getter]
    fn rank(&self) -> usize {
        self.f.rank()
    }

    /// Whether some input needs a gradient.
    #[getter]
    fn need_grad(&self) -> bool {
        self.f.inputs().iter().any(|v| v.need_grad_state())
    }

    /// The script line that made the function.
    #[getter]
    fn origin(&self) -> Option<String> {
        self.f.origin().map(str::to_string)
    }

    /// Key and number of the last draw of a random function; None for others, and before the first forward.
    #[getter]
    fn _draw(&self) -> Option<(u64, u64)> {
        self.last_draw().and_then(|last| last.get()).map(|draw| (draw.key, draw.number))
    }

    #[setter(_draw)]
    fn set_draw(&self, draw: Option<(u64, u64)>) {
        let Some(last) = self.last_draw() else { return };
        last.set(draw.map(|(key, number)| Draw { key, number }));
        let saved = &self.f.node().saved;
        if saved.value::<Draw>().is_some() {
            saved.clear(); // else it would come before the last one
        }
    }

    /// How many outputs the function has at least, as in NNabla: mostly 1, and 2 of `split`; of a PythonFunction all that it has.
    fn min_outputs(&self) -> usize {
        match self.f.function().def().snake {
            "split" => 2,
            "gru" | "lstm" | "pack_padded_sequence" | "pad_packed_sequence" | "rnn" | "stft" | "top_k_data" => {
                self.f.outputs().len()
            }
            _ if UserFunction::of(&**self.f.function()).is_some() => self.f.outputs().len(),
            _ => 1,
        }
    }

    fn __repr__(&self) -> &'static str {
        self.f.class_name()
    }

    fn __hash__(&self) -> u64 {
        self.f.id()
    }

    /// Functions have no order: as in NNabla, none is before or after another.
    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> bool {
        let same = || other.cast::<PyGraphFunction>().is_ok_and(|o| o.get().f.id() == self.f.id());
        match op {
            CompareOp::Eq => same(),
            CompareOp::Ne => !same(),
            _ => false,
        }
    }
}

/// What it does when it is called directly.
#[pymethods]
impl PyGraphFunction {
    /// Applies the same function with the same arguments to other inputs, as a new function of the graph, and computes
    /// it at once.
    ///
    /// >>> import nnrs as nn, nnrs.functions as F
    /// >>> f = F.leaky_relu(nn.Variable((2,)), alpha=0.5).parent
    /// >>> f(nn.NdArray.from_numpy_array([-4.0, 4.0])).data.tolist()
    /// [-2.0, 4.0]
    #[pyo3(signature = (*inputs, n_outputs=None, outputs=None))]
    fn __call__<'py>(
        &self,
        inputs: &Bound<'py, PyTuple>,
        n_outputs: Option<&Bound<'py, PyAny>>,
        outputs: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = inputs.py();
        let made = match UserFunction::of(&**self.f.function()) {
            Some(user) => call_python_function(py, user.object().bind(py), inputs, n_outputs, outputs)?,
            None => {
                let f = self.f.function().clone();
                call::wanted_outputs(f.def().snake, n_outputs)?;
                let into = call::into_arrays(f.def().snake, outputs.filter(|o| !o.is_none()))?;
                let given = call::inputs(f.def(), inputs)?;
                call::apply(py, f, given, into)?
            }
        };
        compute(py, &made)?;
        Ok(made)
    }

    /// Checks the inputs and gives the outputs their shapes. Any Variables: the graph is not touched.
    ///
    /// Args:
    ///     inputs: List of Variables, as many as the function takes.
    ///     outputs: List of Variables; their shapes are set, which drops their data where the size changes.
    ///
    /// Raises:
    ///     ValueError: Inputs that the function does not take, or another number of outputs.
    ///
    /// >>> import nnrs as nn, nnrs.functions as F
    /// >>> f = F.exp(nn.Variable((2,))).parent
    /// >>> x, y = nn.Variable.from_numpy_array([[0.0]]), nn.Variable()
    /// >>> f.setup([x], [y])
    /// >>> f.forward([x], [y])
    /// >>> y.d.tolist()
    /// [[1.0]]
    fn setup(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = convert::list)] inputs: Vars<'_>,
        #[pyo3(from_py_with = convert::list)] outputs: Vars<'_>,
    ) -> PyResult<()> {
        errors::run(py, || self.f.setup(&vars(&inputs), &vars(&outputs)))
    }

    /// Computes the data of the outputs from the data of the inputs, both shaped as `setup` leaves them.
    fn forward(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = convert::list)] inputs: Vars<'_>,
        #[pyo3(from_py_with = convert::list)] outputs: Vars<'_>,
    ) -> PyResult<()> {
        let (x, y) = (vars(&inputs), vars(&outputs));
        errors::detached(py, || self.f.forward(&x, &y))
    }

    /// Computes the gradients of those inputs that need one from the gradients of the outputs.
    ///
    /// Args:
    ///     inputs: List of Variables with their data.
    ///     outputs: List of Variables with their gradients, and the data that forward gave.
    ///     accum: For each input whether its gradient is added to what is there (the default), or written.
    ///
    /// >>> import nnrs as nn, nnrs.functions as F
    /// >>> x = nn.Variable.from_numpy_array([2.0, 3.0], need_grad=True)
    /// >>> y = x * x
    /// >>> y.forward()
    /// >>> y.g = 1
    /// >>> y.parent.backward([x, x], [y], accum=[False, True])
    /// >>> x.g.tolist()
    /// [4.0, 6.0]
    #[pyo3(signature = (inputs, outputs, accum=None))]
    fn backward(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = convert::list)] inputs: Vars<'_>,
        #[pyo3(from_py_with = convert::list)] outputs: Vars<'_>,
        accum: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let flag = |value| errors::flag(value, "Function.backward", "accum");
        let accum = accum.filter(|a| !a.is_none()).map(convert::list).transpose()?.unwrap_or_default();
        let accum = accum.iter().map(flag).collect::<PyResult<Vec<_>>>()?;
        let (x, y) = (vars(&inputs), vars(&outputs));
        errors::detached(py, || self.f.backward(&x, &y, &accum))
    }

    /// As `forward`, for the same values again: random functions give the numbers of their last forward, running
    /// statistics stay as they are.
    fn recompute(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = convert::list)] inputs: Vars<'_>,
        #[pyo3(from_py_with = convert::list)] outputs: Vars<'_>,
    ) -> PyResult<()> {
        let (x, y) = (vars(&inputs), vars(&outputs));
        errors::detached(py, || self.f.recompute(&x, &y))
    }

    /// Does nothing but check the shapes: `recompute` needs no preparation here.
    fn setup_recompute(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = convert::list)] inputs: Vars<'_>,
        #[pyo3(from_py_with = convert::list)] outputs: Vars<'_>,
    ) -> PyResult<()> {
        self.setup(py, inputs, outputs)
    }

    /// Whether output `o` is drawn at random: NNabla wants `setup_recompute` before `recompute` then. nnrs needs no
    /// preparation: the graph keeps seed and counter.
    fn need_setup_recompute(&self, #[pyo3(from_py_with = convert::plain)] o: usize) -> bool {
        let f = self.f.function();
        o < self.f.outputs().len() && f.def().group == Group::Random && f.has_state()
    }

    /// Leaves out the inputs for which `mask` is false from now on: `add_n` and `mul_n` work on the others alone.
    ///
    /// Raises:
    ///     RuntimeError: The function cannot leave out inputs.
    ///     ValueError: Another number of booleans than inputs, or all are false.
    ///
    /// >>> import nnrs as nn, nnrs.functions as F
    /// >>> x = [nn.Variable.from_numpy_array([v]) for v in (1.0, 2.0, 4.0)]
    /// >>> y = F.add_n(*x)
    /// >>> y.parent.set_active_input_mask([True, False, True])
    /// >>> y.forward()
    /// >>> y.d.tolist()
    /// [5.0]
    fn set_active_input_mask(&self, py: Python<'_>, mask: &Bound<'_, PyAny>) -> PyResult<()> {
        let mask: Vec<Bound<'_, PyAny>> = convert::list(mask)?;
        let mask = mask.iter().map(convert::flag).collect::<PyResult<Vec<bool>>>()?;
        errors::run(py, || self.f.set_active_inputs(&mask))
    }
}

/// What its gradient reads, and where its outputs lie.
#[pymethods]
impl PyGraphFunction {
    /// Whether the gradient of input `i` reads the data of input `j`; False where there is no such input. What nnrs
    /// really reads: often less than NNabla says (`F.mul2`: the other input alone), sometimes an input where NNabla
    /// reads the output.
    ///
    /// >>> import nnrs as nn, nnrs.functions as F
    /// >>> f = F.mul2(nn.Variable((2,)), nn.Variable((2,))).parent
    /// >>> f.grad_depends_input_data(0, 0), f.grad_depends_input_data(0, 1)
    /// (False, True)
    fn grad_depends_input_data(&self, #[pyo3(from_py_with = convert::plain)] i: i64, j: i64) -> bool {
        index(i).zip(index(j)).is_some_and(|(i, j)| self.f.grad_reads_input(i, j))
    }

    /// Whether the gradient of input `i` reads the data of output `o`; False where there is no such input or output.
    ///
    /// >>> import nnrs as nn, nnrs.functions as F
    /// >>> F.tanh(nn.Variable((2,))).parent.grad_depends_output_data(0, 0)
    /// True
    fn grad_depends_output_data(&self, #[pyo3(from_py_with = convert::plain)] i: i64, o: i64) -> bool {
        index(i).zip(index(o)).is_some_and(|(i, o)| self.f.grad_reads_output(i, o))
    }

    /// As `grad_depends_input_data`, for the gradient that `nn.grad` builds: whether input `j` is in its graph.
    fn auto_grad_depends_input_data(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = convert::plain)] i: i64,
        j: i64,
    ) -> PyResult<bool> {
        let of = || index(i).zip(index(j)).is_some_and(|(i, j)| self.f.rule_reads_input(i, j));
        errors::run(py, || Ok(of()))
    }

    /// As `grad_depends_output_data`, for the gradient that `nn.grad` builds.
    fn auto_grad_depends_output_data(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = convert::plain)] i: i64,
        o: i64,
    ) -> PyResult<bool> {
        let of = || index(i).zip(index(o)).is_some_and(|(i, o)| self.f.rule_reads_output(i, o));
        errors::run(py, || Ok(of()))
    }

    /// 1 if an output lies in the memory of input `i` and does not change it (`F.reshape`), 2 if it does (`out` of
    /// `F.scatter_nd`), else 0. Functions with `inplace=True` never change what can still be read, so they say 0 too.
    fn inplace_data(&self, #[pyo3(from_py_with = convert::plain)] i: i64) -> u8 {
        match index(i) {
            Some(0) if self.f.function().is_view() => 1,
            i if i.is_some() && i == self.f.rewritten_input() => 2,
            _ => 0,
        }
    }

    /// The output that lies in the memory of input `i`, if one does (see `inplace_data`); else 0, as in NNabla.
    fn inplace_data_with(&self, #[pyo3(from_py_with = convert::plain)] i: i64) -> usize {
        let _ = i;
        0
    }
}

/// Computes the outputs of a function that was just applied in a static graph.
fn compute(py: Python<'_>, made: &Bound<'_, PyAny>) -> PyResult<()> {
    let first = if made.is_instance_of::<PyTuple>() { made.get_item(0)? } else { made.clone() };
    let Some(f) =
        first.cast::<PyVariable>().ok().filter(|_| !mode::auto_forward()).and_then(|v| v.get().var().parent())
    else {
        return Ok(());
    };
    let (x, y) = (f.inputs(), f.outputs());
    let (x, y): (Vec<&Var>, Vec<&Var>) = (x.iter().collect(), y.iter().collect());
    errors::detached(py, || f.forward(&x, &y))
}

fn index(i: i64) -> Option<usize> {
    usize::try_from(i).ok()
}
