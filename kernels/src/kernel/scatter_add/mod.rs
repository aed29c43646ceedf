//! Elements of one array added to another at the places that indices name along an axis; and the reverse.

mod cpu;

use super::gather::{Picks, outside};
use super::ops;
use crate::array::{Data, Output, Place, Strided};
use crate::call::{Call, GradMut, Gradients, Needs, Run, View, ViewMut};
use crate::error::{Error, Result};
use crate::kernel::gather::cuda::indices as device_indices;
use crate::kernel::gather::cuda::{self as gather, OutOfRange};
use crate::kernel::moves::Moves;
use crate::shape::Shape;
use crate::simd::SimdReal;
use crate::with_real;
use cpu::ScatterLines;
use ndarray::{ArrayViewD, ArrayViewMutD, Axis, AxisDescription, Slice, Zip};

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
        let (axis, n) = (self.axis, self.x0[self.axis]);
        let bad = match indices.strides() {
            None => outside(indices.data.as_slice(), n),
            Some(_) => indices.view().iter().copied().find(|i| !(0..n as i64).contains(i)),
        };
        let Some(i) = bad else { return Ok(indices.view()) };
        let expected = format!("indices of 0 or more and below {n}, the size of axis {axis}");
        Err(Error::arg("indices", expected).actual_index(i).function("scatter_add")) // in its derivative too
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

    fn pick_on_gpu(&self, x0: &Data, indices: &Data, y: &Data, output: Output) -> Result<()> {
        let (p, at) = self.places_on_gpu(indices)?;
        if self.indices == self.x1 && output == Output::Write {
            return gather::gather(&p, &at, x0, y, OutOfRange::Zero);
        }
        let picked = Data::new_at(y.place(), y.dtype(), at.len())?;
        gather::gather(&p, &at, x0, &picked, OutOfRange::Zero)?;
        if output == Output::Write {
            ops::fill(y, 0.0)?;
        }
        ops::moves(self.part(), y, &picked, output)
    }

    /// Writes or adds what x1 is added to; zero where there is no index.
    fn pick(&self, x0: &View, indices: &View, y: &mut GradMut) -> Result<()> {
        let output = y.output;
        if let Place::Gpu(_) = y.data.place() {
            return self.pick_on_gpu(&x0.data, &indices.data, &y.data, output);
        }
        let (checked, is_dense) = (self.checked(indices)?, x0.strides().is_none() && indices.strides().is_none());
        let lines = ScatterLines::of(self).filter(|_| is_dense);
        with_real!(y.data.dtype(), T => match lines {
            Some(lines) => lines.pick::<T>(x0.data.as_slice(), indices.data.as_slice(), y.slice(), output),
            None => self.pick_by_lanes::<T>(x0.view(), checked, y.view(), output),
        });
        Ok(())
    }

    fn pick_by_lanes<T: SimdReal>(
        &self,
        x0: ArrayViewD<T>,
        indices: ArrayViewD<i64>,
        mut y: ArrayViewMutD<T>,
        output: Output,
    ) {
        let axis = Axis(self.axis);
        if output == Output::Write {
            y.fill(T::ZERO);
        }
        let mut y = y.slice_each_axis_mut(|a| self.with_indices(a));
        let x0 = x0.slice_each_axis(|a| self.in_reach(a));
        Zip::from(y.lanes_mut(axis)).and(x0.lanes(axis)).and(indices.lanes(axis)).for_each(|y, x0, indices| {
            indices.iter().zip(y).for_each(|(&i, y)| *y += x0[i as usize]);
        });
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
        if let Some(lines) = ScatterLines::of(&self.0).filter(|_| x.iter().all(|x| x.strides().is_none())) {
            let indices = x[1].data.as_slice();
            with_real!(run.dtype, T => lines.add::<T>(x[0].slice(), indices, x[2].slice(), y[0].slice()));
            return Ok(());
        }
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

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 0b10, y: 0 })
    }

    fn grad_over(&self, i: usize) -> Option<usize> {
        (i == 0).then_some(0)
    }

    fn backward(&self, _run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let gy = match (&gy[0], &gx[0]) {
            (Some(gy), _) => gy.data.clone(),
            (None, Some(gx0)) if gx0.over => gx0.data.clone(),
            _ => return Ok(()),
        };
        if let (Some(indices), Some(gx1)) = (&x[1], &mut gx[2]) {
            self.0.pick(&View::new(&self.0.x0, gy.clone()), indices, gx1)?;
        }
        match &gx[0] {
            Some(gx0) if !gx0.over => ops::put(&gx0.data, &gy, gx0.output),
            _ => Ok(()),
        }
    }

    fn takes_strides(&self, _i: usize, x: &Strided, place: Place) -> bool {
        place == Place::Host && x.reads_well()
    }
}

/// Reads what would be added to; zero where there is no index.
pub struct ScatterPick(pub Scatter);

impl Call for ScatterPick {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let mut to = GradMut { shape: y[0].shape, data: y[0].data.clone(), output: Output::Write, over: false };
        self.0.pick(&x[0], &x[1], &mut to)
    }

    fn takes_strides(&self, _i: usize, x: &Strided, place: Place) -> bool {
        place == Place::Host && x.reads_well()
    }
}
