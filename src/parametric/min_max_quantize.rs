//! `min_max_quantize`, which keeps the range.

use super::argument_types::{GivenArrays, Init, Level};
use super::declare::parametric;
use super::layer::LayerParameters;
use super::quantized::Quantizer;
use crate::functions as f;
use crate::graph::{Variable, apply_into};
use crate::initializer::{Initializer, Usual};
use crate::parameter::use_parameter;
use nnrs_kernels::array::NdArray;
use nnrs_kernels::error::Result;
use nnrs_kernels::shape::Shape;
use std::sync::Arc;

parametric! {
    /// Numbers of a range as levels (Jacob et al., 2018), see `functions.min_max_quantize`; the range is learned, or follows
    /// the data.
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let y = pf::min_max_quantize("q", &Variable::new([8, 3]), pf::MinMaxQuantize::default())?;
    /// assert_eq!(y.shape(), [8, 3].into());
    /// assert_eq!(parameter::get_parameter("q/min_max_quantize/qr_max").unwrap().to_vec::<f32>()?, [6.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    MinMaxQuantize min_max_quantize in "min_max_quantize"
    inputs { x: "N-D array." }
    required {}
    options {
        ql_min: Level = Level::Whole(0), "Least level: a number, or a variable of a shape that broadcasts to x's.";
        ql_max: Level = Level::Whole(255), "Largest level, likewise.";
        decay: f64 = 0.999, "How much of the range each forward pass keeps, with x_min_max and ema.";
        x_min_max: bool = false, "Take the range from x.";
        ema: bool = false, "The range is a moving average.";
        ste_fine_grained: bool = true, "Whether x beyond the range has gradient 0.";
        eps: f64 = 0.01, "The least size of the range.";
        qr_min_init: Init = Init::default(), "Initial least number of the range; by default -6.";
        qr_max_init: Init = Init::default(), "Initial largest number of the range; by default 6.";
        fix_parameters: bool = false, "Whether the range stays as it is in training.";
        outputs: GivenArrays = GivenArrays::default(), "Arrays for the outputs' data.";
    }
    parameters {
        "ql_min" "(1, ..)", statistics: "Least level, where a number is given.";
        "ql_max" "(1, ..)", statistics: "Largest level, where a number is given.";
        "qr_min" "ql_min.shape": "Least number of the range; not trained with x_min_max and ema.";
        "qr_max" "ql_min.shape": "Largest number of the range; not trained with x_min_max and ema.";
    }
    returns "Variable of `x`'s shape."
    example ">>> min_max_quantize(Variable((8, 3))).shape\n(8, 3)"
}

/// The variable of a level, for an x of `ndim` axes. What is made of a number has the number's own type.
fn level(name: &str, level: &Level, ndim: usize) -> Result<Variable> {
    let new = |init: &dyn Initializer| use_parameter(name, vec![1; ndim], init, false, false);
    match *level {
        Level::Whole(number) => new(&|s: &Shape| NdArray::from_slice(&vec![number; s.size()], s.clone())),
        Level::Number(number) => new(&|s: &Shape| NdArray::from_slice(&vec![number; s.size()], s.clone())),
        Level::Of(ref v) => Ok(v.clone()),
    }
}

impl MinMaxQuantize {
    fn build(&self, x: &Variable) -> Result<Vec<Variable>> {
        let ql_min = level("ql_min", &self.ql_min, x.ndim())?;
        let ql_max = level("ql_max", &self.ql_max, x.ndim())?;
        let layer = LayerParameters { fixed: self.fix_parameters, ..Default::default() };
        let (shape, is_trained) = (ql_min.shape(), !(self.x_min_max && self.ema));
        let qr = |name: &str, init: &Init, usual: f64| {
            layer.used_as_trained(name, &shape, init, Usual::Constant(usual), is_trained)
        };
        let (qr_min, qr_max) = (qr("qr_min", &self.qr_min_init, -6.0)?, qr("qr_max", &self.qr_max_init, 6.0)?);
        let rule = f::MinMaxQuantize {
            decay: self.decay,
            x_min_max: self.x_min_max,
            ema: self.ema,
            ste_fine_grained: self.ste_fine_grained,
            eps: self.eps,
        };
        let inputs = [x, &qr_min, &qr_max, &ql_min, &ql_max];
        let mut made = apply_into(Arc::new(rule), &inputs, self.arrays(&shape), None)?;
        made.truncate(1);
        Ok(made)
    }

    /// Arrays for all outputs, where some are given: the ends of the range that x is clipped to are outputs, too.
    fn arrays(&self, range: &Shape) -> Option<Vec<NdArray>> {
        let given = self.outputs.0.as_ref()?;
        let ends = [NdArray::new(range.clone()), NdArray::new(range.clone())];
        Some(given.iter().cloned().chain(ends).collect())
    }
}

/// Quantizes a parameter by a range in the scope `scope`.
pub(super) struct InRange {
    pub scope: &'static str,
    pub rule: MinMaxQuantize,
}

impl Quantizer for InRange {
    fn apply(self, parameter: &Variable, into: NdArray) -> Result<Variable> {
        min_max_quantize(self.scope, parameter, MinMaxQuantize { outputs: GivenArrays(Some(vec![into])), ..self.rule })
    }
}
