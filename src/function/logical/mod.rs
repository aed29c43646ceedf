//! Logical functions: comparisons, truth, extremes, choice.

mod compare;
mod logic;
mod minimum_maximum;
mod non_finite;
mod searchsorted;
mod sign;
mod where_;

use super::Def;
pub use compare::*;
pub use logic::*;
pub use minimum_maximum::*;
pub use non_finite::*;
pub use searchsorted::*;
pub use sign::*;
pub use where_::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[
    Sign::DEF,
    Minimum2::DEF,
    Maximum2::DEF,
    MinimumScalar::DEF,
    MaximumScalar::DEF,
    LogicalAnd::DEF,
    LogicalOr::DEF,
    LogicalXor::DEF,
    Equal::DEF,
    NotEqual::DEF,
    GreaterEqual::DEF,
    Greater::DEF,
    LessEqual::DEF,
    Less::DEF,
    LogicalAndScalar::DEF,
    LogicalOrScalar::DEF,
    LogicalXorScalar::DEF,
    EqualScalar::DEF,
    NotEqualScalar::DEF,
    GreaterEqualScalar::DEF,
    GreaterScalar::DEF,
    LessEqualScalar::DEF,
    LessScalar::DEF,
    LogicalNot::DEF,
    IsNaN::DEF,
    IsInf::DEF,
    ResetNaN::DEF,
    ResetInf::DEF,
    Where::DEF,
    SearchSorted::DEF,
];
