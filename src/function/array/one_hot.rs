//! `one_hot`: ones at given places, zeros elsewhere.

use super::List;
use crate::function;
use crate::function::{Function, Grad, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::array::Place;
use nnrs_kernels::cuda;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

function! {
    /// One-hot vectors, or arrays of more axes: 1 at the place that the last axis of x names, 0 elsewhere. Places may count from the end;
    /// a place out of range leaves zeros.
    OneHot one_hot in Array, any_device
    inputs { x [index]: "Places, of shape (.., M); M is the length of `shape`." }
    args { shape: List, "Shape of each one-hot array." }
    outputs { output: "Array of x's shape without its last axis, then `shape`." }
}

impl OneHot {
    /// Offset of a place in one array.
    fn offset(&self, place: &[i64]) -> Option<usize> {
        place.iter().zip(self.shape.iter()).try_fold(0, |offset, (&i, &n)| {
            let i = if i < 0 { i.checked_add(n)? } else { i };
            (0..n).contains(&i).then(|| offset * n as usize + i as usize)
        })
    }
}

impl Function for OneHot {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        if let Some(d) = self.shape.iter().find(|d| **d < 0) {
            return Err(Error::arg("shape", "sizes of 0 or more").actual(d));
        }
        let Some((m, lead)) = x[0].split_last().filter(|(m, _)| **m == self.shape.len()) else {
            let expected = format!("a last axis of size {}, the number of axes of `shape`", self.shape.len());
            return Err(Error::shape("x", expected).actual(&x[0]));
        };
        if *m == 0 {
            return Err(Error::arg("shape", "one size at least").actual("()"));
        }
        Ok(smallvec![lead.iter().copied().chain(self.shape.iter().map(|&d| d as usize)).collect()])
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            let shape: Shape = self.shape.iter().map(|&d| d as usize).collect();
            return cuda::places::one_hot(&x[0].data, &shape, &y[0].data);
        }
        let size: usize = self.shape.iter().map(|&d| d as usize).product();
        let places = x[0].slice::<i64>().chunks(self.shape.len().max(1));
        with_real!(run.dtype, T => {
            let y = y[0].slice::<T>();
            y.fill(0.0);
            for (r, offset) in places.enumerate().filter_map(|(r, p)| Some((r, self.offset(p)?))) {
                y[r * size + offset] = 1.0;
            }
        });
        Ok(())
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None])
    }
}
