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

    /// The same lines; those of one element are neighbours, which are gone along together.
    pub fn side_by_side(self) -> Axis {
        if self.n == 1 { Axis { outer: 1, n: 1, inner: self.lines() } } else { self }
    }

    /// How many lines there are along the axis.
    pub fn lines(&self) -> usize {
        self.outer * self.inner
    }

    /// Where line number `i` begins; its elements are `inner` apart.
    pub fn line(&self, i: usize) -> usize {
        i / self.inner * self.n * self.inner + i % self.inner
    }
}
