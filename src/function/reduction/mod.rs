//! Reductions over axes.

mod max_min;
mod mean;
mod norm;
mod prod;
mod sum;
mod winner_mask;

use super::Def;
pub use max_min::*;
pub use mean::*;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
pub use norm::*;
pub use prod::*;
use smallvec::SmallVec;
pub use sum::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[Sum::DEF, Mean::DEF, Max::DEF, Min::DEF, Norm::DEF, Prod::DEF];

/// Which axes of a shape are reduced.
pub(crate) type Mask = SmallVec<[bool; 6]>;

/// The axes that `axis` names (`None`: all), as a mask.
pub(crate) fn mask(x: &Shape, axis: &Option<Vec<i64>>) -> Result<Mask> {
    let mut mask = Mask::from_elem(axis.is_none(), x.ndim());
    for &a in axis.iter().flatten() {
        let i = x.axis(a, "axis")?;
        if std::mem::replace(&mut mask[i], true) {
            return Err(
                Error::arg("axis", "each axis once").actual(format!("{:?}", axis.as_deref().unwrap_or_default()))
            );
        }
    }
    Ok(mask)
}

/// The shape after reduction; `keepdims` leaves axes of size 1.
pub(crate) fn reduced(x: &Shape, mask: &Mask, keepdims: bool) -> Shape {
    let axes = x.iter().zip(mask).filter(|(_, m)| !**m || keepdims);
    axes.map(|(&n, &m)| if m { 1 } else { n }).collect()
}
