//! Formulas on a GPU: straight-line programs that `cuda/program.cu` reads step by step, until those that come often have
//! kernels of their own (`generated.rs`).

use super::Gpu;
use super::driver::LaunchGrid;
use super::generated::{self, Near};
use crate::array::{Data, Destination, Output, Source, Walk};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::Formula;
use crate::expr::cuda::generated::Recipe;
use crate::expr::ssa::{Id, Ins, Mix, MixMap, Ssa};
use crate::fork::at_fork;
use crate::shape::Shape;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

/// A program over the values of one element, in float or in double.
pub struct DeviceProgram {
    /// Steps as the kernel reads them.
    code: Vec<u8>,
    steps: usize,
    kernel: Option<&'static str>,
    kernel_jobs: Option<&'static str>,
    /// The same, for a kernel of its own.
    recipe: Arc<Recipe>,
    near: Near,
}

/// Bytes of a step.
const STEP: usize = 16;
/// First numbers of the unary and the binary operations; before them come those of `Op` in the kernel.
const UNARY: u16 = 8;
const BINARY: u16 = 64;
/// How many values a thread can hold, and the kernels for it: float, double, and the same for many arrays.
const KERNELS: [(usize, [&str; 4]); 3] = [
    (16, ["program_f32_16", "program_f64_16", "program_f32_16_jobs", "program_f64_16_jobs"]),
    (64, ["program_f32_64", "program_f64_64", "program_f32_64_jobs", "program_f64_64_jobs"]),
    (512, ["program_f32_512", "program_f64_512", "program_f32_512_jobs", "program_f64_512_jobs"]),
];

/// Puts the steps together, each value in a register until it is read last.
struct Assembler<'a> {
    ins: &'a [Ins],
    code: Vec<u8>,
    /// Where a value is; leaves are fetched when they are first wanted.
    register: Vec<Option<u16>>,
    last: Vec<usize>,
    free: Vec<u16>,
    used: u16,
}

impl DeviceProgram {
    /// The program of the values `outputs`.
    pub fn compile(double: bool, ssa: &Ssa, outputs: &[Id]) -> DeviceProgram {
        let (ins, needed) = (ssa.ins(), ssa.needed(outputs.iter().copied()));
        let mut last = vec![0; ins.len()];
        let reads = |(at, i): (usize, &Ins)| i.operands().map(move |o| (o as usize, at)).collect::<Vec<_>>();
        for (o, at) in ins.iter().enumerate().filter(|(id, _)| needed[*id]).flat_map(reads) {
            last[o] = at;
        }
        outputs.iter().for_each(|&o| last[o as usize] = usize::MAX);
        let (code, register, free) = (Vec::new(), vec![None; ins.len()], Vec::new());
        let mut a = Assembler { ins, code, register, last, free, used: 0 };
        for (id, ins) in ins.iter().enumerate().filter(|(id, _)| needed[*id]) {
            if ins.operands().next().is_some() || outputs.contains(&(id as Id)) {
                a.value(id);
            }
        }
        // All of them at the end: an output may lie over an input.
        for (k, &o) in outputs.iter().enumerate() {
            let v = a.value(o as usize);
            a.step(4, 0, v, k as u16, 0);
        }
        let fits = KERNELS.iter().find(|(n, _)| *n >= a.used as usize).map(|(_, names)| names);
        let kernel = fits.map(|names| names[double as usize]);
        let kernel_jobs = fits.map(|names| names[2 + double as usize]);
        let recipe = Arc::new(Recipe::new(double, ssa, outputs));
        DeviceProgram { steps: a.code.len() / STEP, code: a.code, kernel, kernel_jobs, recipe, near: Near::default() }
    }

    /// The program of a formula, from a cache.
    pub fn of(double: bool, formula: &Formula) -> Arc<DeviceProgram> {
        let mut hash = Mix::default();
        formula.hash(&mut hash);
        let hash = hash.finish();
        let known = |list: &Vec<Cached>| list.iter().find(|c| c.0 == double && c.1 == *formula).map(|c| c.2.clone());
        if let Some(program) = kept().get(&hash).and_then(known) {
            return program;
        }
        let mut ssa = Ssa::default();
        let args: Vec<Id> = (0..formula.inputs()).map(|k| ssa.push(Ins::Input(k as u32))).collect();
        let outputs: Vec<Id> = formula.apply(&mut ssa, &args).into_iter().flatten().collect();
        let program = Arc::new(DeviceProgram::compile(double, &ssa, &outputs));
        let mut cache = kept();
        if cache.len() >= CACHED {
            cache.clear();
        }
        cache.entry(hash).or_default().push((double, formula.clone(), program.clone()));
        program
    }

