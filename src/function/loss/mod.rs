//! Loss functions.

mod categorical_cross_entropy;
mod entropy;
mod kl_multinomial;
pub(crate) mod labels;
mod regression;
mod softmax_cross_entropy;

use super::Def;
pub use categorical_cross_entropy::*;
pub use entropy::*;
pub use kl_multinomial::*;
pub use regression::*;
pub use softmax_cross_entropy::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[
    SigmoidCrossEntropy::DEF,
    BinaryCrossEntropy::DEF,
    SoftmaxCrossEntropy::DEF,
    CategoricalCrossEntropy::DEF,
    SquaredError::DEF,
    AbsoluteError::DEF,
    HuberLoss::DEF,
    EpsilonInsensitiveLoss::DEF,
    KLMultinomial::DEF,
];
