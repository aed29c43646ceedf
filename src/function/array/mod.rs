//! Array manipulation functions.

mod broadcast;
mod reshape;

use super::Def;
pub(crate) use broadcast::sum_to;
pub use broadcast::*;
pub use reshape::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[Broadcast::DEF, Reshape::DEF];
