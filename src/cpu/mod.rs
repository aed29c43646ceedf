//! CPU kernels with a structure of their own.

pub mod conv;
pub mod gemm;
pub mod normalize;
pub mod pool;
pub mod pooling;
pub mod reduce;
pub mod simd;
