//! Functions: the trait, the registry, and the groups. One function = one file; families that are one formula a row
//! share a table file.

pub mod args;
mod call;
pub mod describe;
pub mod elementwise;
mod on_variables;
mod registry;
mod table;

pub mod activation;
pub mod arithmetic;
pub mod array;
pub mod geometry;
pub mod layer;
pub mod logical;
pub mod loss;
pub mod math;
pub mod normalization;
pub mod quantization;
pub mod random;
pub mod reduction;
pub mod signal;
pub mod special;
pub mod validation;

use crate::graph::{Context, FnNode, FunctionRef, Variable};
pub use args::{ArgKind, ArgType, ArgValue};
pub use call::Resolved;
pub(crate) use call::{Setup, call_of, with_default, with_defaults};
pub use describe::{ArgDef, Args, Def, Described, Group, InputDef, InputKind, OnGpu, OutputDef};
pub use elementwise::Elementwise;
pub use nnrs_kernels::array::Output;
pub use nnrs_kernels::call::{Call, GradMut, Gradients, Needs, Run, View, ViewMut};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
pub use on_variables::OnVariables;
pub use registry::{find, registry};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;

/// Shapes of a function's outputs.
pub type Shapes = SmallVec<[Shape; 1]>;

/// A function of the graph. See CONTRIBUTING.md for one written step by step.
///
/// Give either [`Function::elementwise`], or [`Function::resolve`] with [`Function::grad`]; or [`Function::on_variables`]. Any crate may implement it: [`function!`](crate::function!)
/// declares the struct, its arguments and a builder of the function's name, and [`call`] applies any function.
///
/// One that works element by element is a formula; derivatives of every order and fusion with its neighbours follow:
///
/// ```
/// use nnrs::expr::Expr;
/// use nnrs::{function, functions as f, graph, Elementwise, Variable};
///
/// function! {
///     /// `x` / (1 + |x| / `limit`).
///     Squash squash in Special, elementwise
///     inputs { x: "N-D array." }
///     args { limit: f64 = 1.0, "What the result stays below." }
///     outputs { y: "N-D array of x's shape." }
/// }
/// impl Elementwise for Squash {
///     fn formula(&self, x: &[Expr]) -> Expr {
///         &x[0] / (x[0].abs() / self.limit + 1.0)
///     }
/// }
///
/// let x = Variable::from_slice(&[1.0f32, -3.0], [2].into())?.with_need_grad(true);
/// let y = f::sum(&squash(&x, Squash { limit: 1.0 })?, f::Sum::default())?;
/// let gx = graph::grad(&[&y], &[&x], &[])?[0].clone().unwrap();
/// let gxx = graph::grad(&[&gx], &[&x], &[])?[0].clone().unwrap();
/// gxx.forward()?;
/// assert_eq!(gxx.to_vec::<f32>()?, [-0.25, 1.0 / 32.0]); // -2 sign(x) / (1 + |x|)^3
/// # Ok::<(), nnrs::Error>(())
/// ```
///
/// One with a structure of its own, and its gradient in terms of other functions:
///
/// ```
/// use nnrs::function::{Function, Grad, Resolved, Run, View, ViewMut};
/// use nnrs::{function, functions as f, graph, with_real, Error, Result, Shape, Variable};
///
/// function! {
///     /// The diagonal of a square matrix.
///     Diagonal diagonal in Special
///     inputs { x: "Square matrix." }
///     args {}
///     outputs { y: "Its diagonal." }
/// }
/// impl Function for Diagonal {
///     fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
///         if x[0].ndim() != 2 || x[0][0] != x[0][1] {
///             return Err(Error::shape("x", "a square matrix").actual(&x[0]));
///         }
///         let n = x[0][0];
///         Ok(Resolved::one([n], move |run: &Run, x: &[View], y: &mut [ViewMut]| {
///             with_real!(run.dtype, T => {
///                 let (x, y) = (x[0].slice::<T>(), y[0].slice::<T>());
///                 (0..n).for_each(|i| y[i] = x[i * (n + 1)]);
///             });
///             Ok(())
///         }))
///     }
///     fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
///         Ok(vec![Some(f::matrix_diag(&g.gy[0])?)])
///     }
/// }
///
/// let x = Variable::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2].into())?.with_need_grad(true);
/// let y = diagonal(&f::mul2(&x, &x, f::Mul2::default())?)?;
/// y.forward()?;
/// y.backward()?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 16.0]);
/// assert_eq!(x.grad().to_vec::<f32>()?, [2.0, 0.0, 0.0, 8.0]);
/// let wrong = diagonal(&Variable::new([2, 3])).unwrap_err();
/// assert!(wrong.to_string().starts_with("diagonal: argument 'x': expected a square matrix, got (2, 3)"));
/// # Ok::<(), nnrs::Error>(())
/// ```
pub trait Function: Described + Any + Send + Sync {
    /// What the function does with inputs of these shapes: the outputs' shapes, and the call, which has all sizes; every check of
    /// shapes and arguments, with helpful errors.
    ///
    /// # Errors
    /// Shapes or arguments that the function does not take.
    fn resolve(&self, _x: &[Shape]) -> Result<Resolved> {
        Err(crate::Error::unsupported("this function has no kernel").function(self.def().snake))
    }

