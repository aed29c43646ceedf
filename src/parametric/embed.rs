//! `embed`: rows of a table.

use super::argument_types::{Apply, Init, Size};
use super::declare::parametric;
use super::layer::LayerParameters;
use crate::functions as f;
use crate::graph::Variable;
use crate::initializer::Usual;
use nnrs_kernels::error::Result;

parametric! {
    /// Rows of a table of features, looked up by index.
    ///
    /// ```
    /// use nnrs::{parametric as pf, Variable};
    /// let words = Variable::from_slice(&[3i32, 0, 3, 1], [2, 2].into())?;
    /// assert_eq!(pf::embed("e", &words, 10, 4, pf::Embed::default())?.shape(), [2, 2, 4].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    Embed embed in "embed"
    inputs { inp: "Indices from 0 to `n_inputs - 1`, of any shape." }
    required {
        n_inputs: Size, "Number of rows (words, say).";
        n_features: Size, "Number of features of each.";
    }
    options {
        initializer: Init = Init::default(), "Initial table; by default uniform from -sqrt(3) to sqrt(3).";
        fix_parameters: bool = false, "Whether the table stays as it is in training.";
        apply_w: Apply = Apply::default(), "Function applied to the table before its use.";
    }
    parameters { "W" "(n_inputs, n_features)": "One row of features for each index." }
    returns "Variable of shape `inp.shape + (n_features,)`."
    example ">>> embed(Variable((2, 3)), 10, 4).shape\n(2, 3, 4)"
}

impl Embed {
    fn build(&self, x: &Variable, Size(n_inputs): Size, Size(n_features): Size) -> Result<Vec<Variable>> {
        let layer = LayerParameters { fixed: self.fix_parameters, ..Default::default() };
        let usual = Usual::Uniform(-3f64.sqrt(), 3f64.sqrt());
        let w = layer.weight(&[n_inputs, n_features], &self.initializer, usual, &self.apply_w)?;
        Ok(vec![f::embed(x, &w)?])
    }
}
