//! Array manipulation functions.

mod assign;
mod bool_scatter;
mod broadcast;
mod concatenate;
mod flip;
mod gather;
mod gather_nd;
mod int_list;
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

use super::Def;
pub use assign::*;
pub use bool_scatter::*;
pub(crate) use broadcast::sum_to;
pub use broadcast::*;
pub use concatenate::*;
pub use flip::*;
pub use gather::*;
pub use gather_nd::*;
pub use int_list::*;
pub use matrix_diag::*;
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
