//! Seeds as arguments of functions, and where a run finds its random numbers.

use crate::function::{ArgKind, ArgType, ArgValue, Run};
use nnrs_kernels::cuda;
use nnrs_kernels::error::Result;
use nnrs_kernels::random::{LastDraw, Numbers, Seed, Source};

impl ArgType for Seed {
    const KIND: ArgKind = ArgKind::Int;
    fn from_value(v: ArgValue) -> Option<Seed> {
        i64::from_value(v).map(Seed::from)
    }
    fn to_value(&self) -> ArgValue {
        ArgValue::Int(Seed::value(self))
    }
}

/// Not an argument that anybody can give: it links two functions.
impl ArgType for LastDraw {
    const KIND: ArgKind = ArgKind::Int;
    fn from_value(_: ArgValue) -> Option<LastDraw> {
        None
    }
    fn to_value(&self) -> ArgValue {
        ArgValue::None
    }
}

/// Where a run finds its random numbers.
pub(super) trait Numbered {
    /// The draw of a run; in a captured run, of each replay.
    fn numbers(self, run: &Run) -> Result<Numbers>;
}

impl Numbered for Source {
    fn numbers(self, run: &Run) -> Result<Numbers> {
        match cuda::draws::in_memory(&self, run.saved)? {
            Some(address) => Ok(Numbers::At(address)),
            None => self.draw(run.saved).map(Numbers::Known),
        }
    }
}

impl Numbered for &Seed {
    fn numbers(self, run: &Run) -> Result<Numbers> {
        Source::Next { seed: self.twin(), again: run.again }.numbers(run)
    }
}
