//! Grids of coordinates from -1 to 1, mapped by an affine map for each image.

mod cuda;

use crate::array::scratch::{Scratch, counted};
use crate::array::{Data, Place};
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::pool::tasks;
use crate::simd::SimdReal;
use crate::with_real;

/// A grid for each map. Axes are depth, height and width; those that are not there are of size 1.
pub struct AffineGrid {
    pub size: [usize; 3],
    pub dims: usize,
    /// -1 and 1 are the first and the last element; else they are the image's edges.
    pub corners: bool,
}

impl AffineGrid {
    /// The coordinate of element i on axis a; that of one element is 0.
    fn coordinate(&self, a: usize, i: usize) -> f64 {
        let (n, i) = (self.size[a] as f64, i as f64);
        match self.corners {
            true if self.size[a] > 1 => (2.0 * i - (n - 1.0)) / (n - 1.0),
            true => 0.0,
            false => (2.0 * i + 1.0 - n) / n,
        }
    }

    fn fill<T: SimdReal>(&self, theta: &[T], y: &mut [T]) {
        let (d, [depth, height, width]) = (self.dims, self.size);
        let columns = Scratch::each(width, |i| T::from_f64(self.coordinate(2, i)));
        tasks::parts(y, width * d, |row, y| {
            let (line, b) = (row % (depth * height), row / (depth * height));
            // What y and z, and 1, add to each component along the row.
            let fixed = [self.coordinate(1, line % height), self.coordinate(0, line / height)];
            for (c, map) in theta[b * d * (d + 1)..].chunks_exact(d + 1).take(d).enumerate() {
                let others = map[1..d].iter().zip(fixed);
                let sum = others.fold(map[d], |sum, (&m, at)| sum + m * T::from_f64(at));
                y[c..].iter_mut().step_by(d).zip(&columns[..]).for_each(|(y, &x)| *y = map[0] * x + sum);
            }
        });
    }

    fn run(&self, theta: &Data, y: &Data) -> Result<()> {
        if let Place::Gpu(_) = y.place() {
            return cuda::fill(self, theta, y);
        }
        with_real!(y.dtype(), T => self.fill(theta.as_slice::<T>(), y.as_mut_slice()));
        Ok(())
    }
}

impl Call for AffineGrid {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.run(&x[0].data, &y[0].data)
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [counted(self.size[2] * dtype.size()), 0]
    }
}
