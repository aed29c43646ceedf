//! One axis in the middle of an array.

use crate::pool::tasks::share;
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

    /// How many lines there are along the axis.
    pub fn lines(&self) -> usize {
        self.outer * self.inner
    }

    /// Where line number `i` begins; its elements are `inner` apart.
    pub fn line(&self, i: usize) -> usize {
        i / self.inner * self.n * self.inner + i % self.inner
    }

    /// Calls `some(i)` for the first of each [`TOGETHER`] lines, and `one(i)` for each of the rest, on all threads.
    pub fn each_lines(&self, some: impl Fn(usize) + Sync, one: impl Fn(usize) + Sync) {
        let lines = self.lines();
        share(lines.div_ceil(TOGETHER), lines * self.n, |task| match task * TOGETHER {
            first if first + TOGETHER <= lines => some(first),
            first => (first..lines).for_each(&one),
        });
    }
}

/// Lines that are gone along together: in one alone each step would wait for the one before.
pub const TOGETHER: usize = 4;
