//! `spectral_norm`: a weight over its largest singular value.

use super::axes::check_shape;
use super::rule::{mul, sub};
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::spectral_norm as kernel;
use nnrs_kernels::shape::Shape;
use smallvec::SmallVec;

/// Steps that are taken at most: the iteration has come to its end long before, or never will.
const MOST_STEPS: usize = 10_000;

function! {
    /// Spectral normalization (Miyato et al., 2018): w over its spectral norm `s = u' W v`, where W is w with the axis `dim` first
    /// and all others as one, and u and v come from `itr` steps `v = unit(W' u)`, `u = unit(W v)`,
    /// `unit(a) = a / sqrt(|a|^2 + eps)`. Gradients take u and v as constants.
    SpectralNorm spectral_norm in Normalization, forward_on_any_device
    inputs {
        w: "Weight, an N-D array.",
        u: "What the iteration begins with, of shape (w.shape[dim],). Unless test, each forward pass writes the last u to it.",
    }
    args {
        dim: i64 = 0, "Axis of the outputs.";
        itr: i64 = 1, "Steps of the iteration, 1 to 10000.";
        eps: f64 = 1e-12, "Added before the root.";
        test: bool = false, "Leave u as it is.";
        output_u: bool = false, "Give the u that the iteration has begun with, too."
    }
    outputs { w_sn: "N-D array of w's shape.", u [variadic]: "With output_u the u that the iteration has begun with, of its shape." }
}

impl Function for SpectralNorm {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let dim = usize::try_from(self.dim).ok().filter(|&d| d < x[0].ndim());
        let Some(dim) = dim else {
            return Err(Error::arg("dim", format!("an axis of w {}, counted from 0", x[0])).actual(self.dim));
        };
        let steps = usize::try_from(self.itr).ok().filter(|n| (1..=MOST_STEPS).contains(n));
        let Some(steps) = steps else {
            return Err(Error::arg("itr", format!("1 to {MOST_STEPS}")).actual(self.itr));
        };
        let (outer, channels, inner) = (x[0].size_to(dim), x[0][dim], x[0].size_from(dim + 1));
        let u: Shape = [channels].into();
        check_shape("u", &x[1], &u)?;
        if x[0].size() == 0 {
            return Err(Error::shape("w", "at least one element").actual(&x[0]));
        }
        let mut shapes: SmallVec<[Shape; 1]> = [x[0].clone()].into_iter().collect();
        shapes.extend(self.output_u.then(|| u.clone()));
        shapes.extend([u, [outer * inner].into()]);
        let (update, gives_first) = (!self.test, self.output_u);
        let call = kernel::SpectralNorm { outer, channels, inner, steps, eps: self.eps, update, gives_first };
        Ok(Resolved::new(shapes, call))
    }

    fn hidden_outputs(&self) -> usize {
        2
    }

    fn has_state(&self) -> bool {
        !self.test
    }

    fn updates_input(&self, i: usize) -> bool {
        i == 1 && !self.test
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (w, gy, c) = (&g.x[0], &g.gy[0], g.call::<kernel::SpectralNorm>());
        let last = g.y.len();
        let reshape = |v: &Variable, s: &Shape| f::reshape(v, f::Reshape::to(s));
        let u = reshape(&g.y[last - 2], &[1, c.channels, 1].into())?;
        let v = reshape(&g.y[last - 1], &[c.outer, 1, c.inner].into())?;
        let slope = reshape(&mul(&u, &v)?, &w.shape())?;
        let axes: Vec<i64> = (0..w.ndim() as i64).collect();
        let total = |v: &Variable| f::sum(v, f::Sum { axis: Some(axes.clone()), keepdims: true });
        let norm = total(&mul(w, &slope)?)?;
        let inverse = f::pow_scalar(&norm, f::PowScalar { val: -1.0, inplace: false })?;
        let along = mul(&total(&mul(gy, w)?)?, &inverse)?;
        Ok(vec![Some(mul(&sub(gy, &mul(&slope, &along)?)?, &inverse)?), None])
    }
}
