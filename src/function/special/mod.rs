//! Functions that belong nowhere else.

mod nms;
mod patch_correlation;
mod vat_noise;

use super::Def;
pub use nms::*;
pub use patch_correlation::{PatchCorrelation, patch_correlation};
pub use vat_noise::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] =
    &[VATNoise::DEF, NmsDetection2d::DEF, ONNXNonMaxSuppression::DEF, PatchCorrelation::DEF];
