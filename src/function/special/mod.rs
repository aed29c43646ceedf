//! Functions that belong nowhere else.

use super::Def;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[];
