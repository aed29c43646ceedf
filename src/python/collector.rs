//! Python's garbage collector and the graph: a variable can own a PythonFunction, which may own the variable. The
//! collector is told of that function only where the variable is its one owner, so that it never counts it twice.

use super::function::Function as GraphFunction;
use super::python_function::{UserFunction, live};
use super::variable::Variable;
use crate::graph::{FunctionRef, Root, owned_functions};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// What each object owns, found at its first visit of a collection: both passes of it must be told the same.
struct Collection {
    running: bool,
    owned: BTreeMap<usize, Vec<FunctionRef>>,
}

static COLLECTION: Mutex<Collection> = Mutex::new(Collection { running: false, owned: BTreeMap::new() });
static WATCHED: PyOnceLock<()> = PyOnceLock::new();

/// Lets Python say when a collection starts and stops; once, before the first PythonFunction is in a graph.
pub(crate) fn watch(py: Python<'_>) -> PyResult<()> {
    WATCHED
        .get_or_try_init(py, || {
            let callback = wrap_pyfunction!(collection, py)?;
            py.import("gc")?.getattr("callbacks")?.call_method1("append", (callback,)).map(drop)
        })
        .map(drop)
}

/// Called by Python's gc.
#[pyfunction]
fn collection(phase: &str, info: &Bound<'_, PyAny>) {
    let _ = info;
    let old = {
        let mut c = COLLECTION.lock().unwrap_or_else(|e| e.into_inner());
        c.running = phase == "start" && live() > 0;
        std::mem::take(&mut c.owned)
    };
    drop(old);
}

/// Tells the collector of the Python functions that the object at address `me` owns through the graph.
pub(crate) fn traverse(me: usize, root: Root, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    if live() == 0 {
        return Ok(());
    }
    let Ok(mut c) = COLLECTION.try_lock() else { return Ok(()) };
    if !c.running {
        return Ok(());
    }
    let owned = c.owned.entry(me).or_insert_with(|| owned_functions(root));
    let objects = owned.iter().filter_map(|f| UserFunction::of(&**f.function()));
    for f in objects {
        visit.call(f.object())?;
    }
    Ok(())
}

#[pymethods]
impl Variable {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        traverse(self as *const _ as usize, Root::Variable(self.var().node()), &visit)
    }
}

#[pymethods]
impl GraphFunction {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        traverse(self as *const _ as usize, Root::Function(self.inner().node()), &visit)
    }
}
