//! On a GPU.

use super::Sequences;
use crate::array::Data;
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::ops;

/// Numbers of the padded rows, in the order of the packed ones; `counts` are the sequences' lengths, or the steps' sizes.
pub(super) fn numbers(c: &Sequences, counts: &Data, are_lengths: bool) -> Result<Data> {
    let (gpu, numbers) = (counts.gpu(), Data::new_at(counts.place(), DType::I64, c.rows)?);
    ops::fill(&numbers, -1.0)?;
    let places = c.batch * c.steps;
    if places == 0 {
        return Ok(numbers);
    }
    let launch = gpu.launch("packed_sequence", "packed_rows")?.data(counts).size(counts.len()).flag(are_lengths);
    let launch = launch.size(c.batch).size(c.steps).flag(c.batch_first).data(&numbers).size(c.rows);
    // SAFETY: as many counts as are said, a number for each row.
    unsafe { launch.size(places).run(gpu.grid(places))? };
    Ok(numbers)
}

/// How many of `counts` are greater than each of the numbers from 0 on.
pub(super) fn greater(counts: &Data, y: &Data) -> Result<()> {
    let gpu = y.gpu();
    let launch = gpu.launch("packed_sequence", "greater")?.data(counts).size(counts.len()).data(y).size(y.len());
    // SAFETY: as many as are said.
    unsafe { launch.run(gpu.grid(y.len())) }
}
