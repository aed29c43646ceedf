//! Activation functions.

mod leaky_relu;

use super::Def;
pub use leaky_relu::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[LeakyReLU::DEF];
