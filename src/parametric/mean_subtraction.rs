//! `mean_subtraction`, which keeps a running mean.

use super::argument_types::Inits;
use super::declare::parametric;
use super::layer::LayerParameters;
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::Result;
use nnrs_kernels::shape::Shape;

parametric! {
    /// Subtracts the running mean of all samples so far: the mean over the axes before `base_axis`.
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let y = pf::mean_subtraction("m", &Variable::new([8, 3, 4]), pf::MeanSubtraction::default())?;
    /// assert_eq!((y.shape(), parameter::get_parameters().len()), ([8, 3, 4].into(), 0));
    /// assert_eq!(parameter::get_all_parameters().len(), 2);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    MeanSubtraction mean_subtraction in "mean_subtraction"
    inputs { inp: "Input." }
    required {}
    options {
        base_axis: i64 = 1, "The axes before it number the samples.";
        update_running_mean: bool = true, "Move the running mean in each forward pass.";
        fix_parameters: bool = false, "Ignored: the running mean is no trained parameter.";
    }
    parameters {
        "mean" "inp.shape[base_axis:]", statistics: "Running mean.";
        "t" "(1,)", statistics: "Number of batches that it is of.";
    }
    returns "Variable of `inp`'s shape."
    example ">>> mean_subtraction(Variable((8, 3, 4))).shape\n(8, 3, 4)"
}

impl MeanSubtraction {
    fn build(&self, x: &Variable) -> Result<Vec<Variable>> {
        let shape = x.shape();
        let base = shape.axis(self.base_axis, "base_axis")?;
        let layer = LayerParameters::default();
        let mean = layer.statistic("mean", &Shape::from(&shape[base..]), &Inits::default(), 0.0)?;
        let t = layer.statistic("t", &[1].into(), &Inits::default(), 0.0)?;
        let rule = f::MeanSubtraction { base_axis: self.base_axis, update_running_mean: self.update_running_mean };
        Ok(vec![f::mean_subtraction(x, &mean, &t, rule)?])
    }
}
