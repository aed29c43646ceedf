//! Kernels that are compiled while a program runs, one for each formula over arrays of given types that are walked over in
//! a given way. Until there is one, and where there is no compiler, `program.cu` reads the formula step by step.

use super::driver::{Kernel, LaunchGrid};
use super::launch::Launch;
use super::program::{CHUNK, MultiTensorItem};
use super::{Gpu, capture};
use crate::array::{Destination, Source, Walk};
use crate::error::Result;
use crate::expr::cuda::generated::{BroadcastInput, Form, NAME, Read, Recipe, THREADS, source};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, Mutex, MutexGuard};

/// A compiler takes some 50 ms: that pays when a formula comes again and has something to do. A formula with a number that
/// changes from run to run is another one each time, and never comes again. What is about to be captured is compiled
/// however small it is: it will be replayed.
const RUNS: u32 = 2;
const ELEMENTS: usize = 4096;

/// Formulas that are remembered without a kernel, and kernels at most.
const KNOWN: usize = 4096;
/// Words of parameters at most; CUDA has room for 4096 bytes.
const WORDS: usize = 480;
/// Elements of all arrays that a thread may hold.
const HELD: usize = 64;

static SETTING: AtomicU8 = AtomicU8::new(UNREAD);
const OFF: u8 = 0;
const ON: u8 = 1;
/// At once, whatever the size: for tests.
const ALWAYS: u8 = 2;
const UNREAD: u8 = 3;

fn setting() -> u8 {
    let known = SETTING.load(Relaxed);
    if known != UNREAD {
        return known;
    }
    let read = match std::env::var("NNRS_CUDA_COMPILER").as_deref() {
        Ok("0") => OFF,
        Ok("always") => ALWAYS,
        _ => ON,
    };
    SETTING.store(read, Relaxed);
    read
}

/// True if kernels are generated where there is a compiler. Off by `NNRS_CUDA_COMPILER=0` or [`set_compiler`].
pub fn compiler() -> bool {
    setting() != OFF
}

/// Says whether kernels are generated where there is a compiler; gives the old setting. Results are the
/// same but for the last digits of the math library's functions.
pub fn set_compiler(on: bool) -> bool {
    let old = compiler();
    SETTING.store(on as u8, Relaxed);
    old
}

/// A formula over arrays of one form, and its kernel once it has one.
pub(super) struct CompiledFormula {
    recipe: Arc<Recipe>,
    form: Form,
    /// The kernel's handle, or one of the two below.
    kernel: AtomicU64,
    runs: AtomicU32,
}

const UNDECIDED: u64 = 0;
const NEVER: u64 = 1;

/// A device's units.
#[derive(Default)]
pub(super) struct Units {
    known: HashMap<(Arc<Recipe>, Form), Arc<CompiledFormula>>,
    compiled: usize,
    failures: Vec<String>,
}

impl Units {
    fn find(&mut self, recipe: &Arc<Recipe>, form: &Form) -> Arc<CompiledFormula> {
        let key = (recipe.clone(), form.clone());
        if let Some(unit) = self.known.get(&key) {
            return unit.clone();
        }
        if self.known.len() >= KNOWN {
            self.known.retain(|_, u| u.kernel.load(Relaxed) > NEVER);
        }
        let (recipe, form) = key.clone();
        let (kernel, runs) = (AtomicU64::new(UNDECIDED), AtomicU32::new(0));
        let unit = Arc::new(CompiledFormula { recipe, form, kernel, runs });
        self.known.insert(key, unit.clone());
        unit
    }
}

impl CompiledFormula {
    /// The kernel for a run over `n` elements; `None`: do without.
    fn kernel(&self, gpu: &'static Gpu, n: usize) -> Option<Kernel> {
        match self.kernel.load(Acquire) {
            NEVER => None,
            UNDECIDED => self.consider(gpu, n),
            handle => Some(Kernel(handle)),
        }
    }

    fn consider(&self, gpu: &'static Gpu, n: usize) -> Option<Kernel> {
        if capture::is_capturing() {
            return None;
        }
        let often = n >= ELEMENTS && self.runs.fetch_add(1, Relaxed) + 1 >= RUNS;
        if often || capture::settled() || setting() == ALWAYS { gpu.compile(self) } else { None }
    }
}

impl Gpu {
    fn units(&self) -> MutexGuard<'_, Units> {
        self.units.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Compiles a unit, one at a time. What fails is remembered, and done by the precompiled kernel from now on.
    fn compile(&'static self, unit: &CompiledFormula) -> Option<Kernel> {
        let _one = self.compiling.lock().unwrap_or_else(|e| e.into_inner());
        if unit.kernel.load(Acquire) == UNDECIDED {
            let made = self.make(unit);
            let mut units = self.units();
            let handle = match made {
                Ok(Some(kernel)) => {
                    units.compiled += 1;
                    kernel.0
                }
                Ok(None) => NEVER,
                Err(e) => {
                    units.failures.push(e.to_string());
                    NEVER
                }
            };
            unit.kernel.store(handle, Release);
        }
        Some(Kernel(unit.kernel.load(Acquire))).filter(|k| k.0 > NEVER)
    }

