//! Where functions compute.

use super::Place;
use crate::dtype::{DType, compute_dtype};

/// Where a function computes, and the type of its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    pub dtype: DType,
    pub place: Place,
}

impl Site {
    pub fn host(dtype: DType) -> Site {
        Site { dtype, place: Place::Host }
    }

    /// The type in which kernels compute: double for double, float for all others.
    #[inline]
    pub fn compute_dtype(self) -> DType {
        compute_dtype(self.dtype)
    }
}
