//! More members of `nnrs.Variable`: notes of the user, surgery, and what is written in Python.

use super::array::PyNdArray;
use super::function::PyGraphFunction;
use super::variable::PyVariable;
use super::{call, collector, errors, finish};
use crate::graph::{self, Info, Variable as Var, mode};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Sets the function that makes a variable; `None` cuts its history.
pub(crate) fn set_parent(var: &Var, value: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let Some(value) = value.filter(|v| !v.is_none()) else {
        var.cut();
        return Ok(());
    };
    let py = value.py();
    let f = value.cast::<PyGraphFunction>().map_err(|_| {
        errors::wrong_type(py, "Variable.parent", "parent", "a Function or None", errors::type_name(value))
    })?;
    errors::run(py, || var.set_parent(f.get().inner()))
}

/// An object that a script keeps with a variable.
pub(crate) struct UserObject {
    /// There until it is dropped.
    object: Option<Py<PyAny>>,
    is_foreign: bool,
}

/// How many are kept that may be in a cycle.
static KEPT: AtomicUsize = AtomicUsize::new(0);

impl UserObject {
    fn info(object: Bound<'_, PyAny>, is_foreign: bool) -> Option<Info> {
        if object.is_none() {
            return None;
        }
        KEPT.fetch_add(is_foreign as usize, Relaxed);
        Some(Arc::new(UserObject { object: Some(object.unbind()), is_foreign }))
    }

    pub(super) fn object(&self) -> &Py<PyAny> {
        self.object.as_ref().expect("it is there until it is dropped")
    }

    /// Some object is kept that may be in a cycle.
    pub(super) fn any() -> bool {
        KEPT.load(Relaxed) > 0
    }
}

thread_local! {
    /// Objects to be dropped by the thread that began to, while it does.
    static DROPPED: RefCell<Option<Vec<Py<PyAny>>>> = const { RefCell::new(None) };
}

/// One by one, without recursion: variables that keep each other so may be a long chain.
impl Drop for UserObject {
    fn drop(&mut self) {
        KEPT.fetch_sub(self.is_foreign as usize, Relaxed);
        let mut object = self.object.take();
        // At the end of a thread there may be no list any more.
        let _ = DROPPED.try_with(|dropped| {
            let mut list = dropped.take();
            let is_first = list.is_none();
            list.get_or_insert_default().extend(object.take());
            dropped.replace(list);
            let next = || dropped.borrow_mut().as_mut().and_then(Vec::pop);
            while is_first && let Some(object) = next() {
                drop(object);
            }
            if is_first {
                dropped.replace(None);
            }
        });
    }
}

/// Python's collector looks at objects of this type.
fn may_be_in_a_cycle(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the type of a living object.
    let flags = unsafe { pyo3::ffi::PyType_GetFlags(object.get_type().as_type_ptr()) };
    flags & pyo3::ffi::Py_TPFLAGS_HAVE_GC != 0
}

/// Calls a function of `nnrs._members`.
pub(crate) fn in_python<'py>(py: Python<'py>, name: &str, given: impl PyCallArgs<'py>) -> PyResult<Bound<'py, PyAny>> {
    finish::calling(py, || py.import("nnrs._members")?.call_method1(name, given))
}

#[pymethods]
impl PyVariable {
    /// Anything that the user wants to keep with the variable.
    #[getter]
    pub(super) fn get_info(&self, py: Python<'_>) -> Py<PyAny> {
        let kept =
            self.var().info().and_then(|i| i.downcast_ref::<UserObject>().map(|kept| kept.object().clone_ref(py)));
        kept.unwrap_or_else(|| py.None())
    }

    #[setter]
    pub(super) fn set_info(&self, value: Bound<'_, PyAny>) -> PyResult<()> {
        let is_foreign = may_be_in_a_cycle(&value);
        if is_foreign {
            collector::watch(value.py())?;
            self.var().node().set_foreign();
        }
        self.var().set_info(UserObject::info(value, is_foreign));
        Ok(())
    }

    /// Keeps what is in no cycle: collections need not look at graphs for it.
    #[pyo3(name = "_note_info")]
    fn note_info(&self, value: Bound<'_, PyAny>) {
        self.var().set_info(UserObject::info(value, false));
    }

    /// How many variables share this one's arrays: itself and its unlinked copies.
    #[getter(get_number_of_references)]
    fn number_of_references(&self) -> usize {
        self.var().sharers()
    }

    /// Exceptions while a variable was freed. Always empty: NNabla's, for scripts that look at it.
    #[classattr]
    #[pyo3(name = "EXCEPTIONS_AT_DEALLOC")]
    fn exceptions_at_dealloc() -> Vec<Py<PyAny>> {
        Vec::new()
    }

    /// The same network without gradients: built again under `nnrs.no_grad`, on parameters that need none.
    fn no_grad<'py>(slf: &Bound<'py, PyVariable>) -> PyResult<Bound<'py, PyAny>> {
        in_python(slf.py(), "no_grad", (slf,))
    }

    /// A variable over the memory of this one, which is filled with `value` where `mask` is not zero when it is computed.
    /// The place of this one in its graph stays as it is.
    ///
    /// >>> x = nn.Variable.from_numpy_array(np.float32([1, 2, 3]))
    /// >>> r = x.masked_fill_(np.float32([0, 1, 0]), 9)
    /// >>> r.forward()
    /// >>> x.parent, x.d
    /// (None, array([1., 9., 3.], dtype=float32))
    fn masked_fill_<'py>(
        slf: &Bound<'py, PyVariable>,
        mask: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        in_python(slf.py(), "bool_fill", (slf, mask, value))
    }

    /// The same as `masked_fill_`.
    fn bool_fill_<'py>(
        slf: &Bound<'py, PyVariable>,
        mask: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        PyVariable::masked_fill_(slf, mask, value)
    }

    /// The data array as it is: nothing is computed again for it.
    fn _raw_data(&self) -> PyNdArray {
        PyNdArray::new(self.var().raw_data())
    }

    /// Whether data and gradient have been cleared.
    fn _clear_called(&self) -> (bool, bool) {
        let node = self.var().node();
        let grad = node.existing_grad().is_some_and(|g| g.storage().is_cleared());
        (self.var().raw_data().storage().is_cleared(), grad || node.seed_was_cleared())
    }

    /// Gives this variable the value `new`, which is computed from it.
    fn _supersede(&self, py: Python<'_>, new: &PyVariable) -> PyResult<()> {
        errors::run(py, || self.var().supersede(new.var()))
    }
}

/// Applies a graph's function to other inputs, in its own context.
#[pyfunction]
pub(crate) fn apply_again<'py>(
    py: Python<'py>,
    f: &PyGraphFunction,
    inputs: Vec<PyRef<'py, PyVariable>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let vars: Vec<&Var> = inputs.iter().map(|v| v.var()).collect();
    let node = f.inner();
    let apply = || graph::apply(node.function().clone(), &vars, node.origin().map(Arc::from));
    call::tuple_of(py, errors::run(py, || mode::in_context(node.context(), apply))?)
}
