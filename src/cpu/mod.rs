//! CPU kernels with a structure of their own.

pub mod gemm;
pub mod pool;
