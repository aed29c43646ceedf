//! What kernels are built of, on any device: the arrays say where it is done.

use crate::array::{Data, Output, Place};
use crate::cpu::gemm::{self, Mat, MatMut};
use crate::cpu::moves::Moves;
use crate::cpu::reduce as cpu_reduce;
use crate::cpu::simd;
use crate::cuda::{self, reduce::Reduction};
use crate::error::Result;
use crate::expr::Formula;
use crate::shape::Shape;
use crate::tile::Walk;
use crate::tile::formula::{Operand, apply};
use crate::with_real;

/// Copies a box of elements of `x` to one of `y`, or adds it.
pub fn moves(moves: Moves, y: &Data, x: &Data, output: Output) -> Result<()> {
    match y.place() {
        Place::Gpu(_) => moves.run_on_gpu(y, x, output),
        Place::Host => {
            with_real!(y.dtype(), T => moves.run(y.as_mut_slice::<T>(), x.as_slice(), output));
            Ok(())
        }
    }
}

/// Writes `x` to `y`, or adds it, which has as many elements.
pub fn put(y: &Data, x: &Data, output: Output) -> Result<()> {
    match (y.place(), output) {
        (Place::Gpu(_), _) => return Moves::new(0, 0).axis(x.len(), 1, 1).run_on_gpu(y, x, output),
        (Place::Host, Output::Write) => with_real!(y.dtype(), T => y.as_mut_slice::<T>().copy_from_slice(x.as_slice())),
        (Place::Host, _) => with_real!(y.dtype(), T => simd::add_assign(y.as_mut_slice::<T>(), x.as_slice())),
    }
    Ok(())
}

/// Sets all elements, which are of the type to compute in or a GPU's, to `value`.
pub fn fill(y: &Data, value: f64) -> Result<()> {
    match y.place() {
        Place::Gpu(_) => cuda::kernels::fill(y, value),
        Place::Host => {
            with_real!(y.dtype(), T => y.as_mut_slice::<T>().fill(value as T));
            Ok(())
        }
    }
}

/// Begins a result with what is given, which may lie there already, or with zeros.
pub fn begin(y: &Data, given: Option<&Data>) -> Result<()> {
    match given {
        Some(given) if given.address() == y.address() => Ok(()),
        Some(given) => put(y, given, Output::Write),
        None => fill(y, 0.0),
    }
}

/// Sums `x` of `shape` over the axes of `mask` into `y`.
pub fn sum(x: &Data, shape: &Shape, mask: &[bool], y: &Data, output: Output) -> Result<()> {
    match y.place() {
        Place::Gpu(_) => cuda::reduce::reduce(Reduction::Sum, x, shape, mask, y, 1.0, output)?,
        Place::Host => with_real!(y.dtype(), T => {
            cpu_reduce::sum_axes(x.as_slice::<T>(), shape, mask, y.as_mut_slice(), output)
        }),
    }
    Ok(())
}

/// Sums `x` of shape `from` down to shape `to`, which broadcasts to it.
pub fn sum_to(x: &Data, from: &Shape, y: &Data, to: &Shape, output: Output) -> Result<()> {
    match y.place() {
        Place::Gpu(_) => cuda::reduce::sum_to(x, from, y, to, output)?,
        Place::Host => with_real!(y.dtype(), T => {
            cpu_reduce::sum_to(x.as_slice::<T>(), from, y.as_mut_slice(), to, output)
        }),
    }
    Ok(())
}

/// Repeats `x` of shape `from` over shape `to`, which it broadcasts to.
pub fn broadcast(x: &Data, from: &Shape, y: &Data, to: &Shape, output: Output) -> Result<()> {
    match y.place() {
        Place::Gpu(_) => cuda::program::broadcast(x, from, y, to, 1.0, output)?,
        Place::Host => with_real!(y.dtype(), T => {
            cpu_reduce::broadcast(x.as_slice::<T>(), from, y.as_mut_slice(), to, output)
        }),
    }
    Ok(())
}

/// A row-major matrix of an array, or its transpose; in a batch every product uses it, or each one of its own.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    data: &'a Data,
    rows: usize,
    columns: usize,
    transposed: bool,
    each: bool,
}

impl<'a> Matrix<'a> {
    pub fn new(data: &'a Data, rows: usize, columns: usize) -> Matrix<'a> {
        Matrix { data, rows, columns, transposed: false, each: false }
    }

    /// The transposed matrix, or matrices.
    pub fn t(self) -> Matrix<'a> {
        Matrix { transposed: !self.transposed, ..self }
    }

    /// One matrix for each product of a batch, one after another.
    pub fn each(self) -> Matrix<'a> {
        Matrix { each: true, ..self }
    }

    /// Rows and columns as the product sees them.
    fn sizes(&self) -> (usize, usize) {
        if self.transposed { (self.columns, self.rows) } else { (self.rows, self.columns) }
    }

    fn on_gpu(&self) -> cuda::matmul::Matrix<'a> {
        let (row_stride, column_stride) = if self.transposed { (1, self.columns) } else { (self.columns, 1) };
        let step = if self.each { self.rows * self.columns } else { 0 };
        cuda::matmul::Matrix { data: self.data, row_stride, column_stride, step }
    }

    fn on_host<T: crate::dtype::Element>(&self) -> Mat<'a, T> {
        let mat = Mat::new(self.data.as_slice::<T>(), self.rows, self.columns);
        let mat = if self.each { mat.each() } else { mat };
        if self.transposed { mat.t() } else { mat }
    }
}

/// `batch` products y = a b, or y += a b.
pub fn matmul(batch: usize, a: Matrix, b: Matrix, y: &Data, output: Output) -> Result<()> {
    let ((m, k), (_, n)) = (a.sizes(), b.sizes());
    match y.place() {
        // SAFETY: the arrays have the sizes that `infer` checked.
        Place::Gpu(_) => unsafe { cuda::matmul::matmul(batch, [m, n, k], a.on_gpu(), b.on_gpu(), y, output)? },
        Place::Host => with_real!(y.dtype(), T => {
            gemm::batch_matmul(batch, a.on_host::<T>(), b.on_host(), MatMut::new(y.as_mut_slice(), m, n), output)
        }),
    }
    Ok(())
}

/// `y = f(x..)`, or `y += f(x..)`; for each input how it is walked over.
pub fn formula(f: &Formula, x: &[(&Data, Walk)], y: &Data, output: Output) -> Result<()> {
    match y.place() {
        Place::Gpu(_) => cuda::program::apply_to(f, x, y, output),
        Place::Host => with_real!(y.dtype(), T => {
            let operands = x.iter().map(|(data, walk)| Operand { data: data.as_slice::<T>(), walk: walk.clone() });
            let operands: Vec<Operand<T>> = operands.collect();
            apply(f, &operands, y.as_mut_slice(), output);
            Ok(())
        }),
    }
}
