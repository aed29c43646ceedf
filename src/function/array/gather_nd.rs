//! `gather_nd` and `scatter_nd`: elements or slices read from, or written to, places given by coordinates. Each is the other's derivative.

use super::List;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::array::NdArray;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::gather_nd::{self as kernel, Slices};
use nnrs_kernels::shape::Shape;

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
        out [optional]: "What the result is elsewhere, of its shape; zeros by default. If no function has made it, it becomes the result."
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

impl Function for GatherNd {
    fn refuses_gradient(&self, _i: usize) -> bool {
        false
    }

    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let y = slices(&x[0], &x[1])?;
        Ok(Resolved::one(y, kernel::GatherNd(Slices::new(&x[0], &x[1]))))
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

impl Function for ScatterNd {
    fn refuses_gradient(&self, _i: usize) -> bool {
        false
    }

    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let y = self.output(x.get(2))?;
        let data = slices(&y, &x[1])?;
        if data != x[0] {
            let expected = format!("shape {data} for indices {} and a result {y}", x[1]);
            return Err(Error::shape("data", expected).actual(&x[0]));
        }
        let slices = Slices::new(&y, &x[1]);
        Ok(Resolved::one(y, kernel::ScatterNd { slices, add: self.add, has_out: x.len() > 2 }))
    }

    fn rewrites_input(&self) -> Option<usize> {
        Some(2)
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
