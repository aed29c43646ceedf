//! On a GPU.

use super::CumSum;
use crate::array::{Data, Output};
use crate::cuda::driver::LaunchGrid;
use crate::cuda::team::{is_double, named};
use crate::error::Result;

/// Blocks at most; each takes one line after the other.
const BLOCKS: usize = 1 << 16;

/// Lines of neighbours get a block each, which sums 256 elements at a time; other lines a thread each.
pub(super) fn cumsum(c: &CumSum, x: &Data, y: &Data, output: Output) -> Result<()> {
    let (gpu, lines) = (y.gpu(), c.at.outer * c.at.inner);
    if y.is_empty() {
        return Ok(());
    }
    let (name, grid) = match c.at.inner {
        1 => ("cumsum_lines", LaunchGrid::new(lines.min(BLOCKS), 256)),
        _ => ("cumsum_columns", gpu.grid(lines)),
    };
    let launch = gpu.launch("cumsum", &named(name, is_double(y)))?.array(x).array(y);
    let launch = launch.size(lines).size(c.at.n).size(c.at.inner);
    let launch = launch.flag(c.exclusive).flag(c.reverse).flag(output == Output::Accumulate);
    // SAFETY: the arrays have the sizes around the axis, by the shapes that were resolved.
    unsafe { launch.run(grid) }
}
