//! Elements of one array added to another at the places that indices name along an axis; and the reverse.

use super::gather::Picks;
use super::ops;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Run, View, ViewMut};
use crate::error::{Error, Result};
use crate::kernel::gather::cuda::indices as device_indices;
use crate::kernel::gather::cuda::{self as gather, OutOfRange};
use crate::kernel::moves::Moves;
use crate::shape::Shape;
use crate::with_real;

/// Shapes of the array that is added to, of the indices, and of what is added; the indices are along `axis`.
pub struct Scatter {
    pub axis: usize,
    pub x0: Shape,
    pub indices: Shape,
    pub x1: Shape,
}

impl Scatter {
    /// Calls `f(offset in x0, offset in x1)` for each element of `indices`.
    fn each(&self, indices: &View, mut f: impl FnMut(usize, usize)) -> Result<()> {
        let (axis, x0) = (self.axis, &self.x0);
        let (s0, s, s1) = (x0.strides(), self.indices.strides(), self.x1.strides());
        for (k, &i) in indices.slice::<i64>().iter().enumerate() {
            if i < 0 || i >= x0[axis] as i64 {
                let expected = format!("indices of 0 or more and below {}, the size of axis {axis}", x0[axis]);
                return Err(Error::arg("indices", expected).actual(i).function("scatter_add")); // in its derivative too
            }
            let at = |a: usize| k / s[a] % self.indices[a];
            let to = (0..x0.ndim()).map(|a| if a == axis { i as usize } else { at(a) } * s0[a]).sum();
            f(to, (0..x0.ndim()).map(|a| at(a) * s1[a]).sum());
        }
        Ok(())
    }

    /// The offsets in x0 on a GPU; an index that lies outside adds nothing there, since looking for one would make the
    /// host wait.
    fn places_on_gpu(&self, indices: &Data) -> Result<(Picks, Data)> {
        let at = device_indices::along(indices, &self.indices, &self.x0.strides(), self.axis, self.x0[self.axis])?;
        Ok((Picks::rows(self.x0.size(), 1, at.len()), at))
    }

    /// The elements of x1 that have an index, from an array of the indices' shape.
    fn part(&self) -> Moves {
        let strides = self.x1.strides().into_iter().zip(self.indices.strides());
        let axes = self.indices.iter().zip(strides);
        axes.fold(Moves::new(0, 0), |m, (&n, (to, from))| m.axis(n, to as isize, from as isize))
    }

    fn add_on_gpu(&self, x: &[View], y: &Data) -> Result<()> {
        ops::put(y, &x[0].data, Output::Write)?;
        let (p, at) = self.places_on_gpu(&x[1].data)?;
        if self.indices == self.x1 {
            return gather::scatter(&p, &at, &x[2].data, y, Output::Accumulate);
        }
        let added = Data::new_at(y.place(), x[2].dtype(), at.len())?;
        ops::moves(self.part().reversed(), &added, &x[2].data, Output::Write)?;
        gather::scatter(&p, &at, &added, y, Output::Accumulate)
    }

    fn pick_on_gpu(&self, x: &[View], y: &Data) -> Result<()> {
        let (p, at) = self.places_on_gpu(&x[1].data)?;
        if self.indices == self.x1 {
            return gather::gather(&p, &at, &x[0].data, y, OutOfRange::Zero);
        }
        let picked = Data::new_at(y.place(), y.dtype(), at.len())?;
        gather::gather(&p, &at, &x[0].data, &picked, OutOfRange::Zero)?;
        ops::fill(y, 0.0)?;
        ops::moves(self.part(), y, &picked, Output::Write)
    }
}

/// Adds elements.
pub struct ScatterAdd(pub Scatter);

impl Call for ScatterAdd {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return self.0.add_on_gpu(x, &y[0].data);
        }
        with_real!(run.dtype, T => {
            let (y, added) = (y[0].slice::<T>(), x[2].slice::<T>());
            y.copy_from_slice(x[0].slice());
            self.0.each(&x[1], |to, from| y[to] += added[from])
        })
    }
}

/// Reads what would be added to; zero where there is no index.
pub struct ScatterPick(pub Scatter);

impl Call for ScatterPick {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return self.0.pick_on_gpu(x, &y[0].data);
        }
        with_real!(run.dtype, T => {
            let (y, x0) = (y[0].slice::<T>(), x[0].slice::<T>());
            y.fill(0.0);
            self.0.each(&x[1], |from, to| y[to] = x0[from])
        })
    }
}
