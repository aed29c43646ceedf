//! Data that was not kept, made again when it is read after all: by the nodes behind it, whichever root ran them.
//!
//! Each node knows when it ran last and since when its runs have made the same, each array when it was written last. So a
//! value can be made again as long as nothing behind it was written since its function ran, or what was written is the same.

use super::build::note_remade;
use super::changes::made_at;
use super::exec::interruptible;
use super::invoke::{ForwardMode, run_arrays};
use super::order::{by_rank, collect};
use super::turn::Turn;
use crate::graph::mode;
use crate::graph::node::{FnNode, maker};
use crate::graph::variable::VarRef;
use nnrs_kernels::array::{Absent, Maker, NdArray, Storage, gone};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::expr::ssa::MixMap;
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

impl Maker for FnNode {
    fn make(self: Arc<Self>, storage: &Arc<Storage>) -> Result<()> {
        match self.ran() {
            0 => {
                note_remade(&self); // it never ran: what a reader finds is no value of a run
                show_input(&self, storage)
            }
            _ => make(&self, storage).map_err(|e| self.explain(e)),
        }
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn std::any::Any + Send + Sync> {
        self
    }
}

/// What is an input under another shape shows that input before it has run. Views of views are followed one by one: they may be
/// many, and arrays may have been exchanged so that they go round in a circle.
fn show_input(f: &Arc<FnNode>, storage: &Arc<Storage>) -> Result<()> {
    let mut views: Vec<(NdArray, NdArray)> = Vec::new();
    let (mut next, mut wanted, mut seen) = (Some(f.clone()), storage.clone(), MixMap::default());
    while let Some(f) = next.take() {
        let (x, y) = (f.inputs(), f.output_arrays());
        let ([x], [y]) = (&x[..], &y[..]) else { break };
        let x = x.data();
        let source = x.storage();
        let is_known = seen.insert(Arc::as_ptr(&wanted) as usize, ()).is_some() || Arc::ptr_eq(&source, &wanted);
        if !f.function.is_view() || !Arc::ptr_eq(&y.storage(), &wanted) || x.size() != y.size() || is_known {
            break;
        }
        views.push((x, y.clone()));
        match source.absent() {
            Some(Absent::Made(maker)) => next = node(&maker).filter(|f| f.ran() == 0),
            _ => break,
        }
        if next.is_none() {
            source.fetch()?;
        }
        wanted = source;
    }
    views.iter().rev().filter(|(x, _)| !x.is_empty()).try_for_each(|(x, y)| y.share_content(x))
}

/// How often to wait for other threads that run what a value is made of.
const TRIES: usize = 20;

/// Makes what `f` has made. Where another thread's run is in the way, which may have cleared something or not have come to
/// `f` yet, once more when that has ended.
fn make(f: &Arc<FnNode>, storage: &Arc<Storage>) -> Result<()> {
    let attempt = || RecomputeSearch::new([f]).map_err(Failure::Found).and_then(|s| s.run(storage));
    let mut done = attempt();
    for _ in 0..TRIES {
        let Err(Failure::Found(_)) = &done else { break };
        let behind = collect(&f.inputs()).functions;
        let turn = Turn::take_soon(behind.iter().chain([f]).map(|f| &**f));
        done = attempt();
        if turn.is_some() {
            break;
        }
    }
    done.map_err(|(Failure::Found(e) | Failure::Run(e))| e)
}

/// An error if what these functions have made could not be made again.
pub(super) fn check_makers<'a>(functions: impl IntoIterator<Item = &'a Arc<FnNode>>) -> Result<()> {
    RecomputeSearch::new(functions).map(drop)
}

/// Why a value was not made again.
enum Failure {
    /// Something that it is made of was not there, or has changed.
    Found(Error),
    /// A function has failed.
    Run(Error),
}

/// An error if `x`, made by `maker`, is not what `reader` has read in its last run.
pub(super) fn check_input(x: &NdArray, maker: Option<&Weak<dyn Maker>>, reader: &FnNode) -> Result<()> {
    let time = reader.ran();
    let is_same = || match maker {
        Some(maker) if x.is_empty() => node(maker).is_none_or(|f| made_at(&f, time)),
        _ => is_unchanged(&x.storage(), time, maker.and_then(node)),
    };
    if time == 0 || is_same() { Ok(()) } else { Err(changed()) }
}

/// True if the content is what it was at a time: it was not written since, but by runs that made the same again.
/// `maker`: the function of which a variable that has it is an output; where there is none, another variable's.
pub(super) fn is_unchanged(storage: &Storage, time: u64, maker: Option<Arc<FnNode>>) -> bool {
    let is_made_again = |f: Arc<FnNode>| storage.is_as_at(f.ran()) && made_at(&f, time);
    storage.is_as_at(time) || maker.or_else(|| storage.made_by().as_ref().and_then(node)).is_some_and(is_made_again)
}

/// What a step has made again is of the function's last run.
pub(super) fn note_made(maker: &Weak<dyn Maker>, array: &NdArray) {
    if let Some(f) = node(maker) {
        array.storage().set_modified(f.ran());
    }
}

