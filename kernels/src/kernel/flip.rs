//! The order of axes reversed.

use super::ops;
use crate::array::Output;
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::cpu::moves::Moves;
use crate::error::Result;
use crate::shape::Shape;

/// The elements in reverse along axes; its own way back.
pub struct Flip {
    /// The last axis.
    pub last: usize,
    moves: Moves,
}

impl Flip {
    /// Reverses `axes` of arrays of shape `x`, which has one axis at least.
    pub fn new(x: &Shape, axes: &[usize]) -> Flip {
        let strides = x.strides();
        let flipped = |a: &usize| axes.contains(a) && x[*a] > 0;
        let first = (0..x.ndim()).filter(flipped).map(|a| (x[a] - 1) * strides[a]).sum();
        let axis = |m: Moves, a: usize| {
            let s = strides[a] as isize;
            m.axis(x[a], s, if axes.contains(&a) { -s } else { s })
        };
        Flip { last: x.ndim() - 1, moves: (0..x.ndim()).fold(Moves::new(0, first), axis) }
    }
}

impl Call for Flip {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        ops::moves(self.moves.clone(), &y[0].data, &x[0].data, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        ops::moves(self.moves.clone(), &gx.data, &gy.data, gx.output)
    }
}
