//! On a GPU: a thread a number.

use super::AffineGrid;
use crate::array::Data;
use crate::cuda::team::{is_double, named};
use crate::error::Result;

pub(super) fn fill(g: &AffineGrid, theta: &Data, y: &Data) -> Result<()> {
    let launch = y.gpu().launch("affine_grid", &named("affine_grid", is_double(y)))?.array(theta).data(y);
    let launch = g.size.iter().fold(launch.size(y.len()), |launch, &n| launch.size(n));
    // SAFETY: a map for each grid of that size.
    unsafe { launch.size(g.dims).flag(g.corners).run(y.gpu().grid(y.len())) }
}
