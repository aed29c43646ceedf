//! Activation functions.

mod concatenated_relu;
mod leaky_relu;
mod log_softmax;
mod prelu;
mod rectified;
mod smooth;
mod softmax;
mod softsign;

use super::Def;
pub use concatenated_relu::*;
pub use leaky_relu::*;
pub use log_softmax::*;
pub use prelu::*;
pub use rectified::*;
pub use smooth::*;
pub use softmax::*;
pub use softsign::*;

/// The functions of this group.
pub(super) const FUNCTIONS: &[&Def] = &[
    Sigmoid::DEF,
    Swish::DEF,
    Tanh::DEF,
    ReLU::DEF,
    LeakyReLU::DEF,
    Softmax::DEF,
    LogSoftmax::DEF,
    ELU::DEF,
    SELU::DEF,
    CReLU::DEF,
    CELU::DEF,
    PReLU::DEF,
    GELU::DEF,
    Mish::DEF,
    ReLU6::DEF,
    HardSigmoid::DEF,
    HardTanh::DEF,
    LogSigmoid::DEF,
    SoftPlus::DEF,
    SoftSign::DEF,
    TanhShrink::DEF,
    Sinc::DEF,
    BinarySigmoid::DEF,
    BinaryTanh::DEF,
];
