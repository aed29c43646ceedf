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
#![deny(unsafe_code)]

pub mod communicator;
pub mod function;
pub mod graph;
pub mod initializer;
pub mod io;
pub mod nnp;
pub mod parameter;
pub mod parametric;
#[cfg(feature = "python")]
#[allow(unsafe_code)]
mod python;
pub mod solver;

/// Arrays and the memory that they are in.
pub mod array {
    pub use nnrs_kernels::array::{AxisMap, Content, Data, NdArray, NdArrayView, Place, Storage, Strided};

    /// What the engine's memory holds, its limit, and what it gives back.
    pub mod alloc {
        pub use nnrs_kernels::array::alloc::{Stats, clear_cache, human, reset_peak, stats};
    }
}

/// The CPU.
pub mod cpu {
    pub use nnrs_kernels::kernel::convolution::winograd::{
        exact as exact_convolution, set_exact as set_exact_convolution,
    };
    pub use nnrs_kernels::pool::{num_threads, set_num_threads};
}

/// GPUs.
pub mod cuda {
    pub use nnrs_kernels::cuda::{
        Gpu, GpuGroup, GroupPlace, GroupSums, Properties, autotune, compiler, functions_on_host, gpu, gpus, graphs,
        set_autotune, set_compiler, set_graphs, set_libraries, set_notice, set_tf32, tf32,
    };
}

/// Formulas: functions of one element.
pub mod expr {
    pub use nnrs_kernels::expr::{Expr, Formula, Operand, cuda, op, ssa};
}

/// The generator of numbers that functions draw.
pub mod random {
    pub use nnrs_kernels::random::{Draw, LastDraw, RandomSeed, next_draw, set_function_seed, set_stream, stream};
}

pub use nnrs_kernels::{context, dtype, error, shape, with_dtype, with_real};

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
    pub use crate::function::geometry::*;
    pub use crate::function::layer::*;
    pub use crate::function::logical::*;
    pub use crate::function::loss::*;
    pub use crate::function::math::*;
    pub use crate::function::normalization::*;
    pub use crate::function::quantization::*;
    pub use crate::function::random::*;
    pub use crate::function::reduction::*;
    pub use crate::function::signal::*;
    pub use crate::function::special::*;
    pub use crate::function::validation::*;
}

/// The pages whose Rust is tested.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../docs/rust.md")]
    struct Rust;
    #[doc = include_str!("../docs/distributed.md")]
    struct Distributed;
}
