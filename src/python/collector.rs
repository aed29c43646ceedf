//! Python's garbage collector and the graph: variables own PythonFunctions, several of them one, and a PythonFunction may
//! own variables, as solvers do; so may what a script keeps with a variable, as its `info`. Python counts references; that
//! "these own it together" is nothing that it could be told. So for the time of a collection each function that handles in
//! Python alone own has an [`Anchor`]: an object whose references are those of the graph; and so has each
//! variable with an `info`. Handles own the anchors of their variables or functions, anchors those of what is behind, and
//! the one of a PythonFunction or a variable its object.

use super::function::PyGraphFunction as GraphFunction;
use super::members::UserObject;
use super::python_function::{UserFunction, live};
use super::variable::PyVariable;
use crate::graph::{FunctionRef, HistoryNode, Root, Variable as Var, owned_by};
use crate::solver::Solver;
use nnrs_kernels::expr::ssa::MixMap;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// What stands for a node of the graph in a collection.
#[pyclass(frozen)]
struct Anchor {
    of: HistoryNode,
    behind: Mutex<Vec<Py<Anchor>>>,
}

/// Whether an object in Python is among the [`HANDLES`].
#[derive(Default)]
pub(crate) struct Noted(AtomicBool);

/// Objects in Python with user code before them: the node by its number, and how many objects hold it.
static HANDLES: Mutex<BTreeMap<u64, (Root, usize)>> = Mutex::new(BTreeMap::new());
/// Those that live, and some that do not any more.
static SOLVERS: Mutex<Vec<Weak<Solver>>> = Mutex::new(Vec::new());
/// How many objects have been noted: what was found out before one more came does not hold any more.
static NOTES: AtomicU64 = AtomicU64::new(0);

/// A collection, from its start to its end.
struct Collection {
    /// For each node one reference to its anchor for each of the objects that hold it. With those that anchors have of
    /// each other these are all: Python counts on each being told.
    of: MixMap<u64, Vec<Py<Anchor>>>,
    /// The same for what each solver owns, by its address.
    of_solvers: MixMap<usize, Vec<Py<Anchor>>>,
    /// Nodes looked at when owners were last sought, and collections since.
    work: usize,
    passed: usize,
}

static COLLECTION: Mutex<Option<Collection>> = Mutex::new(None);
/// The number of [`NOTES`] for which the anchors of the running collection are right, and one more; 0: none is running.
static RUNNING: AtomicU64 = AtomicU64::new(0);
static WATCHED: AtomicBool = AtomicBool::new(false);

/// Collections of the youngest objects, which are frequent, seek owners only if there has been one for each so many nodes.
const NODES: usize = 1000;

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

/// Lets Python say when a collection starts and stops; once, before the first of its objects is in a graph.
pub(crate) fn watch(py: Python<'_>) -> PyResult<()> {
    if WATCHED.load(Relaxed) {
        return Ok(());
    }
    let callback = wrap_pyfunction!(collection, py)?;
    let callbacks = py.import("gc")?.getattr("callbacks")?;
    if !WATCHED.swap(true, Relaxed) {
        callbacks.call_method1("append", (callback,))?;
    }
    Ok(())
}

/// Makes Python's type of anchors ready.
pub(crate) fn register(m: &Bound<'_, PyModule>) {
    m.py().get_type::<Anchor>();
}

/// Called by Python's gc.
#[pyfunction]
fn collection(py: Python<'_>, phase: &str, info: &Bound<'_, PyAny>) -> PyResult<()> {
    finish();
    if phase != "start" || !is_needed() {
        return Ok(());
    }
    let youngest = info.get_item("generation").and_then(|g| g.extract::<usize>()).is_ok_and(|g| g == 0);
    let (work, passed) = lock(&COLLECTION).as_mut().map_or((0, 0), |c| {
        c.passed += 1;
        (c.work, c.passed)
    });
    if youngest && passed * NODES < work {
        return Ok(());
    }
    let notes = NOTES.load(Relaxed);
    let made = Collection::new(py)?;
    *lock(&COLLECTION) = Some(made);
    RUNNING.store(notes + 1, Relaxed);
    Ok(())
}

