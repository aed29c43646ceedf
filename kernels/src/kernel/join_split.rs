//! Arrays joined along an axis, and cut along one. In each block before the axis the parts lie one after another.

use super::ops;
use crate::array::{AxisMap, Output, Place, Strided};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::Real;
use crate::error::Result;
use crate::kernel::moves::Moves;
use crate::pool::tasks;
use crate::shape::Shape;
use crate::with_real;
use smallvec::SmallVec;

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

/// Elements that a task copies to blocks, and of an array in a block so that it is one copy.
const TASK: usize = 1 << 15;
const LONG: usize = 64;

impl Join {
    /// Elements of a block.
    fn total(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// Block by block, so that y is written from end to end.
    fn blocks<T: Real>(&self, x: &[&[T]], y: &mut [T]) {
        let (total, each) = (self.total(), TASK / self.total());
        tasks::parts(y, each * total, |task, y| {
            for (i, mut block) in y.chunks_exact_mut(total).enumerate() {
                for (x, &n) in x.iter().zip(&self.sizes) {
                    let (to, rest) = block.split_at_mut(n);
                    to.copy_from_slice(&x[(task * each + i) * n..][..n]);
                    block = rest;
                }
            }
        });
    }

    /// For each array the copy to its place.
    fn places(&self) -> impl Iterator<Item = Moves> {
        let (total, mut end) = (self.total(), 0);
        self.sizes.iter().map(move |&n| {
            end += n;
            place(self.outer, total, end - n, n)
        })
    }

    /// The copy of array `i` to its place, where the array is a view.
    fn place_of_view(&self, i: usize, x: &Strided) -> Moves {
        let (total, first) = (self.total(), self.sizes[..i].iter().sum());
        let axes = x.shape.iter().zip(x.shape.strides()).zip(&x.strides).enumerate();
        let wider = |at: usize, to: usize| if at < self.axis { to / self.sizes[i].max(1) * total } else { to };
        axes.fold(Moves::new(first, x.first), |m, (at, ((&n, to), &from))| m.axis(n, wider(at, to) as isize, from))
    }
}

impl Call for Join {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let in_order = x.iter().all(|x| x.strides().is_none()) && y[0].data.place() == Place::Host;
        if in_order && self.outer > 1 && self.total() <= TASK && self.sizes.iter().all(|&n| n >= LONG) {
            with_real!(y[0].data.dtype(), T => {
                let x: SmallVec<[&[T]; 4]> = x.iter().map(|x| x.slice()).collect();
                self.blocks(&x, y[0].slice());
            });
            return Ok(());
        }
        self.places().zip(x).enumerate().try_for_each(|(i, (to, x))| {
            let to = x.strides().map_or(to, |x| self.place_of_view(i, x));
            ops::moves(to, &y[0].data, &x.data, Output::Write)
        })
    }

    fn takes_strides(&self, _i: usize, _x: &Strided, _place: Place) -> bool {
        true
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
    /// The array's shape.
    pub whole: Shape,
}

impl Split {
    /// Piece `i` as a view of the array.
    fn piece(&self, i: usize) -> AxisMap {
        let start = AxisMap::new((0..self.whole.ndim()).map(|a| if a == self.axis { i } else { 0 }));
        let others = self.whole.iter().enumerate().filter(|(a, _)| *a != self.axis);
        others.fold(start, |axes, (a, &n)| axes.along(n, a, 1))
    }

    /// The copy of piece `i` out of the array, of which `x` is a view.
    fn out(&self, i: usize, x: &Strided) -> Moves {
        Moves::gather(&self.piece(i).of(x))
    }
}

impl Call for Split {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let dense = Strided::dense(&self.whole);
        let from = x[0].strides().unwrap_or(&dense);
        let mut pieces = y.iter().enumerate();
        pieces.try_for_each(|(i, y)| ops::moves(self.out(i, from), &y.data, &x[0].data, Output::Write))
    }

    fn axes(&self, i: usize) -> Option<AxisMap> {
        Some(self.piece(i))
    }

    fn takes_strides(&self, _i: usize, _x: &Strided, _place: Place) -> bool {
        true
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let Some(gx) = &gx[0] else { return Ok(()) };
        if gx.output == Output::Write && gy.iter().any(Option::is_none) {
            ops::fill(&gx.data, 0.0)?;
        }
        let dense = Strided::dense(&self.whole);
        for (i, gy) in gy.iter().enumerate().filter_map(|(i, gy)| Some((i, gy.as_ref()?))) {
            ops::moves(self.out(i, &dense).reversed(), &gx.data, &gy.data, gx.output)?;
        }
        Ok(())
    }
}
