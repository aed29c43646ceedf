//! Axes in another order.

use super::ops;
use crate::array::{AxisMap, Place, Strided};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::kernel::moves::Moves;
use crate::shape::Shape;
use smallvec::SmallVec;

/// For each axis of the result the axis of x.
pub type Permutation = SmallVec<[usize; 6]>;

/// Axis i of the result is axis `order[i]` of x.
pub struct Transpose {
    pub order: Permutation,
    axes: AxisMap,
    moves: Moves,
}

impl Transpose {
    /// Of an array of shape `x`.
    pub fn new(order: Permutation, x: &Shape) -> Transpose {
        let start = AxisMap::new(x.iter().map(|_| 0));
        let axes = order.iter().fold(start, |axes, &a| axes.along(x[a], a, 1));
        let moves = Moves::gather(&axes.of(&Strided::dense(x)));
        Transpose { order, axes, moves }
    }
}

impl Call for Transpose {
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
        ops::moves(self.moves.clone().reversed(), &gx.data, &gy.data, gx.output)
    }
}
