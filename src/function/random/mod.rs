//! Random functions. Their numbers come from [`crate::random`].

mod dropout;
mod rand;
mod seed;

use super::Def;
pub use dropout::*;
pub use rand::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[Dropout::DEF, Rand::DEF, Randn::DEF, Randint::DEF];
