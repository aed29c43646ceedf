//! `spectral_norm` and `weight_normalization`: weights by their size, for the argument `apply_w` of other layers.

use super::argument_types::Init;
use super::declare::parametric;
use super::layer::LayerParameters;
use crate::functions as f;
use crate::graph::Variable;
use crate::initializer::Usual;
use crate::parameter::generator;
use nnrs_kernels::error::{Error, Result};

parametric! {
    /// Spectral normalization (Miyato et al., 2018): a weight over its largest singular value.
    ///
    /// ```
    /// use nnrs::{parametric as pf, Variable};
    /// let y = pf::spectral_norm("s", &Variable::new([8, 3, 4, 4]), pf::SpectralNorm::default())?;
    /// assert_eq!(y.shape(), [8, 3, 4, 4].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    SpectralNorm spectral_norm in "spectral-norm"
    inputs { w: "Weight." }
    required {}
    options {
        dim: i64 = 0, "Axis of the outputs, counted from 0.";
        itr: i64 = 1, "Steps of the power iteration that each forward pass makes, 1 to 10000.";
        eps: f64 = 1e-12, "Added before the root of the vectors' lengths.";
        test: bool = false, "Leave the vector as it is.";
        u_init: Init = Init::default(), "What the iteration begins with; by default normal.";
        fix_parameters: bool = true, "Not used; NNabla's. The vector is not trained.";
    }
    parameters { "u" "(w.shape[dim],)", statistics: "Singular vector." }
    returns "Variable of `w`'s shape."
    example ">>> spectral_norm(Variable((8, 3, 4, 4))).shape\n(8, 3, 4, 4)"
}

parametric! {
    /// Weight normalization (Salimans and Kingma, 2016): `g w / |w|`, with a norm and a scale for each index of `dim`.
    ///
    /// ```
    /// use nnrs::{parametric as pf, Variable};
    /// let w = Variable::from_slice(&[3.0f32, 4.0], [1, 2].into())?;
    /// let y = pf::weight_normalization("w", &w, pf::WeightNormalization::default())?;
    /// y.forward()?;
    /// assert_eq!(y.to_vec::<f32>()?, [3.0, 4.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    WeightNormalization weight_normalization in "wn"
    inputs { w: "Weight; with its values at the first call begins the scale." }
    required {}
    options {
        dim: i64 = 0, "Axis of the outputs.";
        eps: f64 = 1e-12, "Added before the root of the norm.";
        g_init: Init = Init::default(), "Initial scale; by default the norm, so that the weight does not change at first.";
        fix_parameters: bool = false, "Whether the scale stays as it is in training.";
    }
    parameters { "g" "(w.shape[dim],)": "Scale." }
    returns "Variable of `w`'s shape."
    example ">>> weight_normalization(Variable((8, 3, 4, 4))).shape\n(8, 3, 4, 4)"
}

impl SpectralNorm {
    fn build(&self, w: &Variable) -> Result<Vec<Variable>> {
        let shape = w.shape();
        let dim = usize::try_from(self.dim).ok().filter(|&d| d < shape.ndim());
        let wrong = || Error::arg("dim", format!("an axis of w {shape}, counted from 0")).actual(self.dim);
        let size = shape[dim.ok_or_else(wrong)?];
        let u = LayerParameters::default().untrained("u", &[size], &self.u_init, Usual::Normal(1.0))?;
        let Self { dim, itr, eps, test, .. } = *self;
        let mut made = f::spectral_norm(w, &u, f::SpectralNorm { dim, itr, eps, test, output_u: false })?;
        made.truncate(1);
        Ok(made)
    }
}

impl WeightNormalization {
    fn build(&self, w: &Variable) -> Result<Vec<Variable>> {
        let shape = w.shape();
        let size = shape[shape.axis(self.dim, "dim")?];
        let layer = LayerParameters { fixed: self.fix_parameters, ..Default::default() };
        let norms = generator().norms(w, self.dim, self.eps);
        let g = layer.parameter_or("g", &[size], &self.g_init, norms)?;
        Ok(vec![f::weight_normalization(w, &g, f::WeightNormalization { dim: self.dim, eps: self.eps })?])
    }
}
