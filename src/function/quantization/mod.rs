//! Quantization: numbers of few bits, and weights set to zero.

mod linear;
mod prune;

use super::Def;
pub use linear::*;
pub use prune::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[Prune::DEF, QuantizeLinear::DEF, DequantizeLinear::DEF];
