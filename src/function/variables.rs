//! Functions that are given whole variables instead of typed slices: for user code that calls other functions, or that
//! is written in another language.

use super::Shapes;
use crate::error::Result;
use crate::graph::Variable;

/// A function over whole variables; see [`Function::on_variables`](super::Function::on_variables).
///
/// The variables are stand-ins: they share data and gradient with those of the graph but have no history, and are
/// worth nothing after the call. All methods run on the thread that runs the graph, and no lock is held meanwhile.
/// They may run other graphs, but not the one they are part of.
pub trait OnVariables {
    /// Checks the inputs and gives the shapes of the outputs. Called when the node is made, and again before a run in
    /// which an input has another shape.
    fn setup(&self, x: &[Variable]) -> Result<Shapes>;

    /// Writes the data of `y`. May be called again for the same data, where it is recomputed.
    fn forward(&self, x: &[Variable], y: &[Variable]) -> Result<()>;

    /// Where `want[i]`, writes the gradient of `x[i]`, or adds to it where `accumulate[i]`.
    fn backward(&self, x: &[Variable], y: &[Variable], want: &[bool], accumulate: &[bool]) -> Result<()>;
}
