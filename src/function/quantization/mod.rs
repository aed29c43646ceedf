//! Quantization: numbers of few bits, layers of such weights, and weights set to zero.

mod binary_layer;
mod fixed_point_quantize;
mod inner_layer;
mod inq;
mod linear;
mod min_max_quantize;
mod pow2_quantize;
mod prune;

use super::Def;
pub use binary_layer::*;
pub use fixed_point_quantize::*;
pub use inq::*;
pub use linear::*;
pub use min_max_quantize::*;
pub use pow2_quantize::*;
pub use prune::*;

/// The functions of this group, in NNabla's order.
pub(super) const FUNCTIONS: &[&Def] = &[
    BinaryConnectAffine::DEF,
    BinaryConnectConvolution::DEF,
    BinaryWeightAffine::DEF,
    BinaryWeightConvolution::DEF,
    INQAffine::DEF,
    INQConvolution::DEF,
    FixedPointQuantize::DEF,
    MinMaxQuantize::DEF,
    Pow2Quantize::DEF,
    Prune::DEF,
    QuantizeLinear::DEF,
    DequantizeLinear::DEF,
];
