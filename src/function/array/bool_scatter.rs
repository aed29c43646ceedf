//! `bool_scatter`: rows put where a mask is not zero. `bool_gather`: the reverse. `bool_fill`: a number where a mask is not zero.

use crate::function::{Elementwise, Function, Grad, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::array::Place;
use nnrs_kernels::cpu::rows;
use nnrs_kernels::cpu::scratch::{Scratch, counted};
use nnrs_kernels::cuda::embed::{self, Absent};
use nnrs_kernels::cuda::places;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::expr::Expr;
use nnrs_kernels::kernel::gather::Picks;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

function! {
    /// Puts the rows of `input`, one after the other, where the mask is not zero; elsewhere the result is `output`, or 0.
    BoolScatter bool_scatter in Array, any_device
    inputs {
        input: "Rows, of shape (n, ..), n the number of places where the mask is not zero.",
        mask: "N-D array.",
        output [optional]: "What the result is elsewhere, zeros by default. If no function has made it, it becomes the result."
    }
    args { }
    outputs { y: "N-D array of shape mask.shape + input.shape[1:]." }
}

function! {
    /// A number where the mask is not zero, x elsewhere.
    BoolFill bool_fill in Array
    inputs { data: "N-D array.", mask: "N-D array that broadcasts to data's shape." }
    args { value: f64 = 0.0, "The number." }
    outputs { output: "N-D array of data's shape." }
}

function! {
    /// The rows of `input` where the mask is not zero, in their order.
    BoolGather bool_gather in Array, any_device
    inputs { input: "N-D array of a shape that begins with the mask's.", mask: "N-D array." }
    args { rows: i64 = 0, "Number of rows, as many as there are places where the mask is not zero." }
    outputs { output: "Array of shape (rows,) where the mask has all axes of input, else (rows, size of one row)." }
}

/// Offsets of the rows where the mask is not zero; there must be `n` of them.
fn chosen(run: &Run, mask: &View, n: usize, size: usize) -> Result<Scratch<usize>> {
    let mut at = Scratch::filled(n, 0);
    let found = with_real!(run.dtype, T => {
        let (mask, mut found) = (mask.slice::<T>(), 0);
        for (i, _) in mask.iter().enumerate().filter(|(_, m)| **m != 0.0) {
            at.get_mut(found).into_iter().for_each(|at| *at = i * size);
            found += 1;
        }
        found
    });
    if found == n {
        return Ok(at);
    }
    Err(Error::arg("mask", format!("{n} places that are not 0, as many as there are rows")).actual(found))
}

/// On a GPU, where counting the places would make the host wait: rows without a place are left out, and places without a
/// row are as where the mask is zero.
fn scatter_on_gpu(x: &[View], y: &ViewMut) -> Result<()> {
    super::begin(&y.data, x.get(2))?;
    let at = places::chosen(&x[1].data, x[0].shape[0])?;
    embed::put(&at, Some(&x[0].data), x[0].shape.size_from(1), &y.data)
}

/// On a GPU: rows without a place are NaN, and places beyond the number of rows are left out.
fn gather_on_gpu(x: &[View], y: &ViewMut) -> Result<()> {
    let (n, size) = (y.shape[0], y.shape.size_from(1));
    let at = places::chosen(&x[1].data, n)?;
    embed::gather(&Picks::rows(x[1].shape.size(), size, n), &at, &x[0].data, &y.data, Absent::Nan)
}

impl Function for BoolScatter {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        if x[0].ndim() == 0 {
            return Err(Error::shape("input", "one axis at least").actual(&x[0]));
        }
        let y: Shape = x[1].iter().chain(&x[0][1..]).copied().collect();
        match x.get(2).filter(|o| **o != y) {
            Some(o) => Err(Error::shape("output", format!("shape {y}")).actual(o)),
            None => Ok(smallvec![y]),
        }
    }

    fn scratch(&self, x: &[&Shape], _y: &[&Shape], _dtype: DType) -> [usize; 2] {
        [counted(x[0][0] * size_of::<usize>()); 2]
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return scatter_on_gpu(x, &y[0]);
        }
        let size = x[0].shape.size_from(1);
        let at = chosen(run, &x[1], x[0].shape[0], size)?;
        super::begin(&y[0].data, x.get(2))?;
        with_real!(run.dtype, T => rows::scatter(x[0].slice(), &at, size, y[0].slice::<T>(), Output::Write));
        Ok(())
    }

    fn rewrites_input(&self) -> Option<usize> {
        Some(2)
    }

    fn differentiable(&self, i: usize) -> bool {
        i != 1
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (gy, mask, input) = (&g.gy[0], &g.x[1], g.x[0].shape());
        let rows = BoolGather { rows: input[0] as i64 };
        let gathered = || f::reshape(&bool_gather(gy, mask, rows)?, f::Reshape::to(&input));
        let mut grads = vec![g.want[0].then(gathered).transpose()?, None];
        if g.x.len() > 2 {
            let wide: Shape = mask.shape().iter().copied().chain(input[1..].iter().map(|_| 1)).collect();
            let mask = f::reshape(mask, f::Reshape::to(&wide))?;
            grads.push(Some(bool_fill(gy, &mask, BoolFill { value: 0.0 })?));
        }
        Ok(grads)
    }
}

impl Function for BoolGather {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let n = x[1].ndim();
        if n > x[0].ndim() || x[0][..n] != x[1][..] {
            return Err(Error::shape("input", format!("a shape that begins with the mask's {}", x[1])).actual(&x[0]));
        }
        let row = (n < x[0].ndim()).then(|| x[0].size_from(n));
        Ok(smallvec![std::iter::once(self.rows.max(0) as usize).chain(row).collect()])
    }

    fn scratch(&self, _x: &[&Shape], y: &[&Shape], _dtype: DType) -> [usize; 2] {
        [counted(y[0][0] * size_of::<usize>()); 2]
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return gather_on_gpu(x, &y[0]);
        }
        let size = y[0].shape.size_from(1);
        let at = chosen(run, &x[1], y[0].shape[0], size)?;
        with_real!(run.dtype, T => rows::gather(x[0].slice::<T>(), &at, size, y[0].slice(), Output::Write));
        Ok(())
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let gx = bool_scatter(&g.gy[0], &g.x[1], None)?;
        Ok(vec![Some(f::reshape(&gx, f::Reshape::to(&g.x[0].shape()))?), None])
    }
}

impl Function for BoolFill {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        if x[0].broadcast(&x[1]).as_ref() != Some(&x[0]) {
            return Err(Error::shape("mask", format!("a shape that broadcasts to data's {}", x[0])).actual(&x[1]));
        }
        Ok(smallvec![x[0].clone()])
    }

    fn elementwise(&self) -> Option<&dyn Elementwise> {
        Some(self)
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }
}

impl Elementwise for BoolFill {
    fn formula(&self, x: &[Expr]) -> Expr {
        x[1].not_equal(0.0).select(self.value, &x[0])
    }
}