    /// The gradient as a graph: for each input the gradient, or `None` where there is none.
    ///
    /// # Errors
    /// What the functions of the graph say; a function without a gradient.
    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Err(crate::Error::unsupported("this function has no gradient").function(self.def().snake))
    }

    /// Whether the graph of its gradient is of floats in contexts of half types, whose range its sums and squares leave.
    fn widens_grad(&self) -> bool {
        false
    }

    /// Whether a gradient can flow to input `i`.
    fn differentiable(&self, _i: usize) -> bool {
        true
    }

    /// Whether it is an error to ask for the gradient of an output by any input: outputs are places or sizes. (Deeper in a
    /// graph gradients end there.)
    fn refuses_grad(&self) -> bool {
        false
    }

    /// Whether `backward` is an error where input `i`, without a gradient, is a leaf that asks for one: a mistake in most
    /// scripts. Functions for which NNabla goes on instead leave that gradient alone.
    fn refuses_gradient(&self, i: usize) -> bool {
        self.def().input(i).kind == InputKind::Index
    }

    /// The arguments by NNabla's names, as `call` uses them: strides of 1, all axes and the like instead of `None`.
    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        self.arguments()
    }

    /// The name of input `i`, for messages; functions whose optional inputs may be absent in the middle say it themselves.
    fn input_name(&self, i: usize) -> &'static str {
        self.def().input(i).name
    }

    /// The formula, for functions that work element by element.
    fn elementwise(&self) -> Option<&dyn Elementwise> {
        None
    }

    /// True if its kernels take arrays of a GPU: no part of it runs on the host.
    fn runs_on_gpu(&self) -> bool {
        self.elementwise().is_some() || self.is_view() || self.def().on_gpu != OnGpu::Nothing
    }

    /// The implementation, for functions that work on whole variables (user code in another language, for one).
    fn on_variables(&self) -> Option<&dyn OnVariables> {
        None
    }

    /// The element type of output `i` where it is not the context's (indices); the kernel then writes that type.
    fn output_dtype(&self, _i: usize) -> Option<crate::DType> {
        None
    }

    /// True if whole numbers keep their type: index inputs come to the host's kernels as they are, and outputs are of the first
    /// input's type, if that is one of whole numbers.
    fn keeps_whole_types(&self) -> bool {
        false
    }

    /// True if the output is the first input's memory under another shape.
    fn is_view(&self) -> bool {
        false
    }

    /// What the function does with the gradient that input `i` has.
    fn gradient_of(&self, _i: usize) -> GradientPart {
        GradientPart::Added
    }

    /// True if the function may run again without side effects and with the same result, as long as `run` says so.
    fn has_state(&self) -> bool {
        false
    }

    /// True if what `forward` does depends on how often it has run, which the host counts: on a GPU its runs are not captured.
    fn counts_runs(&self) -> bool {
        false
    }

    /// Whether `forward` is given the inputs' arrays themselves ([`Run`]): what it updates, or whose types it asks for.
    fn sees_arrays(&self) -> bool {
        self.has_state()
    }

    /// The input in whose memory the output is made, where nothing has computed that input: its data is the result too.
    /// Where that cannot be, the output is made apart, and the engine copies it there. `forward` gets the same memory twice
    /// then, as input and as output.
    fn rewrites_input(&self) -> Option<usize> {
        None
    }

    /// Whether `forward` writes input `i`, by [`Run::update_input`]; the function [has state](Function::has_state) then,
    /// and its outputs do not depend on what was in that input. Where other functions of a graph have the same array,
    /// the graph runs depth first, so that they see what they see in NNabla.
    fn updates_input(&self, _i: usize) -> bool {
        false
    }

    /// How many of the last outputs are nnrs's own: rules of gradients read them, scripts and files do not see them.
    fn hidden_outputs(&self) -> usize {
        0
    }
}

