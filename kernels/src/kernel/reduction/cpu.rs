//! On the host.

mod extreme;
mod product;

pub use extreme::Order;
pub(super) use extreme::{Index, mark, spread, winners};
pub(super) use product::{prod_axes, prod_backward};
