//! Updates: one parallel pass of a formula over many arrays, which are parameters, their gradients and states. The elements of
//! all of them lie on one [`ChunkList`].

mod fused;
mod grid;

use crate::array::{Data, Destination, NdArray, Place, Source, Walk};
use crate::cuda;
use crate::dtype::{DType, compute_dtype};
use crate::error::Result;
use crate::expr::Formula;
use crate::fork;
use crate::tile::TileProgram;
pub use fused::Loop;
pub use grid::{Chunk, ChunkList};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// The numbers of one step, as a formula takes them.
pub type Scalars = SmallVec<[f64; 8]>;

/// A formula ready to run in single and in double precision.
pub struct Update {
    formula: Formula,
    single: OnceLock<TileProgram<f32>>,
    double: OnceLock<TileProgram<f64>>,
    /// The same for a GPU.
    gpu_single: OnceLock<Arc<cuda::program::DeviceProgram>>,
    gpu_double: OnceLock<Arc<cuda::program::DeviceProgram>>,
}

/// One parameter's part of an update: memory to read, memory to write, and the numbers of this step.
pub struct TensorUpdate {
    n: usize,
    dtype: DType,
    place: Place,
    sources: SmallVec<[Source; 4]>,
    sinks: SmallVec<[Destination; 3]>,
    scalars: Scalars,
    /// Keeps the memory alive.
    held: SmallVec<[Data; 4]>,
}

// SAFETY: the pointers belong to `held`, which may be used by any thread.
unsafe impl Sync for TensorUpdate {}

impl TensorUpdate {
    /// A job over `n` elements at `place` that computes as fits results of type `dtype`.
    pub fn new(n: usize, dtype: DType, place: Place, scalars: Scalars) -> TensorUpdate {
        let (sources, sinks, held) = Default::default();
        TensorUpdate { n, dtype: compute_dtype(dtype), place, sources, sinks, scalars, held }
    }

    /// Adds an array to read; constant ones are not laid out in memory.
    ///
    /// # Errors
    /// It has another number of elements; not enough memory; it cannot be made again.
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
    ///
    /// # Errors
    /// As [`TensorUpdate::read`].
    pub fn modify(&mut self, a: &NdArray, dtype: DType) -> Result<()> {
        let data = a.modify_at(self.place, dtype)?.of(self.n)?;
        self.sources.push(Source { ptr: data.address() as *const u8, dtype: data.dtype(), walk: Walk::Dense });
        self.sinks.push(Destination { ptr: data.address() as *mut u8, dtype: data.dtype() });
        self.held.push(data);
        Ok(())
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

impl Update {
    pub fn new(formula: Formula) -> Update {
        let (single, double, gpu_single, gpu_double) = Default::default();
        Update { formula, single, double, gpu_single, gpu_double }
    }

    /// Does all jobs, in parallel unless two of them write the same memory (one array under two names).
    ///
    /// # Errors
    /// What a GPU says.
    ///
    /// # Panics
    /// If a job's arrays or numbers are not as many as the formula's.
    pub fn run(&self, jobs: &[TensorUpdate]) -> Result<()> {
        self.run_parts(jobs, &|job, part| self.part(job, part))
    }

    /// As [`Update::run`], by the loop `L` of the formula's own where the arrays allow.
    pub fn run_fused<L: Loop<S, K>, const S: usize, const K: usize>(&self, jobs: &[TensorUpdate]) -> Result<()> {
        self.run_parts(jobs, &|job, part| match fused::fits::<S, K>(job) {
            // SAFETY: it fits; the job holds the memory, parts do not overlap, nor do jobs (see `run_parts`).
            true => unsafe { fused::run::<L, S, K>(job, part) },
            false => self.part(job, part),
        })
    }

    /// Calls `f` for parts of all jobs on the host, and runs those of GPUs. What is done at the same time writes no memory twice.
    fn run_parts(&self, jobs: &[TensorUpdate], f: &(dyn Fn(&TensorUpdate, Chunk) + Sync)) -> Result<()> {
        let program = self.single();
        let fits = |j: &TensorUpdate| program.takes(j.sources.len(), j.sinks.len(), j.scalars.len());
        assert!(jobs.iter().all(fits), "the formula's arrays and numbers");
        let apart = |jobs: &[TensorUpdate]| {
            let here: SmallVec<[&TensorUpdate; 8]> = jobs.iter().filter(|j| j.place == Place::Host).collect();
            let grid = ChunkList::new(here.iter().map(|j| j.n));
            grid.run(program.loops() + 1, &|part| f(here[part.array], part));
            self.run_on_gpus(jobs)
        };
        if overlap(jobs) { jobs.chunks(1).try_for_each(apart) } else { apart(jobs) }
    }

    /// The jobs of GPUs: one launch for all that one of them does in one type.
    fn run_on_gpus(&self, jobs: &[TensorUpdate]) -> Result<()> {
        let mut rest: Vec<&TensorUpdate> = jobs.iter().filter(|j| j.place != Place::Host).collect();
        while let Some((gpu, dtype)) = rest.first().and_then(|j| Some((j.place.gpu()?, j.dtype))) {
            let (now, later): (Vec<&TensorUpdate>, Vec<&TensorUpdate>) =
                rest.into_iter().partition(|j| j.place == Place::Gpu(gpu) && j.dtype == dtype);
            let table = |j: &&TensorUpdate| cuda::program::MultiTensorItem {
                n: j.n,
                sources: j.sources.to_vec(),
                sinks: j.sinks.to_vec(),
                scalars: j.scalars.to_vec(),
            };
            let tables: Vec<_> = now.iter().map(table).collect();
            let double = dtype == DType::F64;
            let program = if double { &self.gpu_double } else { &self.gpu_single };
            let program = program.get_or_init(|| cuda::program::DeviceProgram::of(double, &self.formula));
            // SAFETY: each job holds memory of n elements for each array; none overlap (see `run_parts`).
            unsafe { program.run_jobs(gpu, &tables)? };
            rest = later;
        }
        Ok(())
    }

    fn part(&self, job: &TensorUpdate, part: Chunk) {
        // SAFETY: the job holds memory of n elements for each array; parts do not overlap, nor do jobs (see `run_parts`).
        unsafe {
            match job.dtype {
                DType::F64 => self.double().run_part(part.from, part.to, &job.sources, &job.sinks, &job.scalars),
                _ => self.single().run_part(part.from, part.to, &job.sources, &job.sinks, &job.scalars),
            }
        }
    }

    fn single(&self) -> &TileProgram<f32> {
        fork::fill(&self.single, || TileProgram::of(&self.formula))
    }

    fn double(&self) -> &TileProgram<f64> {
        fork::fill(&self.double, || TileProgram::of(&self.formula))
    }
}

fn overlap(jobs: &[TensorUpdate]) -> bool {
    let mut written: Vec<(usize, usize)> = jobs.iter().flat_map(TensorUpdate::written).filter(|(a, b)| a < b).collect();
    written.sort_unstable();
    written.windows(2).any(|w| w[1].0 < w[0].1)
}
