//! Functions that belong nowhere else.

mod patch_correlation;

use super::Def;
pub use patch_correlation::{PatchCorrelation, patch_correlation};

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[PatchCorrelation::DEF];
