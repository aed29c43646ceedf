//! Functions with parameters of their own: layers that make, name and find their weights in the current parameter scope.
//!
//! The first argument names the layer: `affine("fc", ..)` keeps its weight in `fc/affine/W`, as NNabla's
//! `PF.affine(.., name="fc")` does; with "" it is `affine/W`.
//!
//! One file a function, which declares it for Rust and for Python.

mod affine;
mod argument_types;
mod attention;
mod batch_normalization;
mod convolution;
mod declare;
mod deconvolution;
mod depthwise;
mod embed;
mod group_normalization;
mod layer;
mod layer_normalization;
mod lstm_cell;
mod prelu;
mod recurrent;
mod transformer;
mod weight_normalization;

pub use affine::{Affine, affine};
pub use argument_types::{Apply, Init, Inits, Rng, Size, Sizes};
pub use attention::{MultiHeadAttention, multi_head_attention};
pub use batch_normalization::{
    BatchNormalization, FusedBatchNormalization, batch_normalization, fused_batch_normalization,
};
pub use convolution::{Convolution, convolution};
pub use declare::{LayerCall, LayerDef, LayerInput, ParameterDef};
pub use deconvolution::{Deconvolution, deconvolution};
pub use depthwise::{DepthwiseConvolution, DepthwiseDeconvolution, depthwise_convolution, depthwise_deconvolution};
pub use embed::{Embed, embed};
pub use group_normalization::{GroupNormalization, InstanceNormalization, group_normalization, instance_normalization};
pub use layer_normalization::{LayerNormalization, layer_normalization};
pub use lstm_cell::{LSTMCell, lstm_cell};
pub use prelu::{PReLU, prelu};
pub use recurrent::{GRU, LSTM, RNN, gru, lstm, rnn};
pub use transformer::{
    Transformer, TransformerDecode, TransformerEncode, transformer, transformer_decode, transformer_encode,
};
pub use weight_normalization::{SpectralNorm, WeightNormalization, spectral_norm, weight_normalization};

/// All parametric functions, in the order of the documentation.
///
/// ```
/// assert!(nnrs::parametric::registry().iter().any(|d| d.name == "affine" && d.parameters.len() == 2));
/// ```
pub fn registry() -> &'static [&'static LayerDef] {
    &[
        Affine::DEF,
        BatchNormalization::DEF,
        Convolution::DEF,
        Deconvolution::DEF,
        DepthwiseConvolution::DEF,
        DepthwiseDeconvolution::DEF,
        Embed::DEF,
        GroupNormalization::DEF,
        InstanceNormalization::DEF,
        LayerNormalization::DEF,
        PReLU::DEF,
        FusedBatchNormalization::DEF,
        SpectralNorm::DEF,
        WeightNormalization::DEF,
        RNN::DEF,
        LSTM::DEF,
        GRU::DEF,
        LSTMCell::DEF,
        MultiHeadAttention::DEF,
        Transformer::DEF,
        TransformerEncode::DEF,
        TransformerDecode::DEF,
    ]
}
