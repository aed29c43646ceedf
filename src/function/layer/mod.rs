//! Layers: matrix products, convolutions, pooling, embedding.

mod affine;
mod average_pooling;
mod batch_matmul;
mod convolution;
mod convolution_weight_grad;
mod deconvolution;
mod embed;
mod global_average_pooling;
mod max_pooling;
mod pooling;
mod spatial;
mod sum_pooling;
mod unpooling;

use super::Def;
pub use affine::*;
pub use average_pooling::*;
pub use batch_matmul::*;
pub use convolution::*;
pub use deconvolution::*;
pub use embed::{Embed, embed};
pub use global_average_pooling::*;
pub use max_pooling::*;
pub use sum_pooling::*;
pub use unpooling::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[
    Affine::DEF,
    BatchMatmul::DEF,
    Convolution::DEF,
    Deconvolution::DEF,
    MaxPooling::DEF,
    AveragePooling::DEF,
    SumPooling::DEF,
    GlobalAveragePooling::DEF,
    Unpooling::DEF,
    MaxPoolingBackward::DEF,
    Embed::DEF,
];
