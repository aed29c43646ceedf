//! Layers: matrix products, convolutions, pooling, embedding.

mod affine;
mod batch_matmul;

use super::Def;
pub use affine::*;
pub use batch_matmul::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[Affine::DEF, BatchMatmul::DEF];
