//! What touches the elements of nnrs's arrays: memory, kernels for CPU and GPU, formulas and their programs. It knows no
//! graph and no function. An internal part of the crate `nnrs`, which shows what is for users.

// First: its macro is for all modules.
#[cfg(feature = "emulate")]
#[macro_use]
#[doc(hidden)]
pub mod unit_test;

pub mod array;
pub mod base;
pub mod call;
pub mod cuda;
pub mod device;
#[cfg(feature = "emulate")]
mod emulate;
pub mod expr;
pub mod finish;
pub mod gemm;
pub mod kernel;
pub mod limits;
pub mod pool;
pub mod random;
pub mod simd;
pub mod tile;
pub mod tuned;

pub use array::NdArray;
pub use base::{dtype, error, fork, saved, shape, stack, switch};
pub use device::{Context, context};
pub use dtype::DType;
pub use error::{Error, ErrorKind, Result};
pub use inventory;
pub use shape::Shape;
