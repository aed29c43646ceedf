//! One parallel pass of a tile program over many arrays: the elements of all of them lie on one grid of chunks that
//! depends on the sizes alone, so results are the same bits for any number of threads.

use nnrs_kernels::array::{Data, NdArray, Place};
use nnrs_kernels::context::compute_dtype;
use nnrs_kernels::cuda;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Result;
use nnrs_kernels::expr::Formula;
use nnrs_kernels::pool;
use nnrs_kernels::tile::{Program, Sink, Source, Walk};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// Elements of one task.
const CHUNK: usize = 1 << 15;
/// Loops times elements below which the calling thread does all.
const MIN_PARALLEL: usize = 1 << 17;

/// A formula ready to run in single and in double precision.
pub(super) struct Kernel {
    formula: Formula,
    single: OnceLock<Program<f32>>,
    double: OnceLock<Program<f64>>,
    /// The same for a GPU.
    gpu_single: OnceLock<Arc<cuda::program::Program>>,
    gpu_double: OnceLock<Arc<cuda::program::Program>>,
}

/// One array's part of a pass: memory to read, memory to write, and the numbers of this step.
pub(super) struct Job {
    n: usize,
    dtype: DType,
    place: Place,
    sources: SmallVec<[Source; 4]>,
    sinks: SmallVec<[Sink; 3]>,
    scalars: super::Scalars,
    /// Keeps the memory alive.
    held: SmallVec<[Data; 4]>,
}

// SAFETY: the pointers belong to `held`, which may be used by any thread.
unsafe impl Sync for Job {}

impl Job {
    /// A job over `n` elements at `place` that computes as fits results of type `dtype`.
    pub fn new(n: usize, dtype: DType, place: Place, scalars: super::Scalars) -> Job {
        let (sources, sinks, held) = Default::default();
        Job { n, dtype: compute_dtype(dtype), place, sources, sinks, scalars, held }
    }

    /// Adds an array to read; constant ones are not laid out in memory.
    pub fn read(&mut self, a: &NdArray) -> Result<()> {
        a.fetch()?; // a gradient that backward has dropped is no zero
        let storage = a.storage();
        let constant = if storage.is_empty() { Some(0.0) } else { storage.constant() };
        if let Some(v) = constant {
            self.sources.push(Source { ptr: std::ptr::null(), dtype: self.dtype, walk: Walk::Constant(v) });
            return Ok(());
        }
        let data = a.read_at(self.place, a.dtype())?.of(self.n)?;
        self.sources.push(Source { ptr: data.address() as *const u8, dtype: data.dtype(), walk: Walk::Dense });
        self.held.push(data);
        Ok(())
    }

    /// Adds an array to read and to write as `dtype`, which is floating point.
    pub fn modify(&mut self, a: &NdArray, dtype: DType) -> Result<()> {
        let data = a.modify_at(self.place, dtype)?.of(self.n)?;
        self.sources.push(Source { ptr: data.address() as *const u8, dtype: data.dtype(), walk: Walk::Dense });
        self.sinks.push(Sink { ptr: data.address() as *mut u8, dtype: data.dtype() });
        self.held.push(data);
        Ok(())
    }

    /// The type to compute in.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The memory of array number `i`.
    pub fn source(&self, i: usize) -> *const u8 {
        self.sources[i].ptr
    }

    pub fn scalars(&self) -> &[f64] {
        &self.scalars
    }

    /// True if all arrays are memory of the type that is computed in.
    fn is_plain(&self) -> bool {
        self.sources.iter().all(|s| s.dtype == self.dtype && s.walk == Walk::Dense)
    }

    /// Where the memory that is written begins and ends.
    fn written(&self) -> impl Iterator<Item = (usize, usize)> {
        self.sinks.iter().map(|s| (s.ptr as usize, s.ptr as usize + self.n * s.dtype.size()))
    }
}

/// A formula that is compiled into a loop of its own.
pub(super) trait Fused: Send + Sync {
    /// Elements `from .. to` of a job.
    ///
    /// # Safety
    /// All arrays of the job must be memory of its type, for `to` elements, which no other thread works on.
    unsafe fn part(&self, job: &Job, from: usize, to: usize);
}

impl Kernel {
    pub fn new(formula: Formula) -> Kernel {
        let (single, double, gpu_single, gpu_double) = Default::default();
        Kernel { formula, single, double, gpu_single, gpu_double }
    }

    /// Does all jobs, in parallel unless two of them write the same memory (one array under two names).
    pub fn run(&self, jobs: &[Job]) -> Result<()> {
        self.run_parts(jobs, &|job, part| self.part(job, part))
    }

