//! Math functions.

mod atan2;
mod constant;
mod einsum;
mod identity;
mod range;
mod unary;

use super::Def;
pub use atan2::*;
pub use constant::*;
pub use einsum::*;
pub use identity::*;
pub use range::*;
pub use unary::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[
    Constant::DEF,
    Arange::DEF,
    Linspace::DEF,
    Abs::DEF,
    Exp::DEF,
    Log::DEF,
    Identity::DEF,
    Round::DEF,
    Ceil::DEF,
    Floor::DEF,
    Sin::DEF,
    Cos::DEF,
    Tan::DEF,
    Sinh::DEF,
    Cosh::DEF,
    ASin::DEF,
    ACos::DEF,
    ATan::DEF,
    ATan2::DEF,
    ASinh::DEF,
    ACosh::DEF,
    ATanh::DEF,
    Erf::DEF,
    Einsum::DEF,
];
