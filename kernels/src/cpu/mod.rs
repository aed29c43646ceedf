//! CPU kernels with a structure of their own.

pub mod axes;
pub mod conv;
pub mod gemm;
pub mod moves;
pub mod philox;
pub mod pool;
pub mod pooling;
pub mod reduce;
pub mod rows;
pub mod scratch;
#[cfg_attr(test, allow(clippy::undocumented_unsafe_blocks))] // one comment for a whole table of measurements
pub mod simd;
pub mod tasks;
