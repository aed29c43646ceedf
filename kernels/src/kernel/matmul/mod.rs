//! Matrix products, on any device.

mod cuda;

use crate::array::{Data, Output, Place, Strided};
use crate::call::View;
use crate::error::Result;
use crate::gemm::{self, Mat, MatMut};
use crate::with_real;

/// A matrix in an array; in a batch every product uses it, or each one of its own.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    data: &'a Data,
    first: usize,
    /// Sizes and strides as the product sees them.
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
    /// From one matrix of a batch to the next.
    step: usize,
    /// In place of `step`: where each matrix of a batch begins, on the host.
    starts: &'a [usize],
}

impl<'a> Matrix<'a> {
    /// A row-major matrix that is all of an array, or the first one of several.
    pub fn new(data: &'a Data, rows: usize, columns: usize) -> Matrix<'a> {
        Matrix { data, first: 0, rows, columns, row_stride: columns, column_stride: 1, step: 0, starts: &[] }
    }

    /// A matrix of which the rows begin `stride` elements apart.
    pub fn rows(data: &'a Data, rows: usize, columns: usize, stride: usize) -> Matrix<'a> {
        Matrix { row_stride: stride, ..Matrix::new(data, rows, columns) }
    }

    /// The last two axes of an input, which [takes strides](takes).
    pub fn of(x: &'a View, rows: usize, columns: usize) -> Matrix<'a> {
        let dense = Matrix::new(&x.data, rows, columns);
        let Some(view) = x.strides() else { return dense };
        let stride = |back: usize| view.strides[view.strides.len() - back] as usize;
        Matrix { first: view.first, row_stride: stride(2), column_stride: stride(1), ..dense }
    }

    /// The transposed matrix, or matrices.
    pub fn t(self) -> Matrix<'a> {
        let (rows, columns) = (self.columns, self.rows);
        Matrix { rows, columns, row_stride: self.column_stride, column_stride: self.row_stride, ..self }
    }

    /// One matrix for each product of a batch, one after another.
    pub fn each(self) -> Matrix<'a> {
        Matrix { step: self.rows * self.columns, ..self }
    }

    /// One matrix for each product of a batch, which begin at these places of the array.
    pub fn at(self, starts: &'a [usize]) -> Matrix<'a> {
        Matrix { starts, first: 0, ..self }
    }

    fn on_gpu(&self) -> cuda::DeviceMatrix<'a> {
        let &Matrix { data, row_stride, column_stride, step, .. } = self;
        cuda::DeviceMatrix { data, row_stride, column_stride, step }
    }

    fn on_host<T: crate::dtype::Element>(&self) -> Mat<'a, T> {
        let (data, sizes) = (&self.data.as_slice::<T>()[self.first..], [self.rows, self.columns]);
        Mat::strided(data, sizes, [self.row_stride, self.column_stride], self.step, self.starts)
    }
}

/// Whether a product of `work` multiplications on the host takes matrices that lie as `x` says along its last two axes: the
/// result is the same to the bit as if they lay in order.
pub fn takes(x: &Strided, work: usize) -> bool {
    let n = x.shape.ndim();
    if n < 2 {
        return false;
    }
    let ([rows, columns], [row, column]) = ([x.shape[n - 2], x.shape[n - 1]], [x.strides[n - 2], x.strides[n - 1]]);
    let in_rows = (column == 1 || columns == 1) && (row > 0 || rows == 1);
    let in_columns = row == 1 && column > 0 && rows > 1 && columns > 1;
    row >= 0 && column >= 0 && (in_rows || (in_columns && work > gemm::TINY))
}

/// `batch` products y = a b, or y += a b.
pub fn matmul(batch: usize, a: Matrix, b: Matrix, y: &Data, output: Output) -> Result<()> {
    let (m, k, n) = (a.rows, a.columns, b.columns);
    if batch == 0 {
        return Ok(());
    }
    match y.place() {
        // SAFETY: the arrays have the sizes that `resolve` checked.
        Place::Gpu(_) => unsafe { cuda::matmul(batch, [m, n, k], a.on_gpu(), b.on_gpu(), y, output)? },
        Place::Host => with_real!(y.dtype(), T => {
            gemm::batch_matmul(batch, a.on_host::<T>(), b.on_host(), MatMut::new(y.as_mut_slice(), m, n), output)
        }),
    }
    Ok(())
}
