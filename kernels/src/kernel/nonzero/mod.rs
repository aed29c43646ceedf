//! Where an array is not zero.

mod cuda;

use crate::array::Place;
use crate::call::{Call, Run, View, ViewMut};
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::with_real;

/// The indices of so many places of arrays of shape `x`.
pub struct NonZero {
    pub x: Shape,
    pub places: usize,
}

impl Call for NonZero {
    /// On a GPU, where counting the places would make the host wait, places beyond the number are left out, and those that are
    /// missing have the largest index.
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let n = self.places;
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::nonzero(&self.x, n, &x[0].data, &y[0].data);
        }
        let y = y[0].slice::<u64>();
        let found = with_real!(run.dtype, T => {
            let places = x[0].slice::<T>().iter().enumerate().filter(|(_, v)| **v != 0.0);
            places.enumerate().fold(0, |_, (k, (place, _))| {
                let mut rest = place;
                for (a, &size) in self.x.iter().enumerate().rev().filter(|_| k < n) {
                    y[a * n + k] = (rest % size) as u64;
                    rest /= size;
                }
                k + 1
            })
        });
        if found == n {
            return Ok(());
        }
        let e = Error::arg("x", format!("{n} places that are not 0")).actual(found);
        Err(e.hint("places are counted when the function is called: for another x, call it again"))
    }
}
