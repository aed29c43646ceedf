//! The different elements of an array, or its different slices.

mod cpu;
mod cuda;

use super::axis::Axis;
use crate::array::Place;
use crate::array::scratch::counted;
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::with_real;

/// The different ones of `at.n` slices, and what is asked for beside them.
pub struct Unique {
    pub at: Axis,
    pub count: usize,
    /// Sorted; if not, they come as they first occur.
    pub sorted: bool,
    /// Where each occurs first, the number of each slice of x, how often each occurs.
    pub asked: [bool; 3],
}

impl Unique {
    fn size(&self) -> usize {
        self.at.outer.saturating_mul(self.at.n).saturating_mul(self.at.inner)
    }

    /// Elements, not slices of several.
    fn is_of_elements(&self) -> bool {
        self.at.outer == 1 && self.at.inner == 1
    }
}

impl Call for Unique {
    /// On a GPU, where counting would make the host wait, slices beyond the number are left out, and have the number -1; for those that are
    /// missing there is NaN, and -1 as the place.
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        match x[0].data.place() {
            Place::Gpu(_) => cuda::unique(self, &x[0].data, y),
            Place::Host => with_real!(run.dtype, T => self.write::<T>(x[0].slice(), y)),
        }
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        // Entries of elements are two numbers; slices are copied, and have an order beside.
        let (copies, lists) = if self.is_of_elements() { (2, 2) } else { (1, 3) };
        let lists = self.at.n.saturating_mul(lists * size_of::<usize>() + size_of::<i32>());
        let copies = self.size().saturating_mul(copies * dtype.size());
        [counted(copies).saturating_add(counted(lists)), 0]
    }
}
