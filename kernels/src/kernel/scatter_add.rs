//! Elements of one array added to another at the places that indices name along an axis; and the reverse.

use super::gather::Picks;
use super::ops;
use crate::array::{Data, Output, Place, Strided};
use crate::call::{Call, Run, View, ViewMut};
use crate::error::{Error, Result};
use crate::kernel::gather::cuda::indices as device_indices;
use crate::kernel::gather::cuda::{self as gather, OutOfRange};
use crate::kernel::moves::Moves;
use crate::shape::Shape;
use crate::with_real;
use ndarray::{ArrayViewD, Axis, AxisDescription, Slice, Zip};

/// Shapes of the array that is added to, of the indices, and of what is added; the indices are along `axis`.
pub struct Scatter {
    pub axis: usize,
    pub x0: Shape,
    pub indices: Shape,
    pub x1: Shape,
}

impl Scatter {
    /// The indices, all of them places along the axis.
    fn checked<'a>(&self, indices: &'a View) -> Result<ArrayViewD<'a, i64>> {
        let (indices, axis, n) = (indices.view(), self.axis, self.x0[self.axis]);
        let Some(i) = indices.iter().find(|i| !(0..n as i64).contains(i)) else { return Ok(indices) };
        let expected = format!("indices of 0 or more and below {n}, the size of axis {axis}");
        Err(Error::arg("indices", expected).actual(i).function("scatter_add")) // in its derivative too
    }

    /// What of an axis of x1 has indices.
    fn with_indices(&self, a: AxisDescription) -> Slice {
        Slice::from(..self.indices[a.axis.index()])
    }

    /// What of an axis of x0 indices may name.
    fn in_reach(&self, a: AxisDescription) -> Slice {
        if a.axis == Axis(self.axis) { Slice::from(..) } else { self.with_indices(a) }
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
        let (indices, axis) = (self.0.checked(&x[1])?, Axis(self.0.axis));
        with_real!(run.dtype, T => {
            let (mut y, x1) = (y[0].view::<T>(), x[2].view::<T>());
            y.assign(&x[0].view());
            let mut y = y.slice_each_axis_mut(|a| self.0.in_reach(a));
            let x1 = x1.slice_each_axis(|a| self.0.with_indices(a));
            Zip::from(y.lanes_mut(axis)).and(x1.lanes(axis)).and(indices.lanes(axis)).for_each(|mut y, x1, indices| {
                indices.iter().zip(x1).for_each(|(&i, x1)| y[i as usize] += x1);
            });
        });
        Ok(())
    }

    fn grad_over(&self, i: usize) -> Option<usize> {
        (i == 0).then_some(0)
    }

    fn takes_strides(&self, _i: usize, x: &Strided, place: Place) -> bool {
        place == Place::Host && x.reads_well()
    }
}

/// Reads what would be added to; zero where there is no index.
pub struct ScatterPick(pub Scatter);

impl Call for ScatterPick {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            return self.0.pick_on_gpu(x, &y[0].data);
        }
        let (indices, axis) = (self.0.checked(&x[1])?, Axis(self.0.axis));
        with_real!(run.dtype, T => {
            let (mut y, x0) = (y[0].view::<T>(), x[0].view::<T>());
            y.fill(0.0);
            let mut y = y.slice_each_axis_mut(|a| self.0.with_indices(a));
            let x0 = x0.slice_each_axis(|a| self.0.in_reach(a));
            Zip::from(y.lanes_mut(axis)).and(x0.lanes(axis)).and(indices.lanes(axis)).for_each(|y, x0, indices| {
                indices.iter().zip(y).for_each(|(&i, y)| *y = x0[i as usize]);
            });
        });
        Ok(())
    }

    fn takes_strides(&self, _i: usize, x: &Strided, place: Place) -> bool {
        place == Place::Host && x.reads_well()
    }
}
