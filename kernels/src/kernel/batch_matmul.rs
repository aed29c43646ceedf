//! Matrix products over leading axes that broadcast.

use super::ops::{self, Matrix};
use crate::array::{Data, Output, Place};
use crate::call::{Call, Run, View, ViewMut};
use crate::cpu::gemm::{Mat, MatMut, matmul};
use crate::dtype::Element;
use crate::error::Result;
use crate::shape::Shape;
use crate::with_real;

/// An input: its matrices as they lie in memory, and whether the products take their transposes.
struct Operand {
    shape: Shape,
    lead: Shape,
    rows: usize,
    columns: usize,
    transposed: bool,
}

impl Operand {
    fn new(shape: &Shape, transposed: bool) -> Operand {
        let (lead, [rows, columns]) = split(shape);
        Operand { shape: shape.clone(), lead, rows, columns, transposed }
    }

    /// The matrices for all products; a single one stays alone.
    fn spread(&self, x: &View, over: &Shape) -> Result<Data> {
        if self.lead == *over || self.lead.size() == 1 {
            return Ok(x.data.clone());
        }
        let all: Shape = over.iter().copied().chain([self.rows, self.columns]).collect();
        let data = Data::new_at(x.data.place(), x.dtype(), all.size())?;
        ops::broadcast(&x.data, &self.shape, &data, &all, Output::Write)?;
        Ok(data)
    }

    /// What was spread over `over`.
    fn batch<'a>(&self, data: &'a Data, over: &Shape) -> Matrix<'a> {
        let mat = Matrix::new(data, self.rows, self.columns);
        let mat = if self.lead.size() == 1 && over.size() > 1 { mat } else { mat.each() };
        if self.transposed { mat.t() } else { mat }
    }

    /// The matrix of product `i` of `over`.
    fn one<'a, T: Element>(&self, x: &'a [T], i: usize, over: &Shape) -> Mat<'a, T> {
        let size = self.rows * self.columns;
        let mat = Mat::new(&x[at(i, over, &self.lead) * size..][..size], self.rows, self.columns);
        if self.transposed { mat.t() } else { mat }
    }
}

/// Leading axes, and rows and columns.
fn split(s: &Shape) -> (Shape, [usize; 2]) {
    let n = s.ndim() - 2;
    (Shape::from(&s[..n]), [s[n], s[n + 1]])
}

/// Products of matrices of `a` and `b`: of `m` rows and `n` columns for each position of `over`.
pub struct BatchMatmul {
    a: Operand,
    b: Operand,
    over: Shape,
    m: usize,
    n: usize,
    multiplications: f64,
}

impl BatchMatmul {
    /// For inputs and an output of these shapes; the inputs' matrices may be transposed.
    pub fn new([a, b]: [&Shape; 2], [transpose_a, transpose_b]: [bool; 2], y: &Shape) -> BatchMatmul {
        let (a, b) = (Operand::new(a, transpose_a), Operand::new(b, transpose_b));
        let (over, [m, n]) = split(y);
        let k = if transpose_a { a.rows } else { a.columns };
        BatchMatmul { a, b, over, m, n, multiplications: y.size() as f64 * k as f64 }
    }

    /// All products at once. A GPU repeats the matrices of an input that is broadcast, unless there is only one.
    fn batch(&self, x: &[View], y: &Data) -> Result<()> {
        let over = &self.over;
        let (a, b) = (self.a.spread(&x[0], over)?, self.b.spread(&x[1], over)?);
        ops::matmul(over.size(), self.a.batch(&a, over), self.b.batch(&b, over), y, Output::Write)
    }

    /// Each product with the matrices that are broadcast to it.
    fn one_by_one(&self, run: &Run, x: &[View], y: &mut [ViewMut]) {
        let &BatchMatmul { m, n, ref over, .. } = self;
        with_real!(run.dtype, T => {
            let (a, b, y) = (x[0].slice::<T>(), x[1].slice::<T>(), y[0].slice::<T>());
            for i in 0..over.size() {
                let y = MatMut::new(&mut y[i * m * n..][..m * n], m, n);
                matmul(self.a.one(a, i, over), self.b.one(b, i, over), y, Output::Write);
            }
        });
    }
}

impl Call for BatchMatmul {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if self.over.size() == 0 {
            return Ok(());
        }
        match y[0].data.place() {
            Place::Host if self.a.lead != self.over || self.b.lead != self.over => self.one_by_one(run, x, y),
            _ => self.batch(x, &y[0].data)?,
        }
        Ok(())
    }

    fn multiplications(&self) -> f64 {
        self.multiplications
    }

    /// The gradient of a matrix that is broadcast, before it is summed.
    fn backward_scratch(&self) -> usize {
        let broadcast = [&self.a, &self.b].into_iter().filter(|x| x.lead != self.over);
        broadcast.map(|x| self.over.size() * x.rows * x.columns).max().unwrap_or(0)
    }
}

/// Number of the matrix of `of` that belongs to matrix `i` of `over`.
fn at(i: usize, over: &Shape, of: &Shape) -> usize {
    let (mut rest, mut stride, mut index) = (i, 1, 0);
    for axis in (0..over.ndim()).rev() {
        let k = rest % over[axis];
        rest /= over[axis];
        let lead = over.ndim() - of.ndim();
        if axis >= lead {
            let n = of[axis - lead];
            index += if n == 1 { 0 } else { k * stride };
            stride *= n;
        }
    }
    index
}
