//! On a GPU: a thread a number.

use super::SearchSorted;
use crate::array::Data;
use crate::error::Result;

pub(super) fn searchsorted(c: &SearchSorted, lines: &Data, values: &Data, y: &Data) -> Result<()> {
    if y.is_empty() {
        return Ok(());
    }
    let gpu = y.gpu();
    let launch = gpu.launch("searchsorted", "searchsorted")?.array(lines).array(values).array(y);
    // SAFETY: a line of n elements for each row of numbers.
    unsafe { launch.size(y.len()).size(c.n).size(c.each).flag(c.right).run(gpu.grid(y.len())) }
}
