//! Products along an axis up to each element, and the recurrence that its derivative is.

mod cpu;
mod cuda;
mod rows;

use super::axis::Axis;
use crate::array::scratch::counted;
use crate::array::{Data, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::pool;
use crate::shape::Shape;
use crate::with_real;

/// Products along an axis up to each element.
pub struct CumProd {
    at: Axis,
    /// Each element is left out of its own product.
    exclusive: bool,
    /// Products begin at the end.
    reverse: bool,
}

impl CumProd {
    /// Along `axis` of arrays of shape `x`.
    pub fn new(x: &Shape, axis: usize, exclusive: bool, reverse: bool) -> CumProd {
        CumProd { at: Axis::new(x, axis).side_by_side(), exclusive, reverse }
    }
}

impl Call for CumProd {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (x, y): (&Data, &Data) = (&x[0].data, &y[0].data);
        if let Place::Gpu(_) = y.place() {
            return cuda::cumprod(self, x, y);
        }
        with_real!(y.dtype(), T => cpu::cumprod(self, x.as_slice::<T>(), y.as_mut_slice()));
        Ok(())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 1, y: 0 })
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        let each = self.at.n.saturating_mul(rows::SIDE * dtype.size());
        [0, counted(each) * pool::num_threads().min(self.at.lines().div_ceil(rows::SIDE))]
    }

    /// On the host.
    fn backward(&self, run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(x), Some(gy), Some(gx)) = (&x[0], &gy[0], &mut gx[0]) else { return Ok(()) };
        let output = gx.output;
        with_real!(run.dtype, T => cpu::backward(self, x.slice::<T>(), gy.slice(), gx.slice(), output));
        Ok(())
    }
}

/// `y[i] = a[i] y[i - 1] + b[i]` along an axis, from `y[-1] = 0` on.
pub struct Recurrence {
    at: Axis,
    /// It begins at the end: `y[i - 1]` is the element after.
    reverse: bool,
}

impl Recurrence {
    /// Along `axis` of arrays of shape `x`.
    pub fn new(x: &Shape, axis: usize, reverse: bool) -> Recurrence {
        Recurrence { at: Axis::new(x, axis).side_by_side(), reverse }
    }
}

impl Call for Recurrence {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (a, b, y) = (&x[0].data, &x[1].data, &y[0].data);
        if let Place::Gpu(_) = y.place() {
            return cuda::recurrence(self, a, b, y);
        }
        with_real!(y.dtype(), T => cpu::recurrence(self, a.as_slice::<T>(), b.as_slice(), y.as_mut_slice()));
        Ok(())
    }
}
