//! On the host.

mod extreme;
mod product;
pub(super) mod rows;
mod sum;

pub use extreme::Extremum;
pub(super) use extreme::{Index, mark, spread, winners};
pub(super) use product::{prod_axes, prod_backward};
pub(crate) use sum::{broadcast, sum_axes, sum_constant, sum_to};