    /// Runs over `n` elements.
    ///
    /// # Safety
    /// As for a tile program; the pointers are addresses of `gpu`.
    pub unsafe fn run(
        &self,
        gpu: &'static Gpu,
        n: usize,
        sources: &[Source],
        sinks: &[Destination],
        scalars: &[f64],
    ) -> Result<()> {
        if n == 0 {
            return Ok(());
        }
        gpu.check_fork()?;
        let own = (&self.recipe, &self.near);
        if let Some((launch, grid)) = generated::launch(gpu, own, n, sources, sinks, scalars) {
            // SAFETY: the caller's promise; the kernel has this formula, for arrays of this form.
            return unsafe { launch.run(grid) };
        }
        let launch = gpu.launch("program", name(self.kernel)?)?;
        let launch = launch.table(&self.code)?.size(self.steps).table(&source_table(sources)?)?;
        let launch = launch.table(&sink_table(sinks))?.table(&number_table(scalars))?.size(n);
        // SAFETY: the caller's promise.
        unsafe { launch.run(gpu.grid(n)) }
    }
}

type Cached = (bool, Formula, Arc<DeviceProgram>);
static PROGRAMS: LazyLock<Mutex<MixMap<u64, Vec<Cached>>>> = LazyLock::new(Default::default);
/// Programs kept at most; formulas with ever-changing numbers must not fill the memory.
const CACHED: usize = 1024;

at_fork!(Hold, kept());

/// The programs that are kept.
fn kept() -> MutexGuard<'static, MixMap<u64, Vec<Cached>>> {
    PROGRAMS.lock().unwrap_or_else(|e| e.into_inner())
}

fn name(kernel: Option<&'static str>) -> Result<&'static str> {
    kernel.ok_or_else(|| Error::unsupported("a formula with more than 512 values at once has no kernel on a GPU"))
}

impl Assembler<'_> {
    /// The register of a value, which is computed if it is in none yet.
    fn value(&mut self, id: usize) -> u16 {
        if let Some(register) = self.register[id] {
            return register;
        }
        let ins = self.ins[id];
        let operands: SmallVec<[u16; 3]> = ins.operands().map(|o| self.value(o as usize)).collect();
        let mut rest = operands.iter().copied();
        let mut next = || rest.next().unwrap_or(0);
        let (op, a, b, c) = match ins {
            Ins::Input(k) => (0, k as u16, 0, 0),
            Ins::Scalar(k) => (1, k as u16, 0, 0),
            Ins::Const(bits) => {
                let y = self.take(id);
                self.step(2, y, 0, 0, bits);
                return y;
            }
            Ins::Select(..) => (3, next(), next(), next()),
            Ins::Unary(op, _) => (UNARY + op as u16, next(), 0, 0),
            Ins::Binary(op, ..) => (BINARY + op as u16, next(), next(), 0),
        };
        let mut ended: Vec<Id> = ins.operands().filter(|&o| self.last[o as usize] == id).collect();
        ended.sort_unstable();
        ended.dedup();
        self.free.extend(ended.iter().filter_map(|&o| self.register[o as usize]));
        let y = self.take(id);
        self.step(op, y, a, b, c as u64);
        y
    }

    fn take(&mut self, id: usize) -> u16 {
        let y = self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        });
        self.register[id] = Some(y);
        y
    }

    fn step(&mut self, op: u16, y: u16, a: u16, b: u16, rest: u64) {
        [op, y, a, b].iter().for_each(|v| self.code.extend(v.to_le_bytes()));
        self.code.extend(rest.to_le_bytes());
    }
}

/// Runs `formula` over dense arrays and what broadcasts to them, all on one GPU. Each output is written.
pub fn apply(formula: &Formula, n: usize, x: &[(&Data, Walk)], y: &[&Data], scalars: &[f64]) -> Result<()> {
    let gpu = y[0].gpu();
    let double = y.iter().any(|y| y.dtype() == DType::F64);
    let source =
        |(x, walk): &(&Data, Walk)| Source { ptr: x.address() as *const u8, dtype: x.dtype(), walk: walk.clone() };
    let sources: Vec<Source> = x.iter().map(source).collect();
    let sinks: Vec<Destination> =
        y.iter().map(|y| Destination { ptr: y.address() as *mut u8, dtype: y.dtype() }).collect();
    // SAFETY: the arrays have the sizes of their shapes, by the caller's walks.
    unsafe { DeviceProgram::of(double, formula).run(gpu, n, &sources, &sinks, scalars) }
}

/// `y = f(x..)`, or `y += f(x..)`.
pub fn apply_to(f: &Formula, x: &[(&Data, Walk)], y: &Data, output: Output) -> Result<()> {
    if y.is_empty() || output == Output::Write {
        return if y.is_empty() { Ok(()) } else { apply(f, y.len(), x, &[y], &[]) };
    }
    let k = x.len();
    let sum = Formula::new(k + 1, |v| vec![Some(&v[k] + v[k].place(f, &v[..k]))]);
    let inputs: Vec<(&Data, Walk)> = x.iter().cloned().chain([(y, Walk::Dense)]).collect();
    apply(&sum, y.len(), &inputs, &[y], &[])
}

