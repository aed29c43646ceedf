//! Layers: matrix products, convolutions, pooling, embedding.

mod adaptive_separable_convolution;
mod affine;
mod attention;
mod average_pooling;
mod batch_matmul;
mod convolution;
mod convolution_weight_grad;
mod deconvolution;
mod deformable_convolution;
mod depthwise;
mod embed;
mod fused_convolution;
mod global_average_pooling;
mod gru;
mod lstm;
mod max_pooling;
mod pooling;
mod recurrent;
mod rnn;
mod roi_align;
mod scaled_dot_product_attention;
mod spatial;
mod sum_pooling;
mod unpooling;

use super::Def;
pub use adaptive_separable_convolution::{AdaptiveSeparableConvolution, adaptive_separable_convolution};
pub use affine::*;
pub use attention::{MultiHeadAttention, multi_head_attention};
pub use average_pooling::*;
pub use batch_matmul::*;
pub use convolution::*;
pub use deconvolution::*;
pub use deformable_convolution::{DeformableConvolution, deformable_convolution};
pub use depthwise::*;
pub use embed::{Embed, embed};
#[cfg(feature = "python")]
pub(crate) use fused_convolution::fused_convolution_into;
pub use fused_convolution::{FusedConvolution, fused_convolution};
pub use global_average_pooling::*;
pub use gru::*;
pub use lstm::*;
pub use max_pooling::*;
pub use rnn::*;
pub use roi_align::{RoiAlign, roi_align};
pub use scaled_dot_product_attention::{ScaledDotProductAttention, scaled_dot_product_attention};
pub use sum_pooling::*;
pub use unpooling::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[
    Affine::DEF,
    RNN::DEF,
    LSTM::DEF,
    GRU::DEF,
    BatchMatmul::DEF,
    Convolution::DEF,
    Deconvolution::DEF,
    DeformableConvolution::DEF,
    AdaptiveSeparableConvolution::DEF,
    DepthwiseConvolution::DEF,
    DepthwiseDeconvolution::DEF,
    MaxPooling::DEF,
    AveragePooling::DEF,
    SumPooling::DEF,
    GlobalAveragePooling::DEF,
    Unpooling::DEF,
    RoiAlign::DEF,
    MaxPoolingBackward::DEF,
    Embed::DEF,
];