    /// As [`Kernel::run`], by a loop of the formula's own where the arrays allow.
    pub fn run_fused(&self, jobs: &[Job], fused: &dyn Fused) -> Result<()> {
        self.run_parts(jobs, &|job, part| match job.is_plain() {
            // SAFETY: the job's arrays have n elements of its type; tasks do not overlap, nor do jobs.
            true => unsafe { fused.part(job, part.from, part.to) },
            false => self.part(job, part),
        })
    }

    fn run_parts(&self, jobs: &[Job], f: &(dyn Fn(&Job, Part) + Sync)) -> Result<()> {
        let apart = |jobs: &[Job]| {
            let here: SmallVec<[&Job; 8]> = jobs.iter().filter(|j| j.place == Place::Host).collect();
            let grid = Grid::new(here.iter().map(|j| j.n));
            grid.run(self.single().loops() + 1, &|part| f(here[part.array], part));
            self.run_on_gpus(jobs)
        };
        if overlap(jobs) { jobs.chunks(1).try_for_each(apart) } else { apart(jobs) }
    }

    /// The jobs of GPUs: one launch for all that one of them does in one type.
    fn run_on_gpus(&self, jobs: &[Job]) -> Result<()> {
        let mut rest: Vec<&Job> = jobs.iter().filter(|j| j.place != Place::Host).collect();
        while let Some((gpu, dtype)) = rest.first().and_then(|j| Some((j.place.gpu()?, j.dtype))) {
            let (now, later): (Vec<&Job>, Vec<&Job>) =
                rest.into_iter().partition(|j| j.place == Place::Gpu(gpu) && j.dtype == dtype);
            let table = |j: &&Job| cuda::program::Job {
                n: j.n,
                sources: j.sources.to_vec(),
                sinks: j.sinks.to_vec(),
                scalars: j.scalars.to_vec(),
            };
            let tables: Vec<_> = now.iter().map(table).collect();
            let double = dtype == DType::F64;
            let program = if double { &self.gpu_double } else { &self.gpu_single };
            let program = program.get_or_init(|| cuda::program::Program::of(double, &self.formula));
            // SAFETY: each job holds memory of n elements for each array; none overlap (see `run`).
            unsafe { program.run_jobs(gpu, &tables)? };
            rest = later;
        }
        Ok(())
    }

    fn part(&self, job: &Job, part: Part) {
        // SAFETY: the job holds memory of n elements for each array; tasks do not overlap, nor do jobs (see `run`).
        unsafe {
            match job.dtype {
                DType::F64 => self.double().run_part(part.from, part.to, &job.sources, &job.sinks, &job.scalars),
                _ => self.single().run_part(part.from, part.to, &job.sources, &job.sinks, &job.scalars),
            }
        }
    }

    fn single(&self) -> &Program<f32> {
        nnrs_kernels::fork::fill(&self.single, || Program::of(&self.formula))
    }

    fn double(&self) -> &Program<f64> {
        nnrs_kernels::fork::fill(&self.double, || Program::of(&self.formula))
    }
}

fn overlap(jobs: &[Job]) -> bool {
    let mut written: Vec<(usize, usize)> = jobs.iter().flat_map(Job::written).filter(|(a, b)| a < b).collect();
    written.sort_unstable();
    written.windows(2).any(|w| w[1].0 < w[0].1)
}

/// Elements `from .. to` of one array.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub array: usize,
    pub from: usize,
    pub to: usize,
    /// Number of the part among all.
    pub index: usize,
}

/// The elements of several arrays as parts of one size (the last of each array may be shorter).
pub(super) struct Grid {
    parts: Vec<Part>,
    elements: usize,
}

impl Grid {
    pub fn new(sizes: impl Iterator<Item = usize>) -> Grid {
        let (mut parts, mut elements) = (Vec::new(), 0);
        for (array, n) in sizes.enumerate() {
            for from in (0..n).step_by(CHUNK) {
                parts.push(Part { array, from, to: n.min(from + CHUNK), index: parts.len() });
            }
            elements += n;
        }
        Grid { parts, elements }
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Calls `f` for each part, in parallel if the work (`loops` an element) is worth it.
    pub fn run(&self, loops: usize, f: &(dyn Fn(Part) + Sync)) {
        if self.elements.saturating_mul(loops) < MIN_PARALLEL {
            return self.parts.iter().for_each(|&part| f(part));
        }
        pool::run(self.parts.len(), &|i| f(self.parts[i]));
    }
}
