//! `gather_nd` and `scatter_nd`: elements or slices read from, or written to, places given by coordinates. Each is the other's derivative.

use super::List;
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::array::{Data, NdArray, Place};
use nnrs_kernels::cpu::rows;
use nnrs_kernels::cpu::scratch::{Scratch, counted};
use nnrs_kernels::cuda::embed::{self, Absent};
use nnrs_kernels::cuda::places;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::gather::Picks;
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

function! {
    /// Elements or slices at coordinates: `y[i] = data[indices[0, i], indices[1, i], ..]`. Coordinates may count from the end.
    GatherNd gather_nd in Array, any_device
    inputs { data: "N-D array.", indices [index]: "Coordinates, of shape (M, ..): M of them for each place, for the first M axes of data." }
    args { }
    outputs { y: "indices.shape[1:] + data.shape[M:]." }
}

function! {
    /// Writes elements or slices to coordinates: `y[indices[0, i], indices[1, i], ..] = data[i]`, elsewhere y is `out`, or 0.
    /// Coordinates may count from the end. Of several values for one place the last one stays, or they are added up.
    ScatterNd scatter_nd in Array, any_device
    inputs {
        data: "indices.shape[1:] + shape[M:].",
        indices [index]: "Coordinates, of shape (M, ..).",
        out [optional]: "What the result is elsewhere, zeros by default. If no function has made it, it becomes the result."
    }
    args {
        shape: Option<List> = None, "Shape of the result; None: of `out`.";
        add: bool = false, "Whether values are added to what is there."
    }
    outputs { y: "N-D array of the given shape." }
}

/// Checks the coordinates' shape; gives the shape of the slices for an array of shape `x`.
fn slices(x: &Shape, indices: &Shape) -> Result<Shape> {
    if indices.ndim() < 2 || indices[0] > x.ndim() {
        let expected = format!("2 axes at least, the first one of size {} at most, the axes of {x}", x.ndim());
        return Err(Error::shape("indices", expected).actual(indices));
    }
    Ok(indices[1..].iter().chain(&x[indices[0]..]).copied().collect())
}

/// Offsets of the places in an array of shape `x`.
fn offsets(x: &Shape, indices: &View) -> Result<Scratch<usize>> {
    let (m, strides, values) = (indices.shape[0], x.strides(), indices.slice::<i64>());
    let places = indices.shape.size_from(1);
    let offset = |p: usize| {
        (0..m).try_fold(0, |offset, a| {
            let (i, n) = (values[a * places + p], x[a] as i64);
            let at = if i < 0 { i.saturating_add(n) } else { i };
            let fail =
                || Error::arg("indices", format!("coordinates between {} and {} for axis {a}", -n, n - 1)).actual(i);
            if (0..n).contains(&at) { Ok(offset + at as usize * strides[a]) } else { Err(fail()) }
        })
    };
    let mut offsets = Scratch::filled(places, 0);
    for (p, to) in offsets.iter_mut().enumerate() {
        *to = offset(p)?;
    }
    Ok(offsets)
}

/// Rows of an array of shape `x` at coordinates: how many elements they have, how they are picked, and their numbers on a
/// GPU. There a row at coordinates that lie outside is NaN when it is read, and left out when it is written: looking for one
/// would make the host wait.
fn rows_on_gpu(x: &Shape, indices: &View) -> Result<(usize, Picks, Data)> {
    let m = indices.shape[0];
    let (n, count) = (x.size_from(m), indices.shape.size_from(1));
    Ok((n, Picks::rows(x.size_to(m), n, count), places::nd(&indices.data, m, count, x)?))
}

impl GatherNd {
    fn back_on_gpu(indices: &View, gy: &View, gx: &GradMut) -> Result<()> {
        let (_, p, at) = rows_on_gpu(gx.shape, indices)?;
        embed::scatter(&p, &at, &gy.data, &gx.data, gx.output)
    }
}

impl Function for GatherNd {
    fn refuses_gradient(&self, _i: usize) -> bool {
        false
    }

    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        Ok(smallvec![slices(&x[0], &x[1])?])
    }

    fn scratch(&self, x: &[&Shape], _y: &[&Shape], _dtype: DType) -> [usize; 2] {
        [counted(x[1].size_from(1) * size_of::<usize>()); 2]
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            let (_, p, at) = rows_on_gpu(x[0].shape, &x[1])?;
            return embed::gather(&p, &at, &x[0].data, &y[0].data, Absent::Nan);
        }
        let (at, n) = (offsets(x[0].shape, &x[1])?, x[0].shape.size_from(x[1].shape[0]));
        with_real!(run.dtype, T => rows::gather(x[0].slice::<T>(), &at, n, y[0].slice(), Output::Write));
        Ok(())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 2, y: 0 })
    }

    fn backward(
        &self,
        run: &Run,
        x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(indices), Some(gy), Some(gx)) = (&x[1], &gy[0], &mut gx[0]) else { return Ok(()) };
        if let Place::Gpu(_) = gx.data.place() {
            return GatherNd::back_on_gpu(indices, gy, gx);
        }
        let (at, n, output) = (offsets(gx.shape, indices)?, gx.shape.size_from(indices.shape[0]), gx.output);
        with_real!(run.dtype, T => {
            let gx = gx.slice::<T>();
            if output == Output::Write {
                gx.fill(0.0);
            }
            rows::scatter(gy.slice(), &at, n, gx, Output::Accumulate);
        });
        Ok(())
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let shape = Some(g.x[0].shape()[..].into());
        Ok(vec![Some(scatter_nd(&g.gy[0], &g.x[1], None, ScatterNd { shape, add: true })?), None])
    }
}

