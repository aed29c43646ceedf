//! Arithmetic functions.

mod binary;
mod mod2;
mod n_ary;
mod scalar;

use super::Def;
pub use binary::*;
pub use mod2::*;
pub use n_ary::*;
pub use scalar::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[
    Add2::DEF,
    AddN::DEF,
    BcAdd2::DEF,
    Sub2::DEF,
    Mul2::DEF,
    MulN::DEF,
    Div2::DEF,
    Pow2::DEF,
    AddScalar::DEF,
    MulScalar::DEF,
    PowScalar::DEF,
    RSubScalar::DEF,
    RDivScalar::DEF,
    RPowScalar::DEF,
    Mod2::DEF,
    BitShift::DEF,
];
