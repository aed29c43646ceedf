//! Determinants, inverses and Cholesky factors of many matrices.

mod cpu;
mod cuda;

use crate::array::Place;
use crate::array::scratch::counted;
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::with_real;

/// What is made of a matrix; the numbers are those in `cuda/batch_matrix.cu`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Determinant,
    LogDeterminant,
    Inverse,
    Lower,
    Upper,
}

/// Of `batch` matrices of `n` rows and columns.
pub struct BatchMatrix {
    pub batch: usize,
    pub n: usize,
    pub wanted: Wanted,
}

impl Call for BatchMatrix {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return cuda::run(self, &x[0].data, &y[0].data);
        }
        with_real!(run.dtype, T => cpu::run(self, x[0].slice::<T>(), y[0].slice()));
        Ok(())
    }

    fn multiplications(&self) -> f64 {
        self.batch as f64 * (self.n as f64).powi(3)
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [counted(self.n.saturating_mul(self.n).saturating_mul(2 * dtype.size())), 0]
    }
}
