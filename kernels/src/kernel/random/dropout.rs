//! Elements dropped at random. What was kept is noted for backward on the host, a bit an element, which is quicker than making it
//! again from the draw.

use super::{cuda, next, next_beside, numbers};
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::{Error, Result};
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
    with_real!(run.dtype, T => philox::dropout(draw, p, y.as_mut_slice::<T>(), x.as_slice(), add, None));
    Ok(())
}

/// Drops elements with probability `p`, others in each run.
pub struct Dropout {
    pub p: f64,
    /// Elements.
    pub n: usize,
    /// The function's own, no clone: it has the last draw.
    pub seed: RandomSeed,
}

/// What a forward pass kept.
struct KeptElements(Data);

impl Call for Dropout {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (x, y) = (&x[0].data, &y[0].data);
        if let Place::Gpu(_) = y.place() {
            return cuda::dropout(next(&self.seed, run)?, self.p, y, x, Output::Write);
        }
        let draw = next_beside(&self.seed, run)?.known()?;
        let kept = if run.keep { Some(Data::new(DType::U8, philox::note(self.n))?) } else { None };
        with_real!(run.dtype, T => {
            let kept = kept.as_ref().map(|kept| kept.as_mut_slice());
            philox::dropout(draw, self.p, y.as_mut_slice::<T>(), x.as_slice(), false, kept)
        });
        match kept {
            Some(kept) => run.save(KeptElements(kept)),
            None if !run.again => run.saved.clear(), // the draw is no note
            None => {}
        }
        Ok(())
    }

    fn last_draw(&self) -> Option<LastDraw> {
        Some(self.seed.last())
    }

    fn saves(&self, _dtype: DType) -> Option<usize> {
        Some(philox::note(self.n))
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    /// The draw is enough.
    fn needs_on_gpu(&self, _dtype: DType, want: &[bool]) -> Option<Needs> {
        self.needs(want)
    }

    fn backward(&self, run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        if let Place::Gpu(_) = gx.data.place() {
            return cuda::dropout(numbers(DrawPolicy::Saved, run)?, self.p, &gx.data, &gy.data, gx.output);
        }
        let kept = run.saved::<KeptElements>().ok_or_else(|| {
            Error::graph("what the forward pass dropped is missing").hint("call forward() before backward()")
        })?;
        with_real!(run.dtype, T => {
            let (kept, add) = (kept.0.as_slice(), gx.output == Output::Accumulate);
            philox::dropout_noted(kept, self.p, gx.data.as_mut_slice::<T>(), gy.data.as_slice(), add)
        });
        Ok(())
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
