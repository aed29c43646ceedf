//! CPU kernels with a structure of their own.

pub mod axes;
pub mod conv;
pub mod extreme;
pub mod gemm;
pub mod moves;
pub mod philox;
pub mod pool;
pub mod product;
pub mod reduce;
pub mod rows;
pub mod simd;
pub mod tasks;