/// What a function does with the gradient that an input has from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradientPart {
    /// It adds its part.
    Added,
    /// Its part takes the place of what is there.
    Instead,
    /// It gives none: what the variable's own gradient array holds when `backward` begins is the seed there.
    Given,
}

/// What a gradient rule is given.
pub struct Grad {
    /// Inputs of the function.
    pub x: Vec<Variable>,
    /// Outputs of the function.
    pub y: Vec<Variable>,
    /// Gradients of the outputs (zeros where none flows).
    pub gy: Vec<Variable>,
    /// The gradients that are asked for.
    pub want: Vec<bool>,
    /// What the forward pass saved (see [`Run::save`]).
    pub saved: Option<Arc<dyn std::any::Any + Send + Sync>>,
    /// The context of the function.
    pub context: Arc<Context>,
    setup: Arc<Setup>,
}

impl Grad {
    /// What the rule of `f` is given for these variables.
    ///
    /// # Errors
    /// Shapes that the function does not take.
    pub fn new(
        f: &FunctionRef,
        x: Vec<Variable>,
        y: Vec<Variable>,
        gy: Vec<Variable>,
        want: Vec<bool>,
    ) -> Result<Grad> {
        let shapes: SmallVec<[Shape; 2]> = x.iter().map(Variable::shape).collect();
        let setup = f.node().setup_for(shapes)?;
        Grad::over(f.node(), setup, x, y, gy, want)
    }

    pub(crate) fn over(
        node: &FnNode,
        setup: Arc<Setup>,
        x: Vec<Variable>,
        y: Vec<Variable>,
        gy: Vec<Variable>,
        want: Vec<bool>,
    ) -> Result<Grad> {
        for (list, name) in [(&y, "outputs"), (&gy, "grad_inputs")] {
            let mut pairs = list.iter().zip(&setup.y).enumerate();
            if let Some((o, (v, shape))) = pairs.find(|(_, (v, shape))| v.shape() != **shape) {
                let e = Error::shape(name, format!("shape {shape} of output {o}")).actual(v.shape());
                return Err(e.function(format!("the gradient rule of {}", node.name())));
            }
        }
        Ok(Grad { x, y, gy, want, saved: node.saved.get(), context: node.context.clone(), setup })
    }

    /// The function's call over the inputs' shapes.
    ///
    /// # Panics
    /// If [`Function::resolve`] gives calls of another type.
    pub fn call<C: Call>(&self) -> &C {
        call_of(self.setup.kernels())
    }
}

/// Applies `f` to `inputs`.
///
/// # Errors
/// As [`graph::apply`](crate::graph::apply).
///
/// ```
/// use nnrs::{function::call, functions as f, Variable};
/// let y = call(f::Abs {}, &[&Variable::from_slice(&[-1.0f32], [1].into())?])?;
/// y[0].forward()?;
/// assert_eq!((y.len(), y[0].to_vec::<f32>()?), (1, vec![1.0]));
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn call(f: impl Function, inputs: &[&Variable]) -> Result<Vec<Variable>> {
    crate::graph::apply(Arc::new(f), inputs, None)
}

/// Applies `f`, which has one output.
///
/// # Errors
/// As [`call`].
///
/// ```
/// use nnrs::{function::call_one, functions as f, Variable};
/// let y = call_one(f::LeakyReLU { alpha: 0.5, ..Default::default() }, &[&Variable::from_slice(&[-1.0f32], [1].into())?])?;
/// y.forward()?;
/// assert_eq!(y.to_vec::<f32>()?, [-0.5]);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn call_one(f: impl Function, inputs: &[&Variable]) -> Result<Variable> {
    let mut outputs = call(f, inputs)?;
    Ok(outputs.swap_remove(0))
}
