//! Validation functions: how often a prediction is wrong.

mod binary_error;
mod confusion_matrix;
mod top_n_error;

use super::Def;
pub use binary_error::*;
pub use confusion_matrix::*;
pub use top_n_error::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[TopNError::DEF, BinaryError::DEF, ConfusionMatrix::DEF];