    fn make(&'static self, unit: &CompiledFormula) -> Result<Option<Kernel>> {
        if self.units().compiled >= KNOWN {
            return Ok(None);
        }
        let text = source(&unit.recipe, &unit.form);
        let _turn = self.turn()?;
        let Some(loaded) = self.driver.compile(&text)? else { return Ok(None) };
        self.driver.kernel(loaded, NAME).map(Some)
    }

    /// How many kernels were generated, and what went wrong with others.
    pub fn generated(&self) -> (usize, Vec<String>) {
        let units = self.units();
        (units.compiled, units.failures.clone())
    }
}

/// Units that a program has used, so that they need not be looked for among all.
#[derive(Default)]
pub(super) struct Near(Mutex<Vec<(usize, Arc<CompiledFormula>)>>);

/// How many: a program runs over a few forms of arrays.
const NEAR: usize = 8;

impl Near {
    fn find(&self, gpu: &'static Gpu, recipe: &Arc<Recipe>, form: &Form) -> Arc<CompiledFormula> {
        let mut near = self.0.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, unit)) = near.iter().find(|(id, u)| *id == gpu.id && u.form == *form) {
            return unit.clone();
        }
        let unit = gpu.units().find(recipe, form);
        if near.len() >= NEAR {
            near.remove(0);
        }
        near.push((gpu.id, unit.clone()));
        unit
    }
}

/// The form of a run; `None` where no kernel is generated for it.
fn form(n: usize, sources: &[Source], sinks: &[Destination], table: bool) -> Option<Form> {
    let width = width(sources, sinks);
    let fits = |at: u64, size: usize| at.is_multiple_of(16.min(width * size) as u64);
    let mut grids: SmallVec<[Vec<usize>; 2]> = SmallVec::new();
    for s in sources {
        if let Walk::Strided(_, axes) = &s.walk {
            let sizes: Vec<usize> = axes.iter().map(|a| a.0).collect();
            if !grids.contains(&sizes) {
                grids.push(sizes);
            }
        }
    }
    // Places in a grid are counted in 31 bits.
    if !grids.is_empty() && (table || n >= 1 << 31 || grids.iter().any(Vec::is_empty)) {
        return None;
    }
    let ragged = grids.iter().any(|g| g.last().is_some_and(|last| last % width != 0));
    let strided = |s: &Source, axes: &[(usize, isize)]| {
        let grid = grids.iter().position(|g| g.iter().eq(axes.iter().map(|a| &a.0))).unwrap_or(0);
        let moves = axes.iter().map(|a| a.1 != 0).collect();
        let outer = &axes[..axes.len() - 1];
        let packed = !ragged && axes[axes.len() - 1].1 == 1 && outer.iter().all(|a| a.1 % width as isize == 0);
        BroadcastInput { dtype: s.dtype, grid, moves, packed: packed && fits(s.ptr as u64, s.dtype.size()) }
    };
    let read = |s: &Source| match &s.walk {
        Walk::Dense => Read::Dense(s.dtype),
        Walk::Splat => Read::Splat(s.dtype),
        Walk::Constant(_) => Read::Number,
        Walk::Strided(_, axes) => Read::Strided(strided(s, axes)),
    };
    let dense = sources.iter().filter(|s| s.walk == Walk::Dense).map(|s| (s.ptr as u64, s.dtype.size()));
    let aligned = dense.chain(sinks.iter().map(|s| (s.ptr as u64, s.dtype.size()))).all(|(at, size)| fits(at, size));
    Some(Form {
        reads: sources.iter().map(read).collect(),
        writes: sinks.iter().map(|s| s.dtype).collect(),
        grids: grids.iter().map(Vec::len).collect(),
        width,
        aligned,
        ragged,
        table,
    })
}

/// Elements of a thread: 16 bytes of the arrays with the smallest elements, if a thread can hold as many of all.
fn width(sources: &[Source], sinks: &[Destination]) -> usize {
    let arrays = sources.iter().filter(|s| matches!(s.walk, Walk::Dense | Walk::Strided(..)));
    let count = arrays.count() + sinks.len();
    let dense = sources.iter().filter(|s| s.walk == Walk::Dense).map(|s| s.dtype);
    let least = dense.chain(sinks.iter().map(|s| s.dtype)).map(|d| d.size()).min().unwrap_or(1);
    let mut width = (16 / least).min(8);
    while width > 1 && width * count > HELD {
        width /= 2;
    }
    width
}

/// `magic` and `shift` with which `quotient` in generated.cuh divides by `d`.
fn divisor(d: usize) -> [usize; 3] {
    let shift = d.next_power_of_two().trailing_zeros() as usize;
    let magic = (((1u128 << 32) * ((1u128 << shift) - d as u128)) / d as u128 + 1) as usize;
    [d, magic, shift]
}