/// The graph may own objects of Python's.
fn is_needed() -> bool {
    live() > 0 || UserObject::any()
}

/// Ends what is running.
fn finish() {
    RUNNING.store(0, Relaxed);
    let taken = |c: &mut Collection| (std::mem::take(&mut c.of), std::mem::take(&mut c.of_solvers));
    let (of, of_solvers) = lock(&COLLECTION).as_mut().map(taken).unwrap_or_default();
    let mut old: Vec<Py<Anchor>> = of.into_values().chain(of_solvers.into_values()).flatten().collect();
    // Chains of anchors are cut: freed by each other they would go as deep as they are long.
    while let Some(anchor) = old.pop() {
        old.append(&mut lock(&anchor.get().behind));
    }
}

impl Collection {
    fn new(py: Python<'_>) -> PyResult<Collection> {
        let solvers = of_solvers();
        let handles = std::mem::take(&mut *lock(&HANDLES));
        let ids: Vec<u64> = handles.keys().copied().collect();
        let mut roots: Vec<(Root, usize)> = handles.into_values().collect();
        let counts: Vec<usize> = roots.iter().map(|(_, n)| *n).collect();
        let (owners, theirs): (Vec<usize>, Vec<Root>) = solvers.into_iter().unzip();
        roots.extend(theirs.into_iter().map(|root| (root, 1)));
        let owned = owned_by(&roots);
        roots.truncate(ids.len());
        *lock(&HANDLES) = ids.iter().copied().zip(roots).collect();
        let anchor = |of: HistoryNode| Py::new(py, Anchor { of, behind: Mutex::default() });
        let all = owned.places.into_iter().map(anchor).collect::<PyResult<Vec<_>>>()?;
        for (a, behind) in all.iter().zip(&owned.behind) {
            *lock(&a.get().behind) = behind.iter().map(|&i| all[i].clone_ref(py)).collect();
        }
        let held = |(i, n): (usize, usize)| (0..n).map(|_| all[i].clone_ref(py)).collect();
        let mut places = owned.of.into_iter();
        let of = ids.into_iter().zip(&mut places).zip(counts);
        let of = of.filter_map(|((id, place), n)| Some((id, held((place?, n))))).collect();
        let mut of_solvers: MixMap<usize, Vec<Py<Anchor>>> = MixMap::default();
        for (owner, place) in owners.into_iter().zip(places) {
            of_solvers.entry(owner).or_default().extend(place.map(|i| all[i].clone_ref(py)));
        }
        Ok(Collection { of, of_solvers, work: owned.work, passed: 0 })
    }
}

/// What the solvers own that user code is before, each beside its owner's address.
fn of_solvers() -> Vec<(usize, Root)> {
    let mut all = lock(&SOLVERS);
    all.retain(|s| s.strong_count() > 0);
    let living: Vec<Arc<Solver>> = all.iter().filter_map(Weak::upgrade).collect();
    drop(all);
    let of_one = |s: &Arc<Solver>| {
        let at = Arc::as_ptr(s) as usize;
        let roots = s.owned_variables().into_iter().filter_map(|v| Root::of_variable(v.node()));
        roots.map(move |root| (at, root)).collect::<Vec<_>>()
    };
    living.iter().flat_map(of_one).collect()
}

/// Whether a collection is running for which anchors were made, and whether they are still right.
fn is_running() -> bool {
    RUNNING.load(Relaxed) == NOTES.load(Relaxed) + 1
}

impl Noted {
    /// Remembers an object in Python that holds a node, if user code is before that.
    fn note(&self, id: u64, root: Option<Root>) {
        let Some(root) = root else { return };
        if !self.0.swap(true, Relaxed) {
            lock(&HANDLES).entry(id).or_insert((root, 0)).1 += 1;
        }
    }

