//! Images moved by grids and flows.

mod affine_grid;
mod warp;

use super::Def;
pub use affine_grid::*;
pub use warp::{WarpByFlow, WarpByGrid, warp_by_flow, warp_by_grid};

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[AffineGrid::DEF, WarpByGrid::DEF, WarpByFlow::DEF];
