//! Seeds as arguments of functions.

use crate::function::{ArgKind, ArgType, ArgValue};
use nnrs_kernels::random::{LastDraw, RandomSeed};

impl ArgType for RandomSeed {
    const KIND: ArgKind = ArgKind::Int;
    fn from_value(v: ArgValue) -> Option<RandomSeed> {
        i64::from_value(v).map(RandomSeed::from)
    }
    fn to_value(&self) -> ArgValue {
        ArgValue::Int(RandomSeed::value(self))
    }
}

/// Not an argument that a caller can give: it links two functions.
impl ArgType for LastDraw {
    const KIND: ArgKind = ArgKind::Int;
    fn from_value(_: ArgValue) -> Option<LastDraw> {
        None
    }
    fn to_value(&self) -> ArgValue {
        ArgValue::None
    }
}
