//! `gather`: slices of an array along an axis, picked by indices; and the reverse, the derivative.

#![allow(non_snake_case)] // NNabla calls the second input `Indices`.

use super::List;
use crate::function;
use crate::function::{Function, Grad, GradMut, Needs, OnGpu, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::cpu::scratch::counted;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::gather::Picks;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Picks slices of x along an axis: `y[.., i, ..] = x[.., Indices[i], ..]`. With `batch_dims`, the first axes of both are matched.
    Gather gather in Array
    inputs { x: "N-D array.", Indices [index]: "Indices into the axis, 0 or more." }
    args {
        axis: Option<i64> = None, "Axis to pick from; None: 0. It may count from the end.";
        batch_dims: Option<i64> = None, "How many leading axes x and Indices share; None: 0."
    }
    outputs { y: "x.shape[:axis] + Indices.shape[batch_dims:] + x.shape[axis + 1:]." }
}

impl Gather {
    fn axes(&self, x: &Shape, indices: &Shape) -> Result<(usize, usize)> {
        let axis = x.axis(self.axis.unwrap_or(0), "axis")?;
        let batch = self.batch_dims.unwrap_or(0);
        if batch < 0 || batch as usize > axis || batch as usize > indices.ndim() {
            let expected =
                format!("a number between 0 and {}, the axis and the axes of Indices", axis.min(indices.ndim()));
            return Err(Error::arg("batch_dims", expected).actual(batch));
        }
        Ok((axis, batch as usize))
    }

    fn sizes(&self, x: &Shape, indices: &Shape) -> Result<Picks> {
        let (axis, b) = self.axes(x, indices)?;
        let outer = x[b..axis].iter().product();
        Ok(Picks { batch: x.size_to(b), outer, n: x[axis], inner: x.size_from(axis + 1), picks: indices.size_from(b) })
    }
}

impl Function for Gather {
    fn refuses_gradient(&self, _i: usize) -> bool {
        false
    }

    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let (axis, b) = self.axes(&x[0], &x[1])?;
        if x[0][..b] != x[1][..b] {
            let expected = format!("a shape that begins with {}, as x", Shape::from(&x[0][..b]));
            return Err(Error::shape("Indices", expected).actual(&x[1]));
        }
        Ok(smallvec![x[0][..axis].iter().chain(&x[1][b..]).chain(&x[0][axis + 1..]).copied().collect()])
    }

    fn scratch(&self, x: &[&Shape], _y: &[&Shape], _dtype: DType) -> [usize; 2] {
        [counted(x[1].size() * size_of::<usize>()); 2]
    }

    fn on_gpu(&self) -> OnGpu {
        OnGpu::Both
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.sizes(x[0].shape, x[1].shape)?.pick(&x[0].data, &x[1].data, &y[0].data)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 2, y: 0 })
    }

    fn backward(
        &self,
        _run: &Run,
        x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(indices), Some(gy), Some(gx)) = (&x[1], &gy[0], &mut gx[0]) else { return Ok(()) };
        self.sizes(gx.shape, indices.shape)?.put_back(&gy.data, &indices.data, &gx.data, gx.output)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let shape = g.x[0].shape()[..].into();
        let back = Ungather { shape, axis: self.axis, batch_dims: self.batch_dims };
        Ok(vec![Some(ungather(&g.gy[0], &g.x[1], back)?), None])
    }
}

function! {
    /// Adds slices to zeros at the places that indices name: the reverse of `gather`, its derivative.
    Ungather ungather in Special
    inputs { x: "The slices.", indices [index]: "Indices into the axis." }
    args {
        shape: List, "Shape of the result.";
        axis: Option<i64> = None, "As of `gather`.";
        batch_dims: Option<i64> = None, "As of `gather`."
    }
    outputs { y: "N-D array of the given shape." }
}

impl Ungather {
    fn gather(&self) -> Gather {
        Gather { axis: self.axis, batch_dims: self.batch_dims }
    }
}

impl Function for Ungather {
    fn refuses_gradient(&self, _i: usize) -> bool {
        false
    }

    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let y: Shape = self.shape.iter().map(|&d| d.max(0) as usize).collect();
        let part = self.gather().infer(&[y.clone(), x[1].clone()])?.swap_remove(0);
        if part != x[0] {
            return Err(Error::shape("x", format!("shape {part}")).actual(&x[0]));
        }
        Ok(smallvec![y])
    }

    fn on_gpu(&self) -> OnGpu {
        OnGpu::Both
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let s = self.gather().sizes(y[0].shape, x[1].shape)?;
        s.put_back(&x[0].data, &x[1].data, &y[0].data, Output::Write)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(gather(&g.gy[0], &g.x[1], self.gather())?), None])
    }
}
