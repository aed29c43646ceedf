//! Arrays joined along an axis, and cut along one. In each block before the axis the parts lie one after another.

use super::ops;
use crate::array::Output;
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::cpu::moves::Moves;
use crate::error::Result;

/// Copies of one part to its place among a block's `total` elements, `n` elements each time.
fn place(outer: usize, total: usize, first: usize, n: usize) -> Moves {
    Moves::new(first, 0).axis(outer, total as isize, n as isize).axis(n, 1, 1)
}

/// Arrays joined along an axis.
pub struct Join {
    pub axis: usize,
    /// Number of blocks.
    pub outer: usize,
    /// Elements of each array in a block.
    pub sizes: Vec<usize>,
}

impl Join {
    /// For each array the copy to its place.
    fn places(&self) -> impl Iterator<Item = Moves> {
        let (total, mut end) = (self.sizes.iter().sum(), 0);
        self.sizes.iter().map(move |&n| {
            end += n;
            place(self.outer, total, end - n, n)
        })
    }
}

impl Call for Join {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.places().zip(x).try_for_each(|(to, x)| ops::moves(to, &y[0].data, &x.data, Output::Write))
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let Some(gy) = &gy[0] else { return Ok(()) };
        let wanted = self.places().zip(gx).filter_map(|(to, gx)| Some((to, gx.as_ref()?)));
        for (to, gx) in wanted {
            ops::moves(to.reversed(), &gx.data, &gy.data, gx.output)?;
        }
        Ok(())
    }
}

/// Pieces of an array along an axis, one for each position.
pub struct Split {
    pub axis: usize,
    /// Number of blocks.
    pub outer: usize,
    /// Elements of a piece in a block.
    pub inner: usize,
    /// Elements of a block.
    pub total: usize,
}

impl Split {
    /// The copy of piece `i` to its place.
    fn place(&self, i: usize) -> Moves {
        place(self.outer, self.total, i * self.inner, self.inner)
    }
}

impl Call for Split {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let mut pieces = y.iter().enumerate();
        pieces.try_for_each(|(i, y)| ops::moves(self.place(i).reversed(), &y.data, &x[0].data, Output::Write))
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let Some(gx) = &gx[0] else { return Ok(()) };
        if gx.output == Output::Write && gy.iter().any(Option::is_none) {
            ops::fill(&gx.data, 0.0)?;
        }
        for (i, gy) in gy.iter().enumerate().filter_map(|(i, gy)| Some((i, gy.as_ref()?))) {
            ops::moves(self.place(i), &gx.data, &gy.data, gx.output)?;
        }
        Ok(())
    }
}
