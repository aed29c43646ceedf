//! `scatter_add`: elements of one array added to another at the places that indices name along an axis; and the reverse.

use super::List;
use crate::function;
use crate::function::{Function, Grad, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::array::{Data, Place};
use nnrs_kernels::cpu::moves::Moves;
use nnrs_kernels::cuda::embed::{self, Absent};
use nnrs_kernels::cuda::places;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::gather::Picks;
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

function! {
    /// Adds elements along an axis: `y = x0`, then `y[.., indices[.., i, ..], ..] += x1[.., i, ..]` for all elements of `indices`.
    ScatterAdd scatter_add in Array, any_device
    inputs {
        x0: "N-D array that is added to.",
        indices [index]: "Places along the axis, 0 or more; not larger than x1, nor than x0 along the other axes.",
        x1: "N-D array of what is added."
    }
    args { axis: Option<i64> = None, "The axis; None: 0. It may count from the end." }
    outputs { y: "N-D array of x0's shape." }
}

/// Calls `f(offset in x0, offset in x1)` for each element of `indices`.
fn each(x0: &Shape, indices: &View, x1: &Shape, axis: usize, mut f: impl FnMut(usize, usize)) -> Result<()> {
    let (s0, s, s1) = (x0.strides(), indices.shape.strides(), x1.strides());
    for (k, &i) in indices.slice::<i64>().iter().enumerate() {
        if i < 0 || i >= x0[axis] as i64 {
            let expected = format!("indices of 0 or more and below {}, the size of axis {axis}", x0[axis]);
            return Err(Error::arg("indices", expected).actual(i));
        }
        let at = |a: usize| k / s[a] % indices.shape[a];
        let to = (0..x0.ndim()).map(|a| if a == axis { i as usize } else { at(a) } * s0[a]).sum();
        f(to, (0..x0.ndim()).map(|a| at(a) * s1[a]).sum());
    }
    Ok(())
}

/// The offsets in x0 on a GPU; an index that lies outside adds nothing there, since looking for one would make the host wait.
fn places_on_gpu(x0: &Shape, indices: &View, axis: usize) -> Result<(Picks, Data)> {
    let at = places::along(&indices.data, indices.shape, &x0.strides(), axis, x0[axis])?;
    Ok((Picks::rows(x0.size(), 1, at.len()), at))
}

/// The elements of an array of shape `whole` that have an index.
fn part(whole: &Shape, indices: &Shape) -> (Moves, Moves) {
    let axes = || indices.iter().zip(whole.strides().into_iter().zip(indices.strides()));
    let to = axes().fold(Moves::new(0, 0), |m, (&n, (w, p))| m.axis(n, w as isize, p as isize));
    let from = axes().fold(Moves::new(0, 0), |m, (&n, (w, p))| m.axis(n, p as isize, w as isize));
    (to, from)
}

fn add_on_gpu(x: &[View], y: &ViewMut, axis: usize) -> Result<()> {
    ops::put(&y.data, &x[0].data, Output::Write)?;
    let (p, at) = places_on_gpu(y.shape, &x[1], axis)?;
    if x[1].shape == x[2].shape {
        return embed::scatter(&p, &at, &x[2].data, &y.data, Output::Accumulate);
    }
    let added = Data::new_at(y.data.place(), x[2].dtype(), at.len())?;
    ops::moves(part(x[2].shape, x[1].shape).1, &added, &x[2].data, Output::Write)?;
    embed::scatter(&p, &at, &added, &y.data, Output::Accumulate)
}

fn pick_on_gpu(x: &[View], y: &ViewMut, axis: usize) -> Result<()> {
    let (p, at) = places_on_gpu(x[0].shape, &x[1], axis)?;
    if x[1].shape == y.shape {
        return embed::gather(&p, &at, &x[0].data, &y.data, Absent::Zero);
    }
    let picked = Data::new_at(y.data.place(), y.data.dtype(), at.len())?;
    embed::gather(&p, &at, &x[0].data, &picked, Absent::Zero)?;
    ops::fill(&y.data, 0.0)?;
    ops::moves(part(y.shape, x[1].shape).0, &y.data, &picked, Output::Write)
}

fn check(x0: &Shape, indices: &Shape, x1: &Shape, axis: usize) -> Result<()> {
    let fits = |a: usize| indices[a] <= x1[a] && (a == axis || indices[a] <= x0[a]);
    if indices.ndim() == x0.ndim() && x1.ndim() == x0.ndim() && (0..x0.ndim()).all(fits) {
        return Ok(());
    }
    let expected =
        format!("the axes of x0 {x0} and of x1 {x1}, no size larger than theirs (but than x0's along axis {axis})");
    Err(Error::shape("indices", expected).actual(indices))
}

impl Function for ScatterAdd {
    fn refuses_gradient(&self, _i: usize) -> bool {
        false
    }

    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        check(&x[0], &x[1], &x[2], x[0].axis(self.axis.unwrap_or(0), "axis")?)?;
        Ok(smallvec![x[0].clone()])
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let axis = x[0].shape.axis(self.axis.unwrap_or(0), "axis")?;
        if let Place::Gpu(_) = y[0].data.place() {
            return add_on_gpu(x, &y[0], axis);
        }
        with_real!(run.dtype, T => {
            let (y, added) = (y[0].slice::<T>(), x[2].slice::<T>());
            y.copy_from_slice(x[0].slice());
            each(x[0].shape, &x[1], x[2].shape, axis, |to, from| y[to] += added[from])
        })
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let pick = ScatterPick { shape: g.x[2].shape()[..].into(), axis: self.axis };
        let picked = if g.want[2] { Some(scatter_pick(&g.gy[0], &g.x[1], pick)?) } else { None };
        Ok(vec![Some(g.gy[0].clone()), None, picked])
    }
}

function! {
    /// Reads what `scatter_add` would add to: its derivative with respect to x1. Zero where there is no index.
    ScatterPick scatter_pick in Special, any_device
    inputs { x: "N-D array.", indices [index]: "As of `scatter_add`." }
    args {
        shape: List, "Shape of the result.";
        axis: Option<i64> = None, "As of `scatter_add`."
    }
    outputs { y: "N-D array of the given shape." }
}

impl Function for ScatterPick {
    fn refuses_gradient(&self, _i: usize) -> bool {
        false
    }

    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let y: Shape = self.shape.iter().map(|&d| d.max(0) as usize).collect();
        check(&x[0], &x[1], &y, x[0].axis(self.axis.unwrap_or(0), "axis")?)?;
        Ok(smallvec![y])
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let axis = x[0].shape.axis(self.axis.unwrap_or(0), "axis")?;
        if let Place::Gpu(_) = y[0].data.place() {
            return pick_on_gpu(x, &y[0], axis);
        }
        let shape = y[0].shape.clone();
        with_real!(run.dtype, T => {
            let (y, x0) = (y[0].slice::<T>(), x[0].slice::<T>());
            y.fill(0.0);
            each(x[0].shape, &x[1], &shape, axis, |from, to| y[to] = x0[from])
        })
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let zeros = Variable::from_array(crate::NdArray::new(g.x[0].shape())).with_need_grad(false);
        let gx = scatter_add(&zeros, &g.x[1], &g.gy[0], ScatterAdd { axis: self.axis })?;
        Ok(vec![Some(gx), None])
    }
}