pub(super) fn node(maker: &Weak<dyn Maker>) -> Option<Arc<FnNode>> {
    maker.upgrade()?.as_any().downcast().ok()
}

/// The functions to run, and what they read.
struct RecomputeSearch {
    functions: Vec<Arc<FnNode>>,
    seen: MixMap<usize, ()>,
    /// Inputs of the functions, and when these ran.
    todo: Vec<(VarRef, u64)>,
}

impl RecomputeSearch {
    /// What must run for some functions to run. The values wanted are those of their last runs.
    fn new<'a>(wanted: impl IntoIterator<Item = &'a Arc<FnNode>>) -> Result<RecomputeSearch> {
        let (functions, seen, todo) = (Vec::new(), MixMap::default(), Vec::new());
        let mut search = RecomputeSearch { functions, seen, todo };
        wanted.into_iter().try_for_each(|f| search.function(f))?;
        while let Some((x, time)) = search.todo.pop() {
            search.input(&x, time)?;
        }
        by_rank(&mut search.functions);
        Ok(search)
    }

    fn function(&mut self, f: &Arc<FnNode>) -> Result<()> {
        if self.seen.insert(Arc::as_ptr(f) as usize, ()).is_some() {
            return Ok(());
        }
        if !f.is_set_up() || f.rewrites().is_some() {
            return Err(changed());
        }
        self.functions.push(f.clone());
        // What a function only updates has no part in what it makes.
        let reads = f.inputs().into_iter().enumerate().filter(|(i, _)| !f.function.updates_input(*i));
        self.todo.extend(reads.map(|(_, x)| (x, f.ran())));
        Ok(())
    }

    /// An input, as it was at `time`.
    fn input(&mut self, x: &VarRef, time: u64) -> Result<()> {
        let storage = x.data().storage();
        if !x.has_its_array_since(time) {
            return Err(changed());
        }
        let Some(absent) = storage.absent() else {
            return if is_unchanged(&storage, time, x.parent()) { Ok(()) } else { Err(changed()) };
        };
        let Absent::Made(maker) = absent else {
            return if storage.is_as_at(time) { storage.fetch() } else { Err(changed()) }; // it may have been cleared
        };
        let Some(f) = node(&maker).filter(|f| f.ran() > 0) else { return storage.fetch() };
        if !made_at(&f, time) {
            return Err(changed());
        }
        self.function(&f)
    }

    /// Runs the functions; of what they make only `target` stays, and what is there is not touched.
    fn run(self, target: &Arc<Storage>) -> Result<(), Failure> {
        let _turn = Turn::take_soon(self.functions.iter().map(|f| &**f));
        let mut made: Vec<Made> = Vec::new();
        let mut run = |f: &Arc<FnNode>| -> Result<(), Failure> {
            let x: SmallVec<[NdArray; 4]> = f.inputs().iter().map(|v| v.data()).collect();
            // All that it reads was made before, unless another thread has cleared it, an array is to be made of itself, or
            // the graph was cut.
            if x.iter().enumerate().any(|(i, x)| !f.function.updates_input(i) && is_to_be_made(x)) {
                return Err(Failure::Found(gone()));
            }
            let outputs = f.output_arrays();
            let y: SmallVec<[NdArray; 2]> =
                outputs.iter().map(|y| if y.is_empty() { y.clone() } else { NdArray::of_engine(y.shape()) }).collect();
            let own = outputs.into_iter().filter(|y| y.is_empty());
            made.extend(own.map(|array| Made { by: f.clone(), is_cleared: array.storage().is_cleared(), array }));
            let run = || mode::again(|| run_arrays(f, &x, &y, ForwardMode::AGAIN));
            interruptible(run, |e| e).map_err(|e| Failure::Run(f.explain(e)))
        };
        let done = self.functions.iter().try_for_each(&mut run);
        let is_target = |m: &&Made| done.is_ok() && Arc::ptr_eq(&m.array.storage(), target);
        made.iter().filter(|m| !is_target(m)).for_each(Made::drop_again);
        let Some(found) = made.iter().find(is_target) else {
            done?;
            // Another thread may have made it meanwhile.
            return if target.is_empty() { Err(Failure::Found(gone())) } else { Ok(()) };
        };
        target.set_modified(found.by.ran());
        target.watch(); // more may be made of it
        note_remade(&found.by);
        Ok(())
    }
}

/// It is empty, and a function that has run makes its content.
fn is_to_be_made(x: &NdArray) -> bool {
    match x.storage().absent() {
        Some(Absent::Made(maker)) => node(&maker).is_some_and(|f| f.ran() > 0),
        _ => false,
    }
}

/// An array that was made again.
struct Made {
    by: Arc<FnNode>,
    array: NdArray,
    is_cleared: bool,
}

impl Made {
    fn drop_again(&self) {
        self.array.lose(&maker(&self.by), self.is_cleared);
    }
}

pub(super) fn changed() -> Error {
    Error::graph(
        "the data of an intermediate variable was not kept, and cannot be computed again: an input of the graph has changed since forward",
    )
    .hint("hold the Variable while forward runs without clear_buffer, or set its persistent flag, to keep its data; or run forward again")
}
