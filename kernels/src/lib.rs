//! What touches the elements of nnrs's arrays: memory, kernels for CPU and GPU, formulas and their programs. It knows no
//! graph and no function. An internal part of the crate `nnrs`, which shows what is for users.

pub mod array;
pub mod call;
pub mod context;
pub mod cpu;
pub mod cuda;
pub mod dtype;
pub mod error;
pub mod expr;
pub mod fork;
pub mod kernel;
pub mod random;
pub mod saved;
pub mod shape;
pub mod switch;
pub mod tile;

pub use array::NdArray;
pub use context::Context;
pub use dtype::DType;
pub use error::{Error, ErrorKind, Result};
pub use inventory;
pub use shape::Shape;
