//! Reductions over axes.

pub(crate) mod axes;
pub(crate) mod cpu;
pub mod cuda;
mod extreme;
mod mean;
mod norm;
mod prod;
mod sum;
pub mod whole;

use crate::shape::Shape;
pub use cpu::Extremum;
pub use extreme::{Extreme, WinnerMask};
pub use mean::Mean;
pub(super) use mean::divide;
pub use norm::Norm;
pub use prod::Prod;
use smallvec::SmallVec;
pub use sum::Sum;

/// Which axes of a shape are meant.
pub type AxisMask = SmallVec<[bool; 6]>;

/// An array of which some axes are reduced.
pub struct Reduced {
    /// The array's shape.
    pub shape: Shape,
    /// The reduced axes.
    pub mask: AxisMask,
    /// The shape with size 1 at them.
    pub kept: Shape,
}

impl Reduced {
    pub fn new(shape: &Shape, mask: AxisMask) -> Reduced {
        let kept = shape.iter().zip(&mask).map(|(&n, &m)| if m { 1 } else { n }).collect();
        Reduced { shape: shape.clone(), mask, kept }
    }

    /// The shape of the result; `keepdims` leaves axes of size 1.
    pub fn output(&self, keepdims: bool) -> Shape {
        self.kept.iter().zip(&self.mask).filter(|(_, m)| !**m || keepdims).map(|(&n, _)| n).collect()
    }

    /// Sizes of the reduced axes.
    fn sizes(&self) -> impl Iterator<Item = usize> {
        self.shape.iter().zip(&self.mask).filter(|(_, m)| **m).map(|(&n, _)| n)
    }

    /// Elements of each result.
    pub fn count(&self) -> usize {
        self.sizes().product()
    }
}
