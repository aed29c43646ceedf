//! Tile programs: a run of element-wise work compiled to calls of precompiled vector loops over L1-sized tiles.
//! Intermediate values live in scratch tiles that never leave the cache; no compiler is needed where the user is.

mod across;
mod chain;
mod compile;
pub mod formula;
mod gather;
mod operands;
mod registers;
mod run;

pub use crate::array::{Destination, Source, Walk, WalkAxes};
use crate::expr::Formula;
use crate::expr::ssa::{Id, Ins, Ssa};
use crate::pool;
use crate::simd::{BinaryFn, RegisterOp, SelectFn, SimdReal, StepsFn, UnaryFn};
use compile::Compiler;
pub use operands::{AnyProgram, Operands};
use run::TileRun;

type Register = u32;

/// One loop over a tile, or a run of steps over all its blocks.
#[derive(Clone, Copy)]
enum Code<T> {
    Unary { f: UnaryFn<T>, y: Register, a: Register },
    Binary { f: BinaryFn<T>, y: Register, a: Register, b: Register },
    Select { f: SelectFn<T>, y: Register, c: Register, a: Register, b: Register },
    Steps { f: StepsFn<T>, from: u32, to: u32 },
    Copy { y: Register, a: Register },
}

/// What fills a slot for a whole run.
#[derive(Clone, Copy)]
enum UniformValue<T> {
    Const(T),
    Scalar(u32),
}

/// A compiled program over `T` (f32, also for half types and integers, or f64).
///
/// Slots are numbered: inputs, outputs, other tiles, then blocks.
pub struct TileProgram<T> {
    code: Vec<Code<T>>,
    steps: Vec<RegisterOp>,
    inputs: usize,
    outputs: usize,
    fills: Vec<(Register, UniformValue<T>)>,
    scalars: usize,
    /// Slots of the length of a tile, inputs and outputs included, and of a block.
    tiles: usize,
    blocks: usize,
    tile: usize,
    block: usize,
    /// Operations of one element.
    loops: usize,
    /// Per output: when it is complete; per input: when it is read last. Counted in loops and steps.
    made: Vec<usize>,
    read: Vec<Option<usize>>,
}

const MIN_PARALLEL: usize = 1 << 17;
/// Elements of a task, which begins by filling the tiles of numbers: at least, and how many times that at most where
/// each thread has so many tasks.
const CHUNK: usize = 1 << 14;
const LARGE: usize = 8;
const TASKS: usize = 8;

impl<T: SimdReal> TileProgram<T> {
    /// Compiles the values `outputs` of `ssa`, whose inputs are numbered below `inputs`.
    pub fn compile(ssa: &Ssa, inputs: usize, scalars: usize, outputs: &[Id]) -> TileProgram<T> {
        Compiler::new(ssa, inputs, scalars, outputs).finish()
    }

    /// Compiles a formula.
    pub fn of(f: &Formula) -> TileProgram<T> {
        let mut ssa = Ssa::default();
        let args: Vec<Id> = (0..f.inputs()).map(|k| ssa.push(Ins::Input(k as u32))).collect();
        let outputs: Vec<Id> = f.apply(&mut ssa, &args).into_iter().flatten().collect();
        TileProgram::compile(&ssa, f.inputs(), f.scalars(), &outputs)
    }

    /// Runs over `n` elements.
    ///
    /// # Safety
    /// Sources must be readable and sinks writable for `n` elements of their types. A sink may be the same memory as a
    /// dense source of an element type of the same size, but they must not overlap otherwise.
    pub unsafe fn run(&self, n: usize, sources: &[Source], sinks: &[Destination], scalars: &[f64]) {
        assert!(self.takes(sources.len(), sinks.len(), scalars.len()));
        let run = TileRun { program: self, n, sources, sinks, scalars };
        if n * (self.loops + 1) < MIN_PARALLEL || n <= CHUNK {
            // SAFETY: the caller's promise.
            unsafe { run.range(0, n) };
            return;
        }
        let (run, chunk) = (&run, CHUNK * (n / (CHUNK * TASKS * pool::num_threads())).clamp(1, LARGE));
        // SAFETY: the caller's promise; chunks do not overlap.
        pool::run(n.div_ceil(chunk), &move |i| unsafe { run.range(i * chunk, n.min((i + 1) * chunk)) });
    }

    /// Runs over elements `from .. to` on this thread, for callers that divide the work themselves.
    ///
    /// # Safety
    /// As [`TileProgram::run`], for `to` elements.
    pub unsafe fn run_part(&self, from: usize, to: usize, sources: &[Source], sinks: &[Destination], scalars: &[f64]) {
        debug_assert!(self.takes(sources.len(), sinks.len(), scalars.len()));
        // SAFETY: the caller's promise.
        unsafe { TileRun { program: self, n: to, sources, sinks, scalars }.range(from, to) }
    }

    /// Runs over `n` elements from `first` on, then as many `apart` further on, `count` times in all, on this thread.
    ///
    /// # Safety
    /// As [`TileProgram::run`], for all of these.
    pub unsafe fn run_rows(&self, [first, apart, count, n]: [usize; 4], sources: &[Source], sinks: &[Destination]) {
        assert!(self.takes(sources.len(), sinks.len(), 0));
        let run =
            TileRun { program: self, n: first + apart * count.saturating_sub(1) + n, sources, sinks, scalars: &[] };
        // SAFETY: the caller's promise.
        unsafe { if n == apart { run.range(first, first + count * n) } else { run.rows(first, apart, count, n) } }
    }

    /// Gives `f` each run of steps.
    fn each_run(&mut self, f: fn(&mut [RegisterOp])) {
        for c in &self.code {
            if let Code::Steps { from, to, .. } = *c {
                f(&mut self.steps[from as usize..to as usize]);
            }
        }
    }

    /// Whether it is over so many arrays and numbers.
    pub(crate) fn takes(&self, sources: usize, sinks: usize, scalars: usize) -> bool {
        (sources, sinks, scalars) == (self.inputs, self.outputs, self.scalars)
    }

    /// Whether whatever reads a slot finds it in a block as well as in a tile.
    fn takes_block(&self, slot: usize) -> bool {
        let slot = slot as Register;
        !self.code.iter().any(|code| match *code {
            Code::Unary { a, .. } | Code::Copy { a, .. } => a == slot,
            Code::Select { c, a, b, .. } => [c, a, b].contains(&slot),
            Code::Binary { .. } | Code::Steps { .. } => false,
        })
    }

    /// Operations that one element takes: what it costs.
    pub fn loops(&self) -> usize {
        self.loops
    }
}

#[cfg(feature = "emulate")]
mod tests;
