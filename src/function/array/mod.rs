//! Array manipulation functions.

mod assign;
mod batch_matrix;
mod bool_scatter;
mod broadcast;
mod broadcast_to;
mod concatenate;
mod flip;
mod gather;
mod gather_nd;
mod int_list;
mod matrix_diag;
mod meshgrid;
mod nonzero;
mod one_hot;
mod pack_padded_sequence;
mod pad;
mod reshape;
mod scatter_add;
mod shape;
mod shift;
mod sink;
mod slice;
mod sort;
mod split;
mod stack;
mod tile;
mod top_k;
mod transpose;
mod trilu;
mod unique;
mod unlink;

use super::Def;
pub use assign::*;
pub use batch_matrix::*;
pub use bool_scatter::*;
pub(crate) use broadcast::sum_to;
pub use broadcast::*;
pub use broadcast_to::*;
pub use concatenate::*;
pub use flip::*;
pub use gather::*;
pub use gather_nd::*;
pub use int_list::*;
pub use matrix_diag::*;
pub use meshgrid::*;
pub use nonzero::*;
pub use one_hot::*;
pub use pack_padded_sequence::*;
pub use pad::*;
pub use reshape::*;
pub use scatter_add::*;
pub use shape::*;
pub use shift::*;
pub use sink::*;
pub use slice::*;
pub use sort::*;
pub use split::*;
pub use stack::*;
pub use tile::*;
pub use top_k::*;
pub use transpose::*;
pub use trilu::*;
pub use unique::*;
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
    BroadcastTo::DEF,
    Shift::DEF,
    Sort::DEF,
    Shape::DEF,
    Trilu::DEF,
    Meshgrid::DEF,
    PackPaddedSequence::DEF,
    PadPackedSequence::DEF,
    NonZero::DEF,
    TopKData::DEF,
    TopKGrad::DEF,
    EyeLike::DEF,
    BatchDet::DEF,
    BatchLogdet::DEF,
    BatchInv::DEF,
    BatchCholesky::DEF,
    Unique::DEF,
    Unlink::DEF,
    Sink::DEF,
];
