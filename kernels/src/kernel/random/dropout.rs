//! Elements dropped at random. The mask is never stored: it is made again from the draw.

use super::{cuda, next, numbers};
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::random::philox;
use crate::random::{DrawPolicy, DrawSource, LastDraw, RandomSeed};
use crate::with_real;

/// Drops elements of `x` on their way to `y`.
pub(in crate::kernel) fn drop_out(
    run: &Run,
    numbers: DrawSource,
    p: f64,
    y: &Data,
    x: &Data,
    output: Output,
) -> Result<()> {
    if let Place::Gpu(_) = y.place() {
        return cuda::dropout(numbers, p, y, x, output);
    }
    let (draw, add) = (numbers.known()?, output == Output::Accumulate);
    with_real!(run.dtype, T => philox::dropout(draw, p, y.as_mut_slice::<T>(), x.as_slice(), add));
    Ok(())
}

/// Drops elements with probability `p`, others in each run.
pub struct Dropout {
    pub p: f64,
    /// The function's own, no clone: it has the last draw.
    pub seed: RandomSeed,
}

impl Call for Dropout {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        drop_out(run, next(&self.seed, run)?, self.p, &y[0].data, &x[0].data, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        drop_out(run, numbers(DrawPolicy::Saved, run)?, self.p, &gx.data, &gy.data, gx.output)
    }
}

/// Drops the elements that another function dropped when it last ran.
pub struct DropoutAgain {
    pub p: f64,
    pub draw: LastDraw,
}

impl Call for DropoutAgain {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let numbers = numbers(DrawPolicy::Last(self.draw.clone()), run)?;
        drop_out(run, numbers, self.p, &y[0].data, &x[0].data, Output::Write)
    }
}
