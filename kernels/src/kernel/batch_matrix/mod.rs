//! Determinants, inverses and Cholesky factors of many matrices.

mod blocks;
mod cpu;
mod cuda;
mod small;

use crate::array::Place;
use crate::array::scratch::counted;
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
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
    /// The determinant's derivative.
    Cofactors,
}

impl Wanted {
    /// A number of each matrix, no matrix.
    pub fn is_number(self) -> bool {
        matches!(self, Wanted::Determinant | Wanted::LogDeterminant)
    }

    /// The number that is made of a matrix without elements.
    fn of_nothing(self) -> f64 {
        if self == Wanted::Determinant { 1.0 } else { 0.0 }
    }
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

    /// Small ones on the host alone.
    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        let (x, y) = match self.wanted {
            Wanted::Determinant | Wanted::LogDeterminant => (1, 0),
            Wanted::Cofactors => return None,
            Wanted::Inverse | Wanted::Lower | Wanted::Upper => (0, 1),
        };
        (self.n <= small::MOST).then_some(Needs { x, y })
    }

    fn backward(&self, run: &Run, Gradients { x, y, gy, gx }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &mut gx[0]) else { return Ok(()) };
        let output = gx.output;
        with_real!(run.dtype, T => {
            let of = |v: &'_ Option<View>| v.as_ref().map(|v| v.data.clone());
            let (x, y) = (of(&x[0]), of(&y[0]));
            let (x, y) = (x.as_ref().map_or(&[][..], |x| x.as_slice::<T>()), y.as_ref().map_or(&[][..], |y| y.as_slice()));
            let g = small::MatrixGradient { wanted: self.wanted, x, y, gy: gy.slice::<T>() };
            cpu::backward(self.n, &g, gx.slice::<T>(), output);
        });
        Ok(())
    }

    fn multiplications(&self) -> f64 {
        self.batch as f64 * (self.n as f64).powi(3)
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [counted(self.n.saturating_mul(self.n).saturating_mul(2 * dtype.size())), 0]
    }
}
