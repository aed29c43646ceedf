//! On a GPU.

use super::super::axis::Axis;
use super::{MoveRule, RandomMoves};
use crate::array::Data;
use crate::cuda::team::{is_double, named};
use crate::error::Result;

/// Along one axis; the outer size of the second `Axis` is the blocks of a sample.
pub(super) fn axis(
    moves: &RandomMoves,
    [at, of_sample]: [&Axis; 2],
    rule: &MoveRule,
    table: &Data,
    x: &Data,
    y: &Data,
    back: bool,
) -> Result<()> {
    let (gpu, [kind, most]) = (y.gpu(), rule.kind.code());
    let name = if back { "unmove" } else { "move" };
    let launch = gpu.launch("random_moves", &named(name, is_double(y)))?.array(x).array(y).size(y.len());
    let launch = launch.size(rule.n).size(rule.to).size(at.inner).size(of_sample.outer);
    let launch = launch.data(table).size(moves.columns).size(rule.column).long(kind).long(most);
    // SAFETY: the arrays have the sizes around the axis, the table a row for each sample.
    unsafe { launch.double(moves.constant).run(gpu.grid(y.len())) }
}

/// Whole samples.
pub(super) fn samples(
    moves: &RandomMoves,
    axes: &[MoveRule],
    inner: usize,
    table: &Data,
    x: &Data,
    y: &Data,
    back: bool,
) -> Result<()> {
    let gpu = y.gpu();
    let row = |r: &MoveRule| [r.kind.code()[0], r.kind.code()[1], r.n as i64, r.to as i64, r.column as i64];
    let rules: Vec<u8> = axes.iter().flat_map(row).flat_map(i64::to_le_bytes).collect();
    let name = if back { "unmove_samples" } else { "move_samples" };
    let launch = gpu.launch("random_moves", &named(name, is_double(y)))?.array(x).array(y).size(y.len());
    let launch = launch.size(inner).size(moves.samples).table(&rules)?.size(axes.len());
    // SAFETY: both arrays have whole samples, the table a row for each of the result.
    unsafe { launch.data(table).size(moves.columns).double(moves.constant).run(gpu.grid(y.len())) }
}
