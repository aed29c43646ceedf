//! CPU kernels with a structure of their own.

pub mod pool;
pub mod simd;
