//! Ones at given places, zeros elsewhere.

use crate::array::Place;
use crate::call::{Call, Run, View, ViewMut};
use crate::error::Result;
use crate::kernel::gather::cuda::indices as device_indices;
use crate::shape::Shape;
use crate::with_real;

/// Arrays of this shape, which has one axis at least, with a 1 each.
pub struct OneHot(pub Shape);

impl OneHot {
    /// Offset of a place in one array.
    fn offset(&self, place: &[i64]) -> Option<usize> {
        place.iter().zip(self.0.iter()).try_fold(0, |offset, (&i, &n)| {
            let i = if i < 0 { i.checked_add(n as i64)? } else { i };
            (0..n as i64).contains(&i).then(|| offset * n + i as usize)
        })
    }
}

impl Call for OneHot {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return device_indices::one_hot(&x[0].data, &self.0, &y[0].data);
        }
        let places = x[0].slice::<i64>().chunks(self.0.ndim());
        with_real!(run.dtype, T => {
            let y = y[0].slice::<T>();
            y.fill(0.0);
            for (r, offset) in places.enumerate().filter_map(|(r, p)| Some((r, self.offset(p)?))) {
                y[r * self.0.size() + offset] = 1.0;
            }
        });
        Ok(())
    }
}
