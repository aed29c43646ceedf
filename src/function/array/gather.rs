//! `gather`: slices of an array along an axis, picked by indices; and the reverse, the derivative.

#![allow(non_snake_case)] // NNabla calls the second input `Indices`.

use super::List;
use crate::array::{Data, Place};
use crate::cpu::rows;
use crate::cpu::scratch::{Scratch, counted};
use crate::cpu::simd::SimdReal;
use crate::cpu::tasks::{Shared, share};
use crate::cuda::embed::{self, Absent, Picks};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::function::{Function, Grad, GradMut, Needs, OnGpu, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::shape::Shape;
use crate::{function, with_real};
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

/// Checks the indices.
fn checked(indices: &[i64], n: usize) -> Result<&[i64]> {
    match indices.iter().find(|i| **i < 0 || **i >= n as i64) {
        Some(i) => {
            Err(Error::arg("Indices", format!("indices of 0 or more and below {n}, the size of the axis"))
                .actual_index(*i))
        }
        None => Ok(indices),
    }
}

impl Picks {
    /// Calls `f(batch's indices as offsets, place in x, place in y)` for each batch and outer position.
    fn each(&self, indices: &[i64], f: impl Fn(&[usize], usize, usize) + Sync) {
        let (picks, outer) = (self.picks, self.outer);
        let elements = self.batch * outer * picks * self.inner;
        let offsets = Scratch::each(indices.len(), |k| indices[k] as usize * self.inner);
        let offsets = &offsets[..];
        let call =
            |i: usize| f(&offsets[i / outer * picks..][..picks], i * self.n * self.inner, i * picks * self.inner);
        // Few positions: the rows of each are shared out instead.
        let count = self.batch * outer;
        if count < 8 { (0..count).for_each(call) } else { share(count, elements, call) }
    }

    /// Picks slices. An index that lies outside is an error on the host; a GPU gives NaN, since looking for one would make
    /// the host wait.
    fn pick(&self, x: &Data, indices: &Data, y: &Data) -> Result<()> {
        match y.place() {
            Place::Gpu(_) => embed::gather(self, indices, x, y, Absent::Nan),
            Place::Host => {
                let indices = checked(indices.as_slice(), self.n)?;
                with_real!(y.dtype(), T => self.pick_on_host(x.as_slice::<T>(), indices, y.as_mut_slice()));
                Ok(())
            }
        }
    }

    /// Adds the picked slices where they came from. On a GPU those whose index lies outside are left out.
    fn put_back(&self, y: &Data, indices: &Data, x: &Data, output: Output) -> Result<()> {
        match x.place() {
            Place::Gpu(_) => embed::scatter(self, indices, y, x, output),
            Place::Host => {
                let indices = checked(indices.as_slice(), self.n)?;
                with_real!(x.dtype(), T => self.put_back_on_host(y.as_slice::<T>(), indices, x.as_mut_slice(), output));
                Ok(())
            }
        }
    }

    fn pick_on_host<T: SimdReal>(&self, x: &[T], indices: &[i64], y: &mut [T]) {
        let (rows, n) = (self.picks * self.inner, self.n * self.inner);
        let shared = Shared(y.as_mut_ptr());
        let shared = &shared;
        self.each(indices, move |at, from, to| {
            // SAFETY: this position's own part of y.
            let y = unsafe { std::slice::from_raw_parts_mut(shared.0.add(to), rows) };
            rows::gather(&x[from..from + n], at, self.inner, y, Output::Write);
        });
    }

    fn put_back_on_host<T: SimdReal>(&self, y: &[T], indices: &[i64], x: &mut [T], output: Output) {
        if output == Output::Write {
            x.fill(T::ZERO);
        }
        let (rows, n) = (self.picks * self.inner, self.n * self.inner);
        let shared = Shared(x.as_mut_ptr());
        let shared = &shared;
        self.each(indices, move |at, from, to| {
            // SAFETY: this position's own part of x.
            let x = unsafe { std::slice::from_raw_parts_mut(shared.0.add(from), n) };
            rows::scatter(&y[to..to + rows], at, self.inner, x, Output::Accumulate);
        });
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
