//! The order of axes reversed.

use super::ops;
use crate::array::{AxisMap, Place, Strided};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::kernel::moves::Moves;
use crate::shape::Shape;

/// The elements in reverse along axes; its own way back.
pub struct Flip {
    /// The last axis.
    pub last: usize,
    axes: AxisMap,
    moves: Moves,
}

impl Flip {
    /// Reverses `axes` of arrays of shape `x`, which has one axis at least.
    pub fn new(x: &Shape, axes: &[usize]) -> Flip {
        let flips = |a: &usize| axes.contains(a);
        let start = AxisMap::new((0..x.ndim()).map(|a| if flips(&a) { x[a].saturating_sub(1) } else { 0 }));
        let axis = |m: AxisMap, a: usize| m.along(x[a], a, if flips(&a) { -1 } else { 1 });
        let axes = (0..x.ndim()).fold(start, axis);
        let moves = Moves::gather(&axes.of(&Strided::dense(x)));
        Flip { last: x.ndim() - 1, axes, moves }
    }
}

impl Call for Flip {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        ops::pick(&self.axes, &self.moves, &x[0], &y[0].data)
    }

    fn axes(&self, _i: usize) -> Option<AxisMap> {
        Some(self.axes.clone())
    }

    fn takes_strides(&self, _i: usize, _x: &Strided, _place: Place) -> bool {
        true
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        ops::moves(self.moves.clone(), &gx.data, &gy.data, gx.output)
    }
}
