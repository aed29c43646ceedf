//! Seeds as arguments of functions.

use crate::function::{ArgKind, ArgType, ArgValue};
use nnrs_kernels::random::{LastDraw, Seed};

impl ArgType for Seed {
    const KIND: ArgKind = ArgKind::Int;
    fn from_value(v: ArgValue) -> Option<Seed> {
        i64::from_value(v).map(Seed::from)
    }
    fn to_value(&self) -> ArgValue {
        ArgValue::Int(Seed::value(self))
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
