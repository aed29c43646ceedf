//! `prelu`: a rectified linear unit with learned slopes.

use super::argument_types::Init;
use super::declare::parametric;
use super::layer::LayerParameters;
use crate::functions as f;
use crate::graph::Variable;
use crate::initializer::Usual;
use nnrs_kernels::error::Result;

parametric! {
    /// Parametric rectified linear unit, `y = max(x, 0) + slope min(x, 0)` with learned slopes (He et al., 2015).
    ///
    /// ```
    /// use nnrs::{parametric as pf, Variable};
    /// let x = Variable::from_slice(&[-4.0f32, 3.0], [1, 2].into())?;
    /// let y = pf::prelu("p", &x, pf::PReLU::default())?;
    /// y.forward()?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 3.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    PReLU prelu in "prelu"
    inputs { inp: "N-D array." }
    required {}
    options {
        base_axis: i64 = 1, "The axis with slopes of its own, where they are not shared.";
        shared: bool = true, "Whether there is one slope for all.";
        fix_parameters: bool = false, "Whether the slopes stay as they are in training.";
        slope_init: Init = Init::default(), "Initial slopes; by default 0.25.";
    }
    parameters { "slope" "() if shared else (inp.shape[base_axis],)": "Slopes for negative values." }
    returns "Variable of `inp`'s shape."
    example ">>> prelu(Variable((8, 3, 4)), shared=False).shape\n(8, 3, 4)"
}

impl PReLU {
    fn build(&self, x: &Variable) -> Result<Vec<Variable>> {
        let shape = x.shape();
        let sizes = if self.shared { vec![] } else { vec![shape[shape.axis(self.base_axis, "base_axis")?]] };
        let layer = LayerParameters { fixed: self.fix_parameters, ..Default::default() };
        let slope = layer.parameter("slope", &sizes, &self.slope_init, Usual::Constant(0.25))?;
        Ok(vec![f::prelu(x, &slope, f::PReLU { base_axis: self.base_axis })?])
    }
}
