//! On a GPU.

mod extreme;
mod reduce;

pub(super) use extreme::{Winners, product_backward, search, spread};
pub use reduce::{Reduction, reduce, sum_to};
