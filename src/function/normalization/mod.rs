//! Normalization: by the statistics of batches or samples.

mod axes;
mod batch_normalization;
mod clip_grad;
mod layer_normalization;
mod rule;

use super::Def;
pub use batch_normalization::*;
pub use clip_grad::*;
pub use layer_normalization::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] =
    &[BatchNormalization::DEF, LayerNormalization::DEF, ClipGradByValue::DEF, ClipGradByNorm::DEF];