    /// Forgets it.
    fn forget(&self, id: u64) {
        if self.0.swap(false, Relaxed) {
            let mut handles = lock(&HANDLES);
            let left = handles.get_mut(&id).map(|(_, n)| {
                *n -= 1;
                *n
            });
            let root = if left == Some(0) { handles.remove(&id) } else { None };
            drop(handles);
            drop(root);
        }
    }

    /// Tells a collection of what an object owns that holds node `id`. What came into a graph of user code later than it was
    /// made is noted, and the next collection knows it.
    fn traverse(
        &self,
        id: u64,
        root: impl FnOnce() -> Option<Root>,
        visit: &PyVisit<'_>,
    ) -> Result<(), PyTraverseError> {
        if !is_running() {
            return Ok(());
        }
        if !self.0.load(Relaxed) {
            self.note(id, root());
            return Ok(());
        }
        let Ok(c) = COLLECTION.try_lock() else { return Ok(()) };
        c.as_ref().and_then(|c| c.of.get(&id)?.first()).map_or(Ok(()), |anchor| visit.call(anchor))
    }
}

/// What a new object in Python is noted as, that holds a variable.
pub(crate) fn new_variable(v: &Var) -> Noted {
    let noted = Noted::default();
    if is_needed() {
        NOTES.fetch_add(1, Relaxed);
        noted.note(v.node().id, Root::of_variable(v.node()));
    }
    noted
}

/// What a new object in Python is noted as, that holds a function.
pub(crate) fn new_function(f: &FunctionRef) -> Noted {
    let noted = Noted::default();
    if is_needed() {
        NOTES.fetch_add(1, Relaxed);
        noted.note(f.id(), Root::of_function(f.node()));
    }
    noted
}

/// Notes a solver, which owns parameters and states.
pub(crate) fn new_solver(solver: &Arc<Solver>) {
    NOTES.fetch_add(1, Relaxed);
    let mut all = lock(&SOLVERS);
    if all.len() == all.capacity() {
        all.retain(|s| s.strong_count() > 0);
    }
    all.push(Arc::downgrade(solver));
}

/// Tells the collector of what a solver owns.
pub(crate) fn traverse_solver(solver: &Arc<Solver>, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    if !is_running() {
        return Ok(());
    }
    let Ok(c) = COLLECTION.try_lock() else { return Ok(()) };
    let own = c.as_ref().and_then(|c| c.of_solvers.get(&(Arc::as_ptr(solver) as usize)));
    own.into_iter().flatten().try_for_each(|anchor| visit.call(anchor))
}

impl Drop for PyVariable {
    fn drop(&mut self) {
        self.noted().forget(self.var().node().id);
    }
}

impl Drop for GraphFunction {
    fn drop(&mut self) {
        self.noted().forget(self.inner().id());
    }
}

#[pymethods]
impl PyVariable {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let node = self.var().node();
        self.noted().traverse(node.id, || Root::of_variable(node), &visit)
    }
}

#[pymethods]
impl GraphFunction {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let f = self.inner();
        self.noted().traverse(f.id(), || Root::of_function(f.node()), &visit)
    }
}

#[pymethods]
impl Anchor {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if !is_running() {
            return Ok(());
        }
        let Ok(behind) = self.behind.try_lock() else { return Ok(()) };
        behind.iter().try_for_each(|a| visit.call(a))?;
        match &self.of {
            HistoryNode::Function(f) => {
                let own = UserFunction::of(&**f.function()).filter(|_| Arc::strong_count(f.function()) == 1);
                own.map_or(Ok(()), |own| visit.call(own.object()))
            }
            HistoryNode::Variable(v) => {
                let Some(s) = v.try_lock() else { return Ok(()) };
                let own = s.info.as_ref().filter(|info| Arc::strong_count(info) == 1);
                own.and_then(|info| info.downcast_ref::<UserObject>()).map_or(Ok(()), |kept| visit.call(kept.object()))
            }
        }
    }

    fn __clear__(&self) {
        if let HistoryNode::Variable(v) = &self.of {
            let info = v.lock().info.take();
            drop(info);
        }
    }
}
