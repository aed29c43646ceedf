//! Batch normalization by statistics that the ranks of a group share, as functions of a graph.

use crate::function::args::{ArgumentsKey, key};
use crate::function::normalization::{BatchNormalization, NormalizationRule};
use crate::function::{
    ArgValue, Call, Def, Described, Function, Grad, Group, InputDef, InputKind, OnGpu, OutputDef, Resolved, call,
    call_of, call_one,
};
use crate::graph::{FunctionRef, Variable};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::normalization::{SharedBatchNormalization, SharedMean, SumOverRanks};
use nnrs_kernels::shape::Shape;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A group of ranks, and how it sums: all of its members run the functions here alike, in one order with other collectives.
#[derive(Clone)]
pub(crate) struct SharedStatistics {
    pub(crate) all: Arc<dyn SumOverRanks>,
    pub(crate) group: String,
    /// It sums where a GPU has the numbers: runs may be captured.
    pub(crate) on_gpu: bool,
}

impl SharedStatistics {
    /// The batch normalization `f`, by the statistics of the batches of all ranks.
    pub(crate) fn normalization(self, f: &FunctionRef) -> Result<Vec<Variable>> {
        let of = (&**f.function() as &dyn Any).downcast_ref::<BatchNormalization>();
        let of = of.ok_or_else(|| Error::arg("f", "a batch_normalization").actual(f.name()))?.clone();
        let x = f.inputs();
        call(SyncFunction { of, shared: self, number: next() }, &x.iter().collect::<Vec<_>>())
    }

    /// `x` is summed up over all ranks, and divided by how many elements it is the sum of, `count` of them this rank's.
    fn mean(&self, x: &Variable, count: usize) -> Result<Variable> {
        call_one(MeanOverRanks { count, shared: self.clone(), number: next() }, &[x])
    }
}

/// A number for each function that is made: none is another one's equal.
fn next() -> u64 {
    NEXT.fetch_add(1, Relaxed)
}

const fn definition(of: &Def, name: &'static str, snake: &'static str, doc: &'static str, on_gpu: OnGpu) -> Def {
    let build = |_: &mut _| Err(Error::unsupported("this function needs a communicator"));
    Def { name, snake, group: Group::Special, doc, elementwise: false, on_gpu, build, ..*of }
}

/// [`BatchNormalization`] over a group.
pub(crate) struct SyncFunction {
    of: BatchNormalization,
    pub(crate) shared: SharedStatistics,
    number: u64,
}

#[cfg(feature = "python")]
impl SyncFunction {
    pub(crate) fn find(f: &dyn Function) -> Option<&SyncFunction> {
        (f as &dyn Any).downcast_ref()
    }
}

impl Described for SyncFunction {
    fn def(&self) -> &'static Def {
        const fn by(on_gpu: OnGpu) -> Def {
            const DOC: &str = "Batch normalization by the statistics of the batches of all ranks of a group.";
            definition(BatchNormalization::DEF, "SyncBatchNormalization", "sync_batch_normalization", DOC, on_gpu)
        }
        const HOST: &Def = &by(OnGpu::Nothing);
        const GPU: &Def = &by(OnGpu::Both);
        if self.shared.on_gpu { GPU } else { HOST }
    }

    fn arguments(&self) -> Vec<(&'static str, ArgValue)> {
        [("group", ArgValue::Str(self.shared.group.clone()))].into_iter().chain(self.of.arguments()).collect()
    }

    fn key(&self) -> ArgumentsKey {
        key(|h| h(self.number))
    }
}

impl Function for SyncFunction {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let (shapes, of) = self.of.kernel(x, ["axes", "x"])?;
        Ok(Resolved::new(shapes, SharedBatchNormalization { of, all: self.shared.all.clone() }))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        let axes = &call_of::<SharedBatchNormalization>(call).of.axes;
        let mut used = self.of.used_over(self.arguments(), axes);
        used.retain(|(name, v)| !name.starts_with("no_") || *v == ArgValue::Bool(true)); // NNabla's takes all inputs
        used
    }

    fn has_state(&self) -> bool {
        true
    }

    fn updates_input(&self, i: usize) -> bool {
        self.of.updates_input(i)
    }

    fn input_name(&self, i: usize) -> &'static str {
        self.of.input_name(i)
    }

    fn differentiable(&self, i: usize) -> bool {
        self.of.differentiable(i)
    }

    fn widens_grad(&self) -> bool {
        true
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let of = &g.call::<SharedBatchNormalization>().of;
        self.of.grad_over(g, &of.axes, |x, reduced, eps| {
            let shared = self.shared.clone();
            let count = of.layout.count();
            NormalizationRule::by(x, reduced, eps, Box::new(move |sums| shared.mean(sums, count)))
        })
    }
}

/// See [`SharedStatistics::mean`]; it is its own gradient.
struct MeanOverRanks {
    count: usize,
    shared: SharedStatistics,
    number: u64,
}

impl Described for MeanOverRanks {
    fn def(&self) -> &'static Def {
        const fn by(on_gpu: OnGpu) -> Def {
            const X: InputDef = InputDef { name: "x", kind: InputKind::Required, doc: "N-D array: sums." };
            const Y: OutputDef = OutputDef { name: "y", variadic: false, doc: "Array of x's shape." };
            const DOC: &str = "Sums over all ranks by how many elements they are of.";
            let of = Def { inputs: &[X], args: &[], outputs: &[Y], ..*BatchNormalization::DEF };
            definition(&of, "MeanOverRanks", "mean_over_ranks", DOC, on_gpu)
        }
        const HOST: &Def = &by(OnGpu::Nothing);
        const GPU: &Def = &by(OnGpu::Both);
        if self.shared.on_gpu { GPU } else { HOST }
    }

    fn arguments(&self) -> Vec<(&'static str, ArgValue)> {
        vec![]
    }

    fn key(&self) -> ArgumentsKey {
        key(|h| h(self.number))
    }
}

impl Function for MeanOverRanks {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        Ok(Resolved::one(x[0].clone(), SharedMean { count: self.count, all: self.shared.all.clone() }))
    }

    fn has_state(&self) -> bool {
        true // what it has found: to run again asks nobody
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(self.shared.mean(&g.gy[0], self.count)?)])
    }
}
