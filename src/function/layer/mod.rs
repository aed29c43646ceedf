//! Layers: matrix products, convolutions, pooling, embedding.

mod affine;
mod average_pooling;
mod batch_matmul;
mod convolution;
mod convolution_weight_grad;
mod deconvolution;
mod embed;
mod global_average_pooling;
mod gru;
mod lstm;
mod max_pooling;
mod pooling;
mod recurrent;
mod rnn;
mod spatial;
mod sum_pooling;

use super::Def;
pub use affine::*;
pub use average_pooling::*;
pub use batch_matmul::*;
pub use convolution::*;
pub use deconvolution::*;
pub use embed::{Embed, embed};
pub use global_average_pooling::*;
pub use gru::*;
pub use lstm::*;
pub use max_pooling::*;
pub use rnn::*;
pub use sum_pooling::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[
    Affine::DEF,
    RNN::DEF,
    LSTM::DEF,
    GRU::DEF,
    BatchMatmul::DEF,
    Convolution::DEF,
    Deconvolution::DEF,
    MaxPooling::DEF,
    AveragePooling::DEF,
    SumPooling::DEF,
    GlobalAveragePooling::DEF,
    MaxPoolingBackward::DEF,
    Embed::DEF,
];
