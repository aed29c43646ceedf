//! CPU kernels with a structure of their own.

pub mod conv;
pub mod formula;
pub mod gemm;
pub mod pool;
pub mod pooling;
pub mod reduce;
pub mod simd;
pub mod softmax;
