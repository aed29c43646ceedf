//! nnrs: NNabla's computation graph reborn. `docs/rust.md` shows how to use it from Rust.
//!
//! ```
//! use nnrs::{functions as f, Variable};
//! let x = Variable::from_slice(&[1.0f32, 2.0, 3.0], [3].into())?.with_need_grad(true);
//! let y = f::sum(&(&x * &x)?, f::Sum::default())?;
//! y.forward()?;
//! y.backward()?;
//! assert_eq!((y.to_vec::<f32>()?, x.grad().to_vec::<f32>()?), (vec![14.0], vec![2.0, 4.0, 6.0]));
//! # Ok::<(), nnrs::Error>(())
//! ```

#![warn(missing_docs)]

pub mod function;
pub mod graph;
pub mod initializer;
pub mod io;
pub mod parameter;
pub mod parametric;
#[cfg(feature = "python")]
mod python;
pub mod solver;

pub use nnrs_kernels::{array, context, cpu, cuda, dtype, error, expr, random, shape, with_dtype, with_real};
#[allow(unused_imports)]
use nnrs_kernels::{fork, kernel, saved, switch, tile};

pub use array::NdArray;
pub use context::Context;
pub use dtype::DType;
pub use error::{Error, ErrorKind, Result};
pub use function::{Elementwise, Function, OnVariables};
pub use graph::{BackwardOptions, ForwardOptions, Seed, Variable, forward_all};
pub use shape::Shape;
pub use solver::Solver;

/// Builders of all functions: `relu(&x, ReLU::default())` applies [`ReLU`](functions::ReLU), whose fields are the arguments.
/// What they say of inputs, arguments and outputs is what `docs/functions.md` says.
///
/// All give an error if the inputs do not fit. Functions with one output give a variable, others a list.
///
/// ```
/// use nnrs::{functions as f, Variable};
/// let x = Variable::new([8, 3, 32, 32]);
/// let y = f::max_pooling(&x, f::MaxPooling { kernel: vec![2, 2], ..Default::default() })?;
/// assert_eq!(y.shape(), [8, 3, 16, 16].into());
/// let error = f::affine(&x, &Variable::new([5, 4]), None, f::Affine::default()).unwrap_err();
/// assert!(error.to_string().starts_with("affine: argument 'weight'"), "{error}");
/// # Ok::<(), nnrs::Error>(())
/// ```
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

/// The pages whose Rust is tested.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../docs/rust.md")]
    struct Rust;
}
