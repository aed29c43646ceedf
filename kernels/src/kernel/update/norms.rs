//! L2 norms over whole arrays, of terms that a formula makes of the elements: what some updates need before they begin.

use super::{Chunk, ChunkList, Loop, TensorUpdate, Update, fused};
use crate::array::{Data, Destination, Place, Walk};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::reduction::whole::{self, DeviceReduction};
use crate::simd::{self, SimdReal};
use crate::tile::TileProgram;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Elements whose terms are in memory at a time.
const BLOCK: usize = 1024;

/// The squares of large floats are beyond float: such sums are done again in double.
pub fn sum_squares<T: SimdReal>(x: &[T]) -> f64 {
    let sum = simd::sum_squares(x).to_f64();
    if sum.is_finite() { sum } else { x.iter().map(|v| v.to_f64() * v.to_f64()).sum() }
}

impl Update {
    /// The norms of the `M` terms that this formula makes, for each job.
    pub(super) fn norms<L: Loop<S, K, M>, const S: usize, const K: usize, const M: usize>(
        &self,
        jobs: &[TensorUpdate],
    ) -> Result<Vec<[f64; M]>> {
        let (here, away): (Vec<usize>, Vec<usize>) = (0..jobs.len()).partition(|&i| jobs[i].place == Place::Host);
        let places: Vec<Place> = away.iter().map(|&i| jobs[i].place).collect();
        let on_gpus = whole::numbers(&places, |k, to| self.sum_on_gpu(&jobs[away[k]], to))?;
        let mut squares = vec![[0.0; M]; jobs.len()];
        away.iter().zip(on_gpus).for_each(|(&i, sums)| squares[i] = sums);
        let grid = ChunkList::new(here.iter().map(|&i| jobs[i].n));
        let sums: Vec<[AtomicU64; M]> =
            grid.parts().iter().map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect();
        grid.run(self.single().loops() + 1, &|part| {
            let job = &jobs[here[part.array]];
            let found = match job.dtype {
                DType::F64 => sums_of_part::<f64, L, S, K, M>(self.double(), job, part),
                _ => sums_of_part::<f32, L, S, K, M>(self.single(), job, part),
            };
            found.iter().zip(&sums[part.index]).for_each(|(v, sum)| sum.store(v.to_bits(), Relaxed));
        });
        for (part, sums) in grid.parts().iter().zip(&sums) {
            let job = &mut squares[here[part.array]];
            job.iter_mut().zip(sums).for_each(|(all, sum)| *all += f64::from_bits(sum.load(Relaxed)));
        }
        Ok(squares.into_iter().map(|s| s.map(f64::sqrt)).collect())
    }

    /// Has a GPU sum the squares of a job's terms.
    fn sum_on_gpu<const M: usize>(&self, job: &TensorUpdate, to: [Data; M]) -> Result<()> {
        let Some(gpu) = job.place.gpu() else { return Ok(()) };
        let terms = (0..M).map(|_| Data::new_at(job.place, job.dtype, job.n)).collect::<Result<Vec<Data>>>()?;
        let sinks = terms.iter().map(|d| Destination { ptr: d.address() as *mut u8, dtype: d.dtype() }).collect();
        // SAFETY: the job holds memory of n elements for each array, and the terms are as long.
        unsafe { self.device_program(job.dtype).run_jobs(gpu, &[job.item(sinks)])? };
        terms.iter().zip(&to).try_for_each(|(x, to)| whole::reduce_all(DeviceReduction::SumSquares, x, to))
    }
}

/// Sums of squares of the terms over a part, block by block: the same order for any number of threads.
fn sums_of_part<T: SimdReal, L: Loop<S, K, M>, const S: usize, const K: usize, const M: usize>(
    program: &TileProgram<T>,
    job: &TensorUpdate,
    part: Chunk,
) -> [f64; M] {
    let (mut terms, mut sums) = ([[T::ZERO; BLOCK]; M], [0.0; M]);
    let fits = fused::fits::<S, K>(job);
    for from in (part.from..part.to).step_by(BLOCK) {
        let block = Chunk { from, to: part.to.min(from + BLOCK), ..part };
        let rows = terms.each_mut().map(|row| row.as_mut_ptr());
        // SAFETY: the job holds the memory, which nothing writes now; the rows are long enough for a block.
        unsafe {
            match fits {
                true => fused::normed::<T, L, S, K, M>(job, block, rows),
                false => tiles(program, job, block, &rows),
            }
        }
        sums.iter_mut().zip(&terms).for_each(|(sum, row)| *sum += sum_squares(&row[..block.to - block.from]));
    }
    sums
}

/// The terms of a block by the tile program.
///
/// # Safety
/// The job holds memory of its elements, which nothing writes now; each row is as long as the block.
unsafe fn tiles<T: SimdReal>(program: &TileProgram<T>, job: &TensorUpdate, block: Chunk, rows: &[*mut T]) {
    let mut sources = job.sources.clone();
    for s in sources.iter_mut().filter(|s| s.walk == Walk::Dense) {
        // SAFETY: the block lies inside the array.
        s.ptr = unsafe { s.ptr.add(block.from * s.dtype.size()) };
    }
    let sinks: Vec<Destination> = rows.iter().map(|&p| Destination { ptr: p.cast(), dtype: T::DTYPE }).collect();
    // SAFETY: the caller's promise.
    unsafe { program.run_part(0, block.to - block.from, &sources, &sinks, &job.scalars) }
}
