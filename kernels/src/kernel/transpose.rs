//! Axes in another order.

use super::ops;
use crate::array::Output;
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::cpu::moves::Moves;
use crate::error::Result;
use crate::shape::Shape;
use smallvec::SmallVec;

/// For each axis of the result the axis of x.
pub type Order = SmallVec<[usize; 6]>;

/// Axis i of the result is axis `order[i]` of x.
pub struct Transpose {
    pub order: Order,
    moves: Moves,
}

impl Transpose {
    /// From shape `x` to shape `y`.
    pub fn new(order: Order, x: &Shape, y: &Shape) -> Transpose {
        let (from, to) = (x.strides(), y.strides());
        let axes = order.iter().zip(to);
        let moves = axes.fold(Moves::new(0, 0), |m, (&a, to)| m.axis(x[a], to as isize, from[a] as isize));
        Transpose { order, moves }
    }
}

impl Call for Transpose {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        ops::moves(self.moves.clone(), &y[0].data, &x[0].data, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        ops::moves(self.moves.clone().reversed(), &gx.data, &gy.data, gx.output)
    }
}
