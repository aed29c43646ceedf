//! Tile programs: a run of element-wise work compiled to calls of precompiled vector loops over L1-sized tiles.
//! Intermediate values live in scratch tiles that never leave the cache; no compiler is needed where the user is.

mod chain;
mod compile;
pub mod formula;
mod operands;
mod registers;
mod run;

use crate::array::Strided;
use crate::dtype::DType;
use crate::expr::Formula;
use crate::expr::ssa::{Id, Ins, Ssa};
use crate::pool;
use crate::shape::Shape;
use crate::simd::{BinaryFn, SelectFn, SimdReal, Step, StepsFn, UnaryFn};
use compile::Compiler;
pub use operands::{AnyProgram, Operands};
use run::Run;
use smallvec::SmallVec;

type Slot = u32;

/// One loop over a tile, or a run of steps over all its blocks.
#[derive(Clone, Copy)]
enum Code<T> {
    Unary { f: UnaryFn<T>, y: Slot, a: Slot },
    Binary { f: BinaryFn<T>, y: Slot, a: Slot, b: Slot },
    Select { f: SelectFn<T>, y: Slot, c: Slot, a: Slot, b: Slot },
    Steps { f: StepsFn<T>, from: u32, to: u32 },
}

/// What fills a slot for a whole run.
#[derive(Clone, Copy)]
enum Number<T> {
    Const(T),
    Scalar(u32),
}

/// A compiled program over `T` (f32, also for half types and integers, or f64).
///
/// Slots are numbered: inputs, outputs, other tiles, then blocks.
pub struct Program<T> {
    code: Vec<Code<T>>,
    steps: Vec<Step>,
    inputs: usize,
    outputs: usize,
    fills: Vec<(Slot, Number<T>)>,
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

/// How a program walks over an input.
#[derive(Clone, Debug, PartialEq)]
pub enum Walk {
    /// Element by element, as the outputs.
    Dense,
    /// One value for all, read from the array.
    Splat,
    /// A number; there is no array.
    Constant(f64),
    /// Broadcast, or at other places: the first element, sizes and strides of merged axes (stride 0 where the input repeats).
    Strided(usize, Axes),
}

/// Sizes and strides of axes.
pub type Axes = SmallVec<[(usize, isize); 4]>;

impl Walk {
    /// How an input of shape `from` is read in a loop over `over`.
    pub fn new(from: &Shape, over: &Shape) -> Walk {
        if from == over {
            return Walk::Dense;
        }
        if from.size() == 1 {
            return Walk::Splat;
        }
        Walk::over(&Strided::dense(from), over)
    }

    /// How a view of an array is read in a loop over `over`, to which the view's shape broadcasts.
    pub fn over(from: &Strided, over: &Shape) -> Walk {
        let lead = over.ndim() - from.shape.ndim();
        let mut axes = Axes::new();
        for (i, &n) in over.iter().enumerate().filter(|(_, n)| **n != 1) {
            let stride = if i < lead || from.shape[i - lead] == 1 { 0 } else { from.strides[i - lead] };
            match axes.last_mut() {
                Some((m, s)) if *s == stride * n as isize => (*m, *s) = (*m * n, stride),
                _ => axes.push((n, stride)),
            }
        }
        if axes.is_empty() {
            axes.push((1, 1)); // one element
        }
        if from.first == 0 && axes.len() == 1 && axes[0].1 == 1 { Walk::Dense } else { Walk::Strided(from.first, axes) }
    }

    /// Elements of the array that a loop over `n` elements goes over, from the array's first one on; `None` if it begins before.
    #[inline]
    fn extent(&self, n: usize) -> Option<usize> {
        match self {
            _ if n == 0 => Some(0),
            Walk::Dense => Some(n),
            Walk::Splat => Some(1),
            Walk::Constant(_) => Some(0),
            Walk::Strided(first, axes) => {
                let far = axes.iter().map(|(size, stride)| (size - 1) as isize * stride);
                let (low, high) = far.fold((0, 0), |(l, h), d| (l + d.min(0), h + d.max(0)));
                (*first as isize + low >= 0).then_some((*first as isize + high) as usize + 1)
            }
        }
    }
}

/// An input of a run; a strided walk begins with its first element.
#[derive(Clone)]
pub struct Source {
    pub ptr: *const u8,
    pub dtype: DType,
    pub walk: Walk,
}

/// An output of a run; always dense.
#[derive(Clone, Copy)]
pub struct Sink {
    pub ptr: *mut u8,
    pub dtype: DType,
}

const MIN_PARALLEL: usize = 1 << 17;
const CHUNK: usize = 1 << 14;

impl<T: SimdReal> Program<T> {
    /// Compiles the values `outputs` of `ssa`, whose inputs are numbered below `inputs`.
    pub fn compile(ssa: &Ssa, inputs: usize, scalars: usize, outputs: &[Id]) -> Program<T> {
        Compiler::new(ssa, inputs, scalars, outputs).finish()
    }

    /// Compiles a formula.
    pub fn of(f: &Formula) -> Program<T> {
        let mut ssa = Ssa::default();
        let args: Vec<Id> = (0..f.inputs()).map(|k| ssa.push(Ins::Input(k as u32))).collect();
        let outputs: Vec<Id> = f.apply(&mut ssa, &args).into_iter().flatten().collect();
        Program::compile(&ssa, f.inputs(), f.scalars(), &outputs)
    }

    /// Runs over `n` elements.
    ///
    /// # Safety
    /// Sources must be readable and sinks writable for `n` elements of their types. A sink may be the same memory as a
    /// dense source of an element type of the same size, but they must not overlap otherwise.
    pub unsafe fn run(&self, n: usize, sources: &[Source], sinks: &[Sink], scalars: &[f64]) {
        assert!(sources.len() == self.inputs && sinks.len() == self.outputs && scalars.len() == self.scalars);
        let run = Run { program: self, n, sources, sinks, scalars };
        if n * (self.loops + 1) < MIN_PARALLEL || n <= CHUNK {
            // SAFETY: the caller's promise.
            unsafe { run.range(0, n) };
            return;
        }
        let run = &run;
        // SAFETY: the caller's promise; chunks do not overlap.
        pool::run(n.div_ceil(CHUNK), &move |i| unsafe { run.range(i * CHUNK, n.min((i + 1) * CHUNK)) });
    }

    /// Runs over elements `from .. to` on this thread, for callers that divide the work themselves.
    ///
    /// # Safety
    /// As [`Program::run`], for `to` elements.
    pub unsafe fn run_part(&self, from: usize, to: usize, sources: &[Source], sinks: &[Sink], scalars: &[f64]) {
        debug_assert!(sources.len() == self.inputs && sinks.len() == self.outputs && scalars.len() == self.scalars);
        // SAFETY: the caller's promise.
        unsafe { Run { program: self, n: to, sources, sinks, scalars }.range(from, to) }
    }

    /// Gives `f` each run of steps.
    fn each_run(&mut self, f: fn(&mut [Step])) {
        for c in &self.code {
            if let Code::Steps { from, to, .. } = *c {
                f(&mut self.steps[from as usize..to as usize]);
            }
        }
    }

    /// Operations that one element takes: what it costs.
    pub fn loops(&self) -> usize {
        self.loops
    }
}

#[cfg(test)]
mod tests;
