//! nnrs: NNabla's computation graph reborn.

pub mod array;
pub mod cpu;
pub mod dtype;
pub mod error;
pub mod function;
pub mod shape;

pub use array::NdArray;
pub use dtype::DType;
pub use error::{Error, ErrorKind, Result};
pub use shape::Shape;
