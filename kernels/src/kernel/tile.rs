//! An array repeated along its axes.

use super::ops;
use crate::array::Output;
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::kernel::moves::Moves;
use crate::shape::Shape;

/// Repeats each axis as a whole.
pub struct Tile {
    /// The result's shape with an axis for the repetitions before each axis of x.
    pub pairs: Shape,
    moves: Moves,
}

impl Tile {
    /// For each axis of the result, which has shape `y`, how often it repeats, and x's size there.
    pub fn new(axes: &[(usize, usize)], y: &Shape) -> Tile {
        let x: Shape = axes.iter().map(|a| a.1).collect();
        let strides = y.strides().into_iter().zip(x.strides());
        let moves = axes.iter().zip(strides).fold(Moves::new(0, 0), |m, (&(r, n), (to, from))| {
            m.axis(r, n as isize * to as isize, 0).axis(n, to as isize, from as isize)
        });
        Tile { pairs: axes.iter().flat_map(|&(r, n)| [r, n]).collect(), moves }
    }
}

impl Call for Tile {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        ops::moves(self.moves.clone(), &y[0].data, &x[0].data, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        let repeated: Vec<bool> = (0..self.pairs.ndim()).map(|a| a % 2 == 0).collect();
        ops::sum(&View::new(&self.pairs, gy.data.clone()), &repeated, &gx.data, gx.output)
    }
}
