//! A part of an array, at equal distances along each axis; and zeros around such a part.

use super::ops;
use crate::array::{Data, Output};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::cpu::moves::Moves;
use crate::error::Result;
use crate::shape::Shape;

/// The positions taken from one axis.
#[derive(Clone, Copy)]
pub struct Range {
    pub start: usize,
    pub step: isize,
    pub n: usize,
}

/// The part of an array of shape `whole` that has the positions of `ranges`, one for each axis.
pub struct Slice {
    pub whole: Shape,
    moves: Moves,
}

impl Slice {
    pub fn new(whole: &Shape, ranges: &[Range]) -> Slice {
        let part: Shape = ranges.iter().map(|r| r.n).collect();
        let strides = whole.strides();
        let first = ranges.iter().zip(&strides).map(|(r, s)| r.start * s).sum();
        let axes = ranges.iter().zip(part.strides()).zip(strides);
        let moves = axes.fold(Moves::new(0, first), |m, ((r, to), from)| {
            m.axis(r.n, to as isize, if r.n > 1 { r.step * from as isize } else { 1 })
        });
        Slice { whole: whole.clone(), moves }
    }

    /// Zeros, or what was there before, and the part.
    fn put_back(&self, part: &Data, whole: &Data, output: Output) -> Result<()> {
        if output == Output::Write && part.len() < whole.len() {
            ops::fill(whole, 0.0)?;
        }
        ops::moves(self.moves.clone().reversed(), whole, part, output)
    }
}

impl Call for Slice {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        ops::moves(self.moves.clone(), &y[0].data, &x[0].data, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        self.put_back(&gy.data, &gx.data, gx.output)
    }
}

/// Zeros with x as a part of them.
pub struct Unslice(pub Slice);

impl Call for Unslice {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.put_back(&x[0].data, &y[0].data, Output::Write)
    }
}
