//! On a GPU: a block a matrix, in double.

use super::{BatchMatrix, Wanted};
use crate::array::Data;
use crate::cuda::convert;
use crate::cuda::driver::LaunchGrid;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Threads of a block, and blocks at most; each takes one matrix after the other.
const THREADS: usize = 128;
const BLOCKS: usize = 1 << 10;

pub(super) fn run(c: &BatchMatrix, x: &Data, y: &Data) -> Result<()> {
    if y.is_empty() {
        return Ok(());
    }
    if c.n == 0 {
        return convert::fill(y, c.wanted.of_nothing());
    }
    let (gpu, blocks) = (y.gpu(), c.batch.min(BLOCKS));
    // A copy of the matrix, and beside it what becomes its inverse.
    let room = c.n.checked_mul(c.n).and_then(|n| n.checked_mul(2 * blocks));
    let room = room.ok_or_else(|| Error::unsupported("matrices of this size have no kernel on a GPU"))?;
    let work = Data::new_at(y.place(), DType::F64, room)?;
    let name = if matches!(c.wanted, Wanted::Lower | Wanted::Upper) { "cholesky" } else { "eliminate" };
    let launch = gpu.launch("batch_matrix", name)?.array(x).array(y).data(&work).size(c.batch).size(c.n);
    // SAFETY: that many matrices; room for two in each block.
    unsafe { launch.long(c.wanted as i64).run(LaunchGrid::new(blocks, THREADS)) }
}