impl ScatterNd {
    fn output(&self, out: Option<&Shape>) -> Result<Shape> {
        let Some(given) = &self.shape else {
            return out.cloned().ok_or_else(|| Error::arg("shape", "a shape, or an array `out`").actual("neither"));
        };
        if let Some(d) = given.iter().find(|d| **d < 0) {
            return Err(Error::arg("shape", "sizes of 0 or more").actual(d));
        }
        let y: Shape = given.iter().map(|&d| d as usize).collect();
        match out.filter(|o| **o != y) {
            Some(o) => Err(Error::shape("out", format!("shape {y}")).actual(o)),
            None => Ok(y),
        }
    }
}

impl ScatterNd {
    fn on_gpus(&self, x: &[View], y: &ViewMut) -> Result<()> {
        super::begin(&y.data, x.get(2))?;
        let (n, p, at) = rows_on_gpu(y.shape, &x[1])?;
        match self.add {
            true => embed::scatter(&p, &at, &x[0].data, &y.data, Output::Accumulate),
            false => embed::put(&at, Some(&x[0].data), n, &y.data),
        }
    }

    fn back_on_gpu(&self, indices: &View, gy: &View, gx: &mut [Option<GradMut>]) -> Result<()> {
        let (n, p, at) = rows_on_gpu(gy.shape, indices)?;
        let scratch = |n: usize| Data::new_at(gy.data.place(), gy.dtype(), n);
        if let Some(gx) = &gx[0] {
            let picked = if gx.output == Output::Write { gx.data.clone() } else { scratch(gx.data.len())? };
            embed::gather(&p, &at, &gy.data, &picked, Absent::Zero)?;
            if gx.output == Output::Accumulate {
                ops::put(&gx.data, &picked, gx.output)?;
            }
        }
        let Some(Some(gout)) = gx.get(2) else { return Ok(()) };
        if self.add {
            return ops::put(&gout.data, &gy.data, gout.output);
        }
        let passed = if gout.output == Output::Write { gout.data.clone() } else { scratch(gy.data.len())? };
        ops::put(&passed, &gy.data, Output::Write)?;
        embed::put(&at, None, n, &passed)?;
        if gout.output == Output::Accumulate { ops::put(&gout.data, &passed, gout.output) } else { Ok(()) }
    }
}

impl Function for ScatterNd {
    fn refuses_gradient(&self, _i: usize) -> bool {
        false
    }

    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let y = self.output(x.get(2))?;
        let data = slices(&y, &x[1])?;
        if data != x[0] {
            let expected = format!("shape {data} for indices {} and a result {y}", x[1]);
            return Err(Error::shape("data", expected).actual(&x[0]));
        }
        Ok(smallvec![y])
    }

    fn scratch(&self, x: &[&Shape], y: &[&Shape], dtype: DType) -> [usize; 2] {
        let at = counted(x[1].size_from(1) * size_of::<usize>());
        let copies =
            if x.len() > 2 { counted(y[0].size() * dtype.size()) + counted(x[0].size() * dtype.size()) } else { 0 };
        [at, at + copies]
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return self.on_gpus(x, &y[0]);
        }
        let (at, n) = (offsets(y[0].shape, &x[1])?, y[0].shape.size_from(x[1].shape[0])); // before y is touched
        let output = if self.add { Output::Accumulate } else { Output::Write };
        super::begin(&y[0].data, x.get(2))?;
        with_real!(run.dtype, T => rows::scatter(x[0].slice(), &at, n, y[0].slice::<T>(), output));
        Ok(())
    }

    fn rewrites_input(&self) -> Option<usize> {
        Some(2)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 2, y: 0 })
    }

    fn backward(
        &self,
        run: &Run,
        x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(indices), Some(gy)) = (&x[1], &gy[0]) else { return Ok(()) };
        if let Place::Gpu(_) = gy.data.place() {
            return self.back_on_gpu(indices, gy, gx);
        }
        let (at, n) = (offsets(gy.shape, indices)?, gy.shape.size_from(indices.shape[0]));
        with_real!(run.dtype, T => {
            if let Some(gx) = &mut gx[0] {
                let output = gx.output;
                rows::gather(gy.slice::<T>(), &at, n, gx.slice(), output);
            }
            if let Some(Some(gout)) = gx.get_mut(2) {
                let mut passed = Scratch::of(gy.slice::<T>());
                if !self.add {
                    let zeros = Scratch::filled(at.len() * n, 0.0);
                    rows::scatter(&zeros, &at, n, &mut passed, Output::Write);
                }
                match gout.output {
                    Output::Write => gout.slice::<T>().copy_from_slice(&passed),
                    Output::Accumulate => nnrs_kernels::cpu::simd::add_assign(gout.slice::<T>(), &passed),
                }
            }
        });
        Ok(())
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (gy, indices) = (&g.gy[0], &g.x[1]);
        let data = if g.want[0] { Some(gather_nd(gy, indices)?) } else { None };
        let mut grads = vec![data, None];
        if g.x.len() > 2 {
            let zeros = || Variable::from_array(NdArray::new(g.x[0].shape())).with_need_grad(false);
            // Of a copy: a leaf would be written.
            let without = || scatter_nd(&zeros(), indices, Some(&f::identity(gy)?), ScatterNd::default());
            grads.push(Some(if self.add { gy.clone() } else { without()? }));
        }
        Ok(grads)
    }
}
