//! Functions that are given whole variables instead of typed slices: for user code that calls other functions, or that
//! is written in another language.

use super::{Needs, Shapes};
use crate::graph::Variable;
use nnrs_kernels::error::Result;

/// A function over whole variables; see [`Function::on_variables`](super::Function::on_variables).
///
/// The variables are stand-ins: they share data and gradient with those of the graph but have no history, and are
/// worth nothing after the call. All methods run on the thread that runs the graph, and no lock is held meanwhile.
/// They may run other graphs, but not the one they are part of.
///
/// ```
/// use nnrs::function::{Function, OnVariables, Shapes};
/// use nnrs::{function, functions as f, graph::mode, Result, Variable};
///
/// function! {
///     /// exp(x), by another function on whole arrays.
///     Through through in Special
///     inputs { x: "N-D array." }
///     args {}
///     outputs { y: "N-D array of x's shape." }
/// }
/// impl Function for Through {
///     fn on_variables(&self) -> Option<&dyn OnVariables> {
///         Some(self)
///     }
/// }
/// impl OnVariables for Through {
///     fn setup(&self, x: &[Variable]) -> Result<Shapes> {
///         Ok([x[0].shape()].into_iter().collect())
///     }
///     fn forward(&self, x: &[Variable], y: &[Variable]) -> Result<()> {
///         let made = mode::inner(mode::context(), || f::exp(&x[0]))?;
///         y[0].raw_data().copy_from(&made.data()?)
///     }
///     fn backward(&self, x: &[Variable], y: &[Variable], want: &[bool], accumulate: &[bool]) -> Result<()> {
///         let (dy, y) = (Variable::from_array(y[0].grad()), Variable::from_array(y[0].data()?));
///         let own = Variable::from_array(x[0].grad());
///         let made = mode::inner(mode::context(), || {
///             let g = f::mul2(&dy, &y, f::Mul2::default())?;
///             if accumulate[0] { f::add2(&own, &g, f::Add2::default()) } else { Ok(g) }
///         })?;
///         if want[0] { x[0].grad().copy_from(&made.data()?) } else { Ok(()) }
///     }
/// }
///
/// let x = Variable::from_slice(&[0.0f32, 1.0], [2].into())?.with_need_grad(true);
/// let y = through(&f::mul_scalar(&x, f::MulScalar { val: 2.0, inplace: false })?)?;
/// y.forward()?;
/// y.backward()?;
/// let e2 = 1.0f32.exp().powi(2);
/// assert!((y.to_vec::<f32>()?[1] - e2).abs() < 1e-5);
/// assert!((x.grad().to_vec::<f32>()?[1] - 2.0 * e2).abs() < 1e-5);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub trait OnVariables {
    /// Checks the inputs and gives the shapes of the outputs. Called when the node is made, and again before a run in
    /// which an input has another shape.
    fn setup(&self, x: &[Variable]) -> Result<Shapes>;

    /// Writes the data of `y`. May be called again for the same data, where it is recomputed.
    fn forward(&self, x: &[Variable], y: &[Variable]) -> Result<()>;

    /// Where `want[i]`, writes the gradient of `x[i]`, or adds to it where `accumulate[i]`.
    fn backward(&self, x: &[Variable], y: &[Variable], want: &[bool], accumulate: &[bool]) -> Result<()>;

    /// The data that `backward` reads when the gradients `want` are asked for.
    fn needs(&self, _want: &[bool]) -> Needs {
        Needs::ALL
    }
}
