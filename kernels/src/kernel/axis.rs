//! One axis in the middle of an array.

use crate::shape::Shape;

/// An array's sizes around one of its axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    pub outer: usize,
    pub n: usize,
    pub inner: usize,
}

impl Axis {
    pub fn new(shape: &Shape, axis: usize) -> Axis {
        Axis { outer: shape.size_to(axis), n: shape[axis], inner: shape.size_from(axis + 1) }
    }
}
