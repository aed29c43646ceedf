//! On a GPU.

use super::Choice;
use crate::array::Data;
use crate::dtype::DType;
use crate::error::Result;

pub(super) fn indices(c: &Choice, table: &Data, w: &Data, y: &Data) -> Result<()> {
    let gpu = y.gpu();
    let size = c.rows * c.n;
    let prepared = Data::new_at(y.place(), DType::F64, size)?;
    if c.replace {
        let launch = gpu.launch("random_choice", "choice_sums")?.array(w).data(&prepared).size(c.rows).size(c.n);
        // SAFETY: rows of n weights and sums.
        unsafe { launch.run(gpu.grid(c.rows))? };
        let launch = gpu.launch("random_choice", "choice_pick")?.data(&prepared).data(table).data(y);
        // SAFETY: rows of n sums; picks and numbers for each.
        return unsafe { launch.size(y.len()).size(c.n).size(c.picks).run(gpu.grid(y.len())) };
    }
    let launch = gpu.launch("random_choice", "choice_keys")?.array(w).data(table).data(&prepared).size(size);
    // SAFETY: as many weights, numbers and keys.
    unsafe { launch.run(gpu.grid(size))? };
    let launch = gpu.launch("random_choice", "choice_rank")?.data(&prepared).data(y).size(size).size(c.n).size(c.picks);
    // SAFETY: rows of n keys, and of as many indices as are picked.
    unsafe { launch.run(gpu.grid(size)) }
}