/// Repeats `x` of shape `from`, times `scale`, over shape `to`, which it broadcasts to.
pub fn broadcast(x: &Data, from: &Shape, y: &Data, to: &Shape, scale: f64, output: Output) -> Result<()> {
    let formula = Formula::new(2, |v| {
        let scaled = if scale == 1.0 { v[0].clone() } else { &v[0] * scale };
        vec![Some(if output == Output::Write { scaled } else { scaled + &v[1] })]
    });
    apply(&formula, y.len(), &[(x, Walk::new(from, to)), (y, Walk::Dense)], &[y], &[])
}

/// Axes that the kernel's `Source` has room for.
const AXES: usize = 12;

fn source_table(sources: &[Source]) -> Result<Vec<u8>> {
    let mut table = Vec::new();
    for s in sources {
        let (axes, list, number): (i32, &[(usize, isize)], f64) = match &s.walk {
            Walk::Dense => (-1, &[], 0.0),
            Walk::Constant(v) => (-2, &[], *v),
            Walk::Splat => (0, &[], 0.0),
            Walk::Strided(_, axes) => (axes.len() as i32, axes, 0.0),
        };
        if list.len() > AXES {
            return Err(Error::unsupported(format!("broadcasting over more than {AXES} axes has no kernel on a GPU")));
        }
        table.extend((s.ptr as u64).to_le_bytes());
        table.extend(number.to_le_bytes());
        table.extend((s.dtype as i32).to_le_bytes());
        table.extend(axes.to_le_bytes());
        let padded = list.iter().copied().chain(std::iter::repeat((0, 0))).take(AXES);
        padded.for_each(|(n, stride)| table.extend([n as u64, stride as u64].iter().flat_map(|v| v.to_le_bytes())));
    }
    Ok(table)
}

fn sink_table(sinks: &[Destination]) -> Vec<u8> {
    sinks.iter().flat_map(|s| [s.ptr as u64, s.dtype as u64]).flat_map(u64::to_le_bytes).collect()
}

fn number_table(scalars: &[f64]) -> Vec<u8> {
    scalars.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// One array's part of a pass over many.
pub struct MultiTensorItem {
    pub n: usize,
    pub sources: Vec<Source>,
    pub sinks: Vec<Destination>,
    pub scalars: Vec<f64>,
}

/// Elements of a block's part of a pass over many arrays.
pub(super) const CHUNK: usize = 4096;
/// Bytes of the kernel's `Job`.
const JOB: usize = 40;

impl DeviceProgram {
    /// Runs over all elements of many arrays at once. What tells the arrays is on the device already if it was the same in
    /// a run before; the scalars go there each time.
    ///
    /// # Safety
    /// As [`DeviceProgram::run`], for each of them.
    pub unsafe fn run_jobs(&self, gpu: &'static Gpu, jobs: &[MultiTensorItem]) -> Result<()> {
        let jobs: SmallVec<[&MultiTensorItem; 8]> = jobs.iter().filter(|j| j.n > 0).collect();
        if jobs.is_empty() {
            return Ok(());
        }
        gpu.check_fork()?;
        if let Some((launch, grid)) = generated::launch_jobs(gpu, (&self.recipe, &self.near), &jobs)? {
            // SAFETY: the caller's promise; the kernel finds each block's array by its chunk.
            return unsafe { launch.run(grid) };
        }
        let launch = gpu.launch("program", name(self.kernel_jobs)?)?.table(&self.code)?.size(self.steps);
        let (mut table, mut parts, mut held, mut scalars, mut chunks) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), 0);
        for j in jobs {
            let at = parts.len();
            parts.extend(source_table(&j.sources)?);
            let between = parts.len();
            parts.extend(sink_table(&j.sinks));
            held.push((j.n, chunks, at, between, scalars.len()));
            scalars.extend(&j.scalars);
            chunks += j.n.div_ceil(CHUNK);
        }
        let parts = gpu.constant(&parts)?;
        for (n, chunk, x, y, s) in held {
            let of = |offset: usize| parts.address() + offset as u64;
            table.extend([n as u64, chunk as u64, of(x), of(y), s as u64].iter().flat_map(|v| v.to_le_bytes()));
        }
        let count = table.len() / JOB;
        let launch = launch.table(&table)?.size(count).size(CHUNK).numbers(&number_table(&scalars))?;
        // SAFETY: the caller's promise; the kernel finds each block's array by its chunk.
        unsafe { launch.run(LaunchGrid::new(chunks, 256)) }
    }
}