/// Begins a launch over arrays that are parameters, with the grid for it. `None`: the precompiled kernel is to do it.
pub(super) fn launch(
    gpu: &'static Gpu,
    (recipe, near): (&Arc<Recipe>, &Near),
    n: usize,
    sources: &[Source],
    sinks: &[Destination],
    scalars: &[f64],
) -> Option<(Launch, LaunchGrid)> {
    let form = form(n, sources, sinks, false).filter(|_| compiler())?;
    let axes: usize = form.grids.iter().sum();
    if sources.len() + sinks.len() + recipe.scalars() + axes * (3 + sources.len()) > WORDS {
        return None;
    }
    let unit = near.find(gpu, recipe, &form);
    let kernel = unit.kernel(gpu, n)?;
    let mut launch = gpu.launch_kernel(kernel);
    for s in sources {
        launch = match s.walk {
            Walk::Constant(v) => launch.real(recipe.double, v),
            _ => launch.long(s.ptr as i64),
        };
    }
    launch = sinks.iter().fold(launch, |l, s| l.long(s.ptr as i64));
    launch = scalars.iter().take(recipe.scalars()).fold(launch, |l, v| l.real(recipe.double, *v)).size(n);
    let launch = strides(launch, &form, sources);
    Some((launch, LaunchGrid::new(n.div_ceil(form.width * THREADS), THREADS)))
}

/// Sizes of grids and strides in them.
fn strides(mut launch: Launch, form: &Form, sources: &[Source]) -> Launch {
    let strided = |s: &Source| if let Walk::Strided(_, axes) = &s.walk { Some(axes.clone()) } else { None };
    let all: SmallVec<[_; 4]> = sources.iter().filter_map(strided).collect();
    let grid = |r: &Read| if let Read::Strided(s) = r { Some(s.grid) } else { None };
    let grids: SmallVec<[usize; 4]> = form.reads.iter().filter_map(grid).collect();
    for g in 0..form.grids.len() {
        let Some(axes) = grids.iter().position(|of| *of == g).map(|k| &all[k]) else { continue };
        for (a, (size, _)) in axes.iter().enumerate().skip(1) {
            // The last axis is counted in packs, unless rows end within them.
            let packs = if a + 1 == axes.len() && !form.ragged { size / form.width } else { *size };
            launch = divisor(packs).into_iter().fold(launch, Launch::size);
        }
    }
    all.iter().flatten().filter(|a| a.1 != 0).fold(launch, |l, a| l.size(a.1 as usize))
}

/// As [`launch`], over all elements of many arrays.
pub(super) fn launch_jobs(
    gpu: &'static Gpu,
    (recipe, near): (&Arc<Recipe>, &Near),
    jobs: &[&MultiTensorItem],
) -> Result<Option<(Launch, LaunchGrid)>> {
    let forms: Option<Vec<Form>> = jobs.iter().map(|j| form(j.n, &j.sources, &j.sinks, true)).collect();
    let Some(mut forms) = forms.filter(|_| compiler()) else { return Ok(None) };
    let aligned = forms.iter().all(|f| f.aligned);
    forms.iter_mut().for_each(|f| f.aligned = aligned);
    let Some(form) = forms.first().filter(|first| forms.iter().all(|f| f == *first)) else { return Ok(None) };
    let unit = near.find(gpu, recipe, form);
    let Some(kernel) = unit.kernel(gpu, jobs.iter().map(|j| j.n).sum()) else { return Ok(None) };
    let (mut table, mut chunks) = (Vec::new(), 0);
    for j in jobs {
        let source = |s: &Source| if let Walk::Constant(v) = s.walk { v.to_bits() } else { s.ptr as u64 };
        let words = [j.n as u64, chunks as u64].into_iter().chain(j.sources.iter().map(source));
        let words = words.chain(j.sinks.iter().map(|s| s.ptr as u64));
        let words = words.chain(j.scalars.iter().take(recipe.scalars()).map(|v| v.to_bits()));
        table.extend(words.flat_map(u64::to_le_bytes));
        chunks += j.n.div_ceil(CHUNK);
    }
    let launch = gpu.launch_kernel(kernel).numbers(&table)?.size(jobs.len()).size(CHUNK);
    Ok(Some((launch, LaunchGrid::new(chunks, THREADS))))
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    /// As `quotient` in generated.cuh.
    fn quotient(i: u32, magic: u32, shift: u32) -> u32 {
        (((i as u64 * magic as u64) >> 32) as u32).wrapping_add(i) >> shift
    }

    unit_test!(divisions_by_multiplying);
    fn divisions_by_multiplying() {
        let most = (1u32 << 31) - 1;
        for d in (1..3000).chain([4095, 4096, 4097, 65535, 65537, 1 << 20, (1 << 30) + 1, most as usize]) {
            let [_, magic, shift] = divisor(d).map(|v| v as u32);
            let d = d as u32;
            let near = (0..40).flat_map(|k| [d.wrapping_mul(k).wrapping_sub(1), d.wrapping_mul(k), most - k * 77]);
            for i in near.filter(|i| *i <= most) {
                assert_eq!(quotient(i, magic, shift), i / d, "{i} / {d}");
            }
        }
    }
}
