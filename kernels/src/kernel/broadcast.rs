//! An array repeated along axes of size 1.

use super::moves::Moves;
use super::ops;
use crate::array::{AxisMap, Output, Place, Strided};
use crate::call::{Call, GradMut, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::shape::Shape;

/// From shape `x` to shape `y`.
pub struct Broadcast {
    pub x: Shape,
    pub y: Shape,
}

impl Broadcast {
    /// The gradient of x.
    fn sum(&self, gy: &View, gx: &GradMut) -> Result<()> {
        match gy.is_constant() {
            true => ops::sum_constant(&gy.data, &self.y, &gx.data, &self.x, gx.output),
            false => ops::sum_to(&gy.data, &self.y, &gx.data, &self.x, gx.output),
        }
    }
}

impl Call for Broadcast {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        match (x[0].strides(), self.axes(0)) {
            (Some(from), Some(axes)) => {
                ops::moves(Moves::gather(&axes.of(from)), &y[0].data, &x[0].data, Output::Write)
            }
            _ => ops::broadcast(&x[0].data, &self.x, &y[0].data, &self.y, Output::Write),
        }
    }

    fn axes(&self, _i: usize) -> Option<AxisMap> {
        let lead = self.y.ndim() - self.x.ndim();
        let axis = |axes: AxisMap, (i, &n): (usize, &usize)| match i.checked_sub(lead) {
            Some(a) if self.x[a] == n => axes.along(n, a, 1),
            _ => axes.repeated(n),
        };
        Some(self.y.iter().enumerate().fold(AxisMap::new(self.x.iter().map(|_| 0)), axis))
    }

    fn takes_strides(&self, _i: usize, _x: &Strided, _place: Place) -> bool {
        true
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn takes_constants(&self) -> bool {
        true
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        self.sum(gy, gx)
    }
}

/// The second input repeated to the first one's shape.
pub struct BroadcastTo(pub Broadcast);

impl Call for BroadcastTo {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        ops::broadcast(&x[1].data, &self.0.x, &y[0].data, &self.0.y, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn takes_constants(&self) -> bool {
        true
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[1]) else { return Ok(()) };
        self.0.sum(gy, gx)
    }
}
