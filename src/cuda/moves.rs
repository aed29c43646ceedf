//! Copies between strided boxes on a GPU.

use crate::array::Data;
use crate::error::{Error, Result};
use crate::function::Output;

/// Axes that the kernel has room for.
const AXES: usize = 12;

/// Copies (or adds) a box of elements: for each axis its size and the strides in `y` and in `x`, the outermost axis of y
/// first. `to` and `from` are the first elements.
///
/// # Safety
/// The box lies in both arrays, and its elements of `y` are distinct.
pub(crate) unsafe fn run(
    axes: &[(usize, isize, isize)],
    to: isize,
    from: isize,
    y: &Data,
    x: &Data,
    output: Output,
) -> Result<()> {
    if axes.len() > AXES {
        return Err(Error::unsupported(format!("a copy over more than {AXES} separate axes has no kernel on a GPU")));
    }
    let n: usize = axes.iter().map(|a| a.0).product();
    let mut words = vec![axes.len() as i64, to as i64, from as i64];
    words.extend(axes.iter().flat_map(|&(n, to, from)| [n as i64, to as i64, from as i64]));
    words.resize(3 + 3 * AXES, 0);
    let table: Vec<u8> = words.into_iter().flat_map(i64::to_le_bytes).collect();
    let gpu = y.gpu();
    let launch = match output == Output::Write && x.dtype() == y.dtype() {
        true => gpu.launch("moves", "move")?.data(y).data(x).size(x.dtype().size()),
        false => gpu.launch("moves", "move_add")?.array(y).array(x).flag(output == Output::Accumulate),
    };
    // SAFETY: the caller's promise.
    unsafe { launch.table(&table)?.size(n).run(gpu.grid(n)) }
}
