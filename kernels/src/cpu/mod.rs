//! CPU kernels with a structure of their own.

pub mod axes;
pub mod conv;
pub mod gemm;
pub mod moves;
pub mod philox;
pub mod pool;
pub mod reduce;
pub mod rows;
pub mod scratch;
pub mod simd;
pub mod tasks;
