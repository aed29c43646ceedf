//! Matrix products over leading axes that broadcast.

use super::matmul::{self, Matrix, matmul};
use super::ops;
use crate::array::{Data, Output, Place, Strided};
use crate::call::{Call, GradMut, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::compute_dtype;
use crate::error::Result;
use crate::shape::Shape;

/// An input: its matrices as they lie in memory, and whether the products take their transposes.
struct MatrixOperand {
    shape: Shape,
    lead: Shape,
    rows: usize,
    columns: usize,
    transposed: bool,
}

/// An operand's elements, spread over all products where that is needed, and where the matrix of each begins.
struct Laid<'a> {
    x: View<'a>,
    starts: Vec<usize>,
    each: bool,
}

impl MatrixOperand {
    fn new(shape: &Shape, transposed: bool) -> MatrixOperand {
        let (lead, [rows, columns]) = split(shape);
        MatrixOperand { shape: shape.clone(), lead, rows, columns, transposed }
    }

    /// What the products of `over` read. A GPU repeats the matrices of an input that is broadcast, unless there is only one.
    fn lay<'a>(&self, x: &View<'a>, over: &Shape) -> Result<Laid<'a>> {
        let (mut data, mut starts) = (x.data.clone(), Vec::new());
        let is_one = self.lead.size() == 1;
        let each = !is_one || over.size() == 1;
        match (x.strides(), data.place()) {
            (Some(view), _) => starts = self.starts(view, over),
            (None, _) if self.lead == *over || is_one => {}
            (None, Place::Host) => starts = self.starts(&Strided::dense(&self.shape), over),
            (None, Place::Gpu(_)) => {
                let all: Shape = over.iter().copied().chain([self.rows, self.columns]).collect();
                let spread = Data::new_at(data.place(), x.dtype(), all.size())?;
                ops::broadcast(&data, &self.shape, &spread, &all, Output::Write)?;
                data = spread;
            }
        }
        Ok(Laid { x: x.with(data), starts, each })
    }

    /// Where the matrices of the products of `over` begin, in the array that `x` is a view of.
    fn starts(&self, x: &Strided, over: &Shape) -> Vec<usize> {
        let lead = over.ndim() - self.lead.ndim();
        let mut starts = vec![x.first];
        for (axis, &n) in over.iter().enumerate() {
            let stride = match axis.checked_sub(lead) {
                Some(a) if self.lead[a] != 1 => x.strides[a],
                _ => 0,
            };
            let each = |&at: &usize| (0..n).map(move |i| at.wrapping_add_signed(i as isize * stride));
            starts = starts.iter().flat_map(each).collect();
        }
        starts
    }

    fn matrix<'a>(&self, laid: &'a Laid) -> Matrix<'a> {
        let mat = Matrix::of(&laid.x, self.rows, self.columns);
        let mat = match laid.starts[..] {
            [] if laid.each => mat.each(),
            [] => mat,
            _ => mat.at(&laid.starts),
        };
        if self.transposed { mat.t() } else { mat }
    }

    /// Writes or adds the gradient, of which each product makes a part with `make`.
    fn gradient(&self, over: &Shape, gx: &GradMut, make: impl FnOnce(&Data, Output) -> Result<()>) -> Result<()> {
        if self.lead == *over {
            return make(&gx.data, gx.output);
        }
        let all: Shape = over.iter().copied().chain([self.rows, self.columns]).collect();
        let parts = Data::new_at(gx.data.place(), compute_dtype(gx.data.dtype()), all.size())?;
        make(&parts, Output::Write)?;
        ops::sum_to(&parts, &all, &gx.data, &self.shape, gx.output)
    }
}

/// Leading axes, and rows and columns.
fn split(s: &Shape) -> (Shape, [usize; 2]) {
    let n = s.ndim() - 2;
    (Shape::from(&s[..n]), [s[n], s[n + 1]])
}

/// Products of matrices of `a` and `b`: of `m` rows and `n` columns for each position of `over`.
pub struct BatchMatmul {
    a: MatrixOperand,
    b: MatrixOperand,
    y: MatrixOperand,
    over: Shape,
    /// Of each product.
    work: usize,
}

impl BatchMatmul {
    /// For inputs and an output of these shapes; the inputs' matrices may be transposed.
    pub fn new([a, b]: [&Shape; 2], [transpose_a, transpose_b]: [bool; 2], y: &Shape) -> BatchMatmul {
        let (a, b, y) =
            (MatrixOperand::new(a, transpose_a), MatrixOperand::new(b, transpose_b), MatrixOperand::new(y, false));
        let k = if transpose_a { a.rows } else { a.columns };
        let work = y.rows.saturating_mul(y.columns).saturating_mul(k);
        BatchMatmul { over: y.lead.clone(), a, b, y, work }
    }
}

impl Call for BatchMatmul {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (a, b) = (self.a.lay(&x[0], &self.over)?, self.b.lay(&x[1], &self.over)?);
        matmul(self.over.size(), self.a.matrix(&a), self.b.matrix(&b), &y[0].data, Output::Write)
    }

    fn takes_strides(&self, i: usize, x: &Strided, place: Place) -> bool {
        // The caller's arrays may have several axes where the matrices have one.
        let as_said = x.shape == [&self.a, &self.b][i].shape;
        place == Place::Host && as_said && matmul::takes(x, self.work)
    }

    fn multiplications(&self) -> f64 {
        self.over.size() as f64 * self.work as f64
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        Some(Needs { x: (want[0] as u32) << 1 | want[1] as u32, y: 0 })
    }

    /// `ga = gy bᵀ` and `gb = aᵀ gy`, or their transposes, summed over what was broadcast.
    fn backward(&self, _run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let Some(gy) = &gy[0] else { return Ok(()) };
        let (over, batch) = (&self.over, self.over.size());
        let laid = self.y.lay(gy, over)?;
        let g = self.y.matrix(&laid);
        if let (Some(gx), Some(b)) = (&gx[0], &x[1]) {
            let laid = self.b.lay(b, over)?;
            let b = self.b.matrix(&laid);
            self.a.gradient(over, gx, |to, output| match self.a.transposed {
                true => matmul(batch, b, g.t(), to, output),
                false => matmul(batch, g, b.t(), to, output),
            })?;
        }
        if let (Some(gx), Some(a)) = (&gx[1], &x[0]) {
            let laid = self.a.lay(a, over)?;
            let a = self.a.matrix(&laid);
            self.b.gradient(over, gx, |to, output| match self.b.transposed {
                true => matmul(batch, g.t(), a, to, output),
                false => matmul(batch, a.t(), g, to, output),
            })?;
        }
        Ok(())
    }

    /// The gradient of a matrix that is broadcast, before it is summed.
    fn backward_scratch(&self, want: &[bool]) -> usize {
        let wanted = [&self.a, &self.b].into_iter().zip(want).filter(|(x, want)| **want && x.lead != self.over);
        wanted.map(|(x, _)| self.over.size() * x.rows * x.columns).max().unwrap_or(0)
    }
}
