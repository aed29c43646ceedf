//! A part of an array, at equal distances along each axis; and zeros around such a part.

use super::ops;
use crate::array::{AxisMap, Data, Output, Place, Strided};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::kernel::moves::Moves;
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
    axes: AxisMap,
    moves: Moves,
}

impl Slice {
    pub fn new(whole: &Shape, ranges: &[Range]) -> Slice {
        let start = AxisMap::new(ranges.iter().map(|r| r.start));
        let step = |r: &Range| if r.n > 1 { r.step } else { 1 };
        let axes = ranges.iter().enumerate().fold(start, |axes, (a, r)| axes.along(r.n, a, step(r)));
        let moves = Moves::gather(&axes.of(&Strided::dense(whole)));
        Slice { whole: whole.clone(), axes, moves }
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
