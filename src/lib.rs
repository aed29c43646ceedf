//! nnrs: NNabla's computation graph reborn.

pub mod array;
pub mod context;
pub mod cpu;
pub mod dtype;
pub mod error;
mod fork;
pub mod function;
pub mod graph;
pub mod initializer;
pub mod io;
pub mod parameter;
pub mod parametric;
#[cfg(feature = "python")]
mod python;
pub mod random;
pub mod shape;
pub mod solver;

pub use array::NdArray;
pub use context::Context;
pub use dtype::DType;
pub use error::{Error, ErrorKind, Result};
pub use function::{Elementwise, Function, OnVariables};
pub use graph::{BackwardOptions, ForwardOptions, Seed, Variable, forward_all};
pub use shape::Shape;
pub use solver::Solver;

/// Builders of all functions.
pub mod functions {
    pub use crate::function::activation::*;
    pub use crate::function::arithmetic::*;
    pub use crate::function::array::*;
    pub use crate::function::layer::*;
    pub use crate::function::logical::*;
    pub use crate::function::loss::*;
    pub use crate::function::math::*;
    pub use crate::function::normalization::*;
    pub use crate::function::random::*;
    pub use crate::function::reduction::*;
    pub use crate::function::validation::*;
}
