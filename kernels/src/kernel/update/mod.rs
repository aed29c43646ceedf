//! Updates: one parallel pass of a formula over many arrays, which are parameters, their gradients and states. The elements of
//! all of them lie on one [`ChunkList`].

mod fused;
mod grid;
mod norms;

use crate::array::{Data, Destination, NdArray, Place, Source, Walk};
use crate::cuda;
use crate::dtype::{DType, compute_dtype};
use crate::error::Result;
use crate::expr::Formula;
use crate::fork;
use crate::tile::TileProgram;
pub use fused::Loop;
pub use grid::{Chunk, ChunkList};
pub use norms::sum_squares;
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
    /// The terms over the same arrays whose norms come first.
    norms: Option<Box<Update>>,
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

    /// As a GPU's program takes it.
    fn item(&self, sinks: Vec<Destination>) -> cuda::program::MultiTensorItem {
        let (sources, scalars) = (self.sources.to_vec(), self.scalars.to_vec());
        cuda::program::MultiTensorItem { n: self.n, sources, sinks, scalars }
    }

    fn note_written(&self) {
        let is_sink = |data: &&Data| self.sinks.iter().any(|s| s.ptr as u64 == data.address());
        self.held.iter().filter(is_sink).for_each(Data::note_written);
    }

    /// Where the memory that is written begins and ends.
    fn written(&self) -> impl Iterator<Item = (usize, usize)> {
        self.sinks.iter().map(|s| (s.ptr as usize, s.ptr as usize + self.n * s.dtype.size()))
    }
}

impl Update {
    pub fn new(formula: Formula) -> Update {
        let (single, double, gpu_single, gpu_double) = Default::default();
        Update { formula, single, double, gpu_single, gpu_double, norms: None }
    }

    /// One whose numbers depend on the L2 norms over each whole job of the terms that `terms` gives.
    pub fn with_norms(formula: Formula, terms: Formula) -> Update {
        Update { norms: Some(Box::new(Update::new(terms))), ..Update::new(formula) }
    }

    /// Does all jobs, in parallel unless two of them write the same memory (one array under two names).
    ///
    /// # Errors
    /// What a GPU says.
    ///
    /// # Panics
    /// If a job's arrays or numbers are not as many as the formula's.
    pub fn run(&self, jobs: &[TensorUpdate]) -> Result<()> {
        jobs.chunks(at_once(jobs)).try_for_each(|jobs| self.pass(jobs, &|job, part| self.part(job, part)))
    }

    /// As [`Update::run`], by the loop `L` of the formula's own where the arrays allow. Where there are norms, `renew` makes
    /// of them and of a job's numbers those that it runs with.
    ///
    /// # Errors
    /// As [`Update::run`]; not enough memory.
    pub fn run_fused<L: Loop<S, K, M>, const S: usize, const K: usize, const M: usize>(
        &self,
        jobs: &mut [TensorUpdate],
        renew: &dyn Fn([f64; K], [f64; M]) -> [f64; K],
    ) -> Result<()> {
        jobs.chunks_mut(at_once(jobs)).try_for_each(|jobs| {
            if let Some(norms) = &self.norms {
                let found = norms.norms::<L, S, K, M>(jobs)?;
                for (job, norms) in jobs.iter_mut().zip(found) {
                    let numbers = std::array::from_fn(|k| job.scalars[k]);
                    job.scalars = Scalars::from_slice(&renew(numbers, norms));
                }
            }
            self.pass(jobs, &|job, part| match fused::fits::<S, K>(job) {
                // SAFETY: it fits; the job holds the memory, parts do not overlap, nor do jobs (see `at_once`).
                true => unsafe { fused::run::<L, S, K, M>(job, part) },
                false => self.part(job, part),
            })
        })
    }

    /// Calls `f` for parts of all jobs on the host, and runs those of GPUs, all at the same time.
    fn pass(&self, jobs: &[TensorUpdate], f: &(dyn Fn(&TensorUpdate, Chunk) + Sync)) -> Result<()> {
        let program = self.single();
        let fits = |j: &TensorUpdate| program.takes(j.sources.len(), j.sinks.len(), j.scalars.len());
        assert!(jobs.iter().all(fits), "the formula's arrays and numbers");
        let here: SmallVec<[&TensorUpdate; 8]> = jobs.iter().filter(|j| j.place == Place::Host).collect();
        let grid = ChunkList::new(here.iter().map(|j| j.n));
        grid.run(program.loops() + 1, &|part| f(here[part.array], part));
        self.run_on_gpus(jobs)
    }

    /// The jobs of GPUs: one launch for all that one of them does in one type.
    fn run_on_gpus(&self, jobs: &[TensorUpdate]) -> Result<()> {
        let mut rest: Vec<&TensorUpdate> = jobs.iter().filter(|j| j.place != Place::Host).collect();
        while let Some((gpu, dtype)) = rest.first().and_then(|j| Some((j.place.gpu()?, j.dtype))) {
            let (now, later): (Vec<&TensorUpdate>, Vec<&TensorUpdate>) =
                rest.into_iter().partition(|j| j.place == Place::Gpu(gpu) && j.dtype == dtype);
            let tables: Vec<_> = now.iter().map(|j| j.item(j.sinks.to_vec())).collect();
            // SAFETY: each job holds memory of n elements for each array; none overlap (see `at_once`).
            unsafe { self.device_program(dtype).run_jobs(gpu, &tables)? };
            now.iter().for_each(|job| job.note_written());
            rest = later;
        }
        Ok(())
    }

    fn device_program(&self, dtype: DType) -> &Arc<cuda::program::DeviceProgram> {
        let double = dtype == DType::F64;
        let program = if double { &self.gpu_double } else { &self.gpu_single };
        program.get_or_init(|| cuda::program::DeviceProgram::of(double, &self.formula))
    }

    fn part(&self, job: &TensorUpdate, part: Chunk) {
        // SAFETY: the job holds memory of n elements for each array; parts do not overlap, nor do jobs (see `at_once`).
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

/// How many jobs may run at the same time: none of those writes memory of another one.
fn at_once(jobs: &[TensorUpdate]) -> usize {
    if overlap(jobs) { 1 } else { jobs.len().max(1) }
}

fn overlap(jobs: &[TensorUpdate]) -> bool {
    let mut written: Vec<(usize, usize)> = jobs.iter().flat_map(TensorUpdate::written).filter(|(a, b)| a < b).collect();
    written.sort_unstable();
    written.windows(2).any(|w| w[1].0 < w[0].1)
}
