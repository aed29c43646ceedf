//! Array manipulation functions.

mod assign;
mod bool_scatter;
mod broadcast;
mod concatenate;
mod flip;
mod gather;
mod gather_nd;
mod list;
mod matrix_diag;
mod one_hot;
mod pad;
mod reshape;
mod scatter_add;
mod sink;
mod slice;
mod split;
mod stack;
mod tile;
mod transpose;
mod unlink;

use super::{Def, Output, View};
pub use assign::*;
pub use bool_scatter::*;
pub(crate) use broadcast::sum_to;
pub use broadcast::*;
pub use concatenate::*;
pub use flip::*;
pub use gather::*;
pub use gather_nd::*;
pub use list::*;
pub use matrix_diag::*;
use nnrs_kernels::array::Data;
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::ops;
pub use one_hot::*;
pub use pad::*;
pub use reshape::*;
pub use scatter_add::*;
pub use sink::*;
pub use slice::*;
pub use split::*;
pub use stack::*;
pub use tile::*;
pub use transpose::*;
pub use unlink::*;

/// Begins a result with what is given, which may lie there already, or with zeros.
fn begin(y: &Data, given: Option<&View>) -> Result<()> {
    match given {
        Some(v) if v.data.address() == y.address() => Ok(()),
        Some(v) => ops::put(y, &v.data, Output::Write),
        None => ops::fill(y, 0.0),
    }
}

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[
    Concatenate::DEF,
    Split::DEF,
    Stack::DEF,
    Slice::DEF,
    Pad::DEF,
    Transpose::DEF,
    Broadcast::DEF,
    Tile::DEF,
    OneHot::DEF,
    Flip::DEF,
    Reshape::DEF,
    MatrixDiag::DEF,
    MatrixDiagPart::DEF,
    Assign::DEF,
    Gather::DEF,
    GatherNd::DEF,
    ScatterNd::DEF,
    ScatterAdd::DEF,
    BoolGather::DEF,
    BoolScatter::DEF,
    BoolFill::DEF,
    Unlink::DEF,
    Sink::DEF,
];
