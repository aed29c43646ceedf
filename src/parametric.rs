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
mod binary_connect;
mod binary_weight;
mod convolution;
mod declare;
mod deconvolution;
mod deformable_convolution;
mod depthwise;
mod embed;
mod fixed_point_quantized;
mod group_normalization;
mod inq;
mod layer;
mod layer_normalization;
mod lstm_cell;
mod mean_subtraction;
mod min_max_quantize;
mod min_max_quantized;
mod pow2_quantized;
mod prelu;
mod pruned;
mod quantized;
mod recurrent;
mod transformer;
mod weight_normalization;

pub use affine::{Affine, affine};
pub use argument_types::{Apply, GivenArrays, Init, Inits, Level, Rng, Size, Sizes};
pub use attention::{MultiHeadAttention, multi_head_attention};
pub use batch_normalization::{
    BatchNormalization, FusedBatchNormalization, batch_normalization, fused_batch_normalization,
};
pub use binary_connect::{
    BinaryConnectAffine, BinaryConnectConvolution, binary_connect_affine, binary_connect_convolution,
};
pub use binary_weight::{BinaryWeightAffine, BinaryWeightConvolution, binary_weight_affine, binary_weight_convolution};
pub use convolution::{Convolution, convolution};
pub use declare::{LayerCall, LayerDef, LayerInput, ParameterDef};
pub use deconvolution::{Deconvolution, deconvolution};
pub use deformable_convolution::{DeformableConvolution, deformable_convolution};
pub use depthwise::{DepthwiseConvolution, DepthwiseDeconvolution, depthwise_convolution, depthwise_deconvolution};
pub use embed::{Embed, embed};
pub use fixed_point_quantized::{
    FixedPointQuantizedAffine, FixedPointQuantizedConvolution, fixed_point_quantized_affine,
    fixed_point_quantized_convolution,
};
pub use group_normalization::{GroupNormalization, InstanceNormalization, group_normalization, instance_normalization};
pub use inq::{INQAffine, INQConvolution, inq_affine, inq_convolution};
pub use layer_normalization::{LayerNormalization, layer_normalization};
pub use lstm_cell::{LSTMCell, lstm_cell};
pub use mean_subtraction::{MeanSubtraction, mean_subtraction};
pub use min_max_quantize::{MinMaxQuantize, min_max_quantize};
pub use min_max_quantized::{
    MinMaxQuantizedAffine, MinMaxQuantizedConvolution, min_max_quantized_affine, min_max_quantized_convolution,
};
pub use pow2_quantized::{
    Pow2QuantizedAffine, Pow2QuantizedConvolution, pow2_quantized_affine, pow2_quantized_convolution,
};
pub use prelu::{PReLU, prelu};
pub use pruned::{PrunedAffine, PrunedConvolution, pruned_affine, pruned_convolution};
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
        BinaryConnectAffine::DEF,
        BinaryConnectConvolution::DEF,
        BinaryWeightAffine::DEF,
        BinaryWeightConvolution::DEF,
        Convolution::DEF,
        Deconvolution::DEF,
        DeformableConvolution::DEF,
        DepthwiseConvolution::DEF,
        DepthwiseDeconvolution::DEF,
        Embed::DEF,
        FixedPointQuantizedAffine::DEF,
        FixedPointQuantizedConvolution::DEF,
        GroupNormalization::DEF,
        INQAffine::DEF,
        INQConvolution::DEF,
        InstanceNormalization::DEF,
        LayerNormalization::DEF,
        MinMaxQuantize::DEF,
        MinMaxQuantizedAffine::DEF,
        MinMaxQuantizedConvolution::DEF,
        Pow2QuantizedAffine::DEF,
        Pow2QuantizedConvolution::DEF,
        MeanSubtraction::DEF,
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
        PrunedAffine::DEF,
        PrunedConvolution::DEF,
    ]
}
