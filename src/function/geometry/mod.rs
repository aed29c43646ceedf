//! Images moved by grids and flows.

use super::Def;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[];
