//! On a GPU.

use super::Pairs;
use crate::array::Data;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Axes that a table has room for.
const AXES: usize = 12;

/// Number of axes; then for each its size and the distances of neighbours in both arrays.
fn table(p: &Pairs) -> Result<Vec<u8>> {
    let n = p.y.ndim();
    if n > AXES {
        return Err(Error::unsupported(format!("arrays of more than {AXES} axes have no kernel on a GPU here")));
    }
    let stride = |x: &Shape, a: usize| match (a + x.ndim()).checked_sub(n) {
        Some(a) if x[a] != 1 => x.strides()[a],
        _ => 0,
    };
    let axes = (0..n).flat_map(|a| [p.y[a], stride(&p.x[0], a), stride(&p.x[1], a)]);
    Ok(std::iter::once(n).chain(axes).flat_map(|v| (v as u64).to_le_bytes()).collect())
}

/// The kernel over all pairs, with two numbers of its own.
pub(super) fn run(kernel: &str, p: &Pairs, x: &[&Data; 2], y: &Data, [first, second]: [i64; 2]) -> Result<()> {
    if y.is_empty() {
        return Ok(());
    }
    let gpu = y.gpu();
    let launch = gpu.launch("mod2", kernel)?.array(x[0]).array(x[1]).array(y);
    // SAFETY: the arrays have the sizes of the table.
    unsafe { launch.table(&table(p)?)?.size(y.len()).long(first).long(second).run(gpu.grid(y.len())) }
}
