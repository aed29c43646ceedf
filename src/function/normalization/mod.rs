//! Normalization: by the statistics of batches or samples, by norms.

mod axes;
mod batch_normalization;
mod clip_grad;
mod group_normalization;
mod layer_normalization;
mod mean_subtraction;
mod norm_normalization;
mod rule;
mod spectral_norm;
mod tensor_normalization;

use super::Def;
pub use batch_normalization::*;
pub use clip_grad::*;
pub use group_normalization::*;
pub use layer_normalization::*;
pub use mean_subtraction::*;
pub use norm_normalization::*;
pub(crate) use rule::NormalizationRule;
pub use spectral_norm::*;
pub use tensor_normalization::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[
    BatchNormalization::DEF,
    LayerNormalization::DEF,
    GroupNormalization::DEF,
    InstanceNormalization::DEF,
    TensorNormalization::DEF,
    WeightStandardization::DEF,
    NormNormalization::DEF,
    WeightNormalization::DEF,
    SpectralNorm::DEF,
    MeanSubtraction::DEF,
    ClipGradByValue::DEF,
    ClipGradByNorm::DEF,
];
