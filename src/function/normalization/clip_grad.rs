//! `clip_grad_by_value`, `clip_grad_by_norm`: x itself; the gradient that flows back is limited.

use crate::function::{
    ArgValue, Call, Elementwise, Function, Grad, Resolved, Run, View, ViewMut, call_of, with_defaults,
};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::expr::Expr;
use nnrs_kernels::kernel::reshape::Copy;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// x itself; its gradient is clipped, `gx = minimum(maximum(gy, min), max)`.
    ClipGradByValue clip_grad_by_value in Normalization
    inputs {
        x: "N-D array.",
        min: "Least gradient: an array that broadcasts to x's shape. It has no gradient.",
        max: "Largest gradient, of x's shape likewise."
    }
    args {}
    outputs { y: "x itself, of its shape." }
}

function! {
    /// x itself; its gradient is scaled to a given norm (Pascanu et al., 2013), `gx = clip_norm gy / |gy|`, also where its own is less. A gradient of
    /// zeros stays.
    ClipGradByNorm clip_grad_by_norm in Normalization, forward_on_any_device
    inputs { x: "N-D array." }
    args {
        clip_norm: Option<f64> = None, "The Euclidean norm that the gradient gets; None: 1.";
        axes: Option<Vec<i64>> = None, "The axes to take the norm over; None: all. They may count from the end."
    }
    outputs { y: "x itself, of its shape." }
}

impl Function for ClipGradByValue {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        for (s, name) in x[1..].iter().zip(["min", "max"]) {
            if x[0].broadcast(s).as_ref() != Some(&x[0]) {
                return Err(Error::shape(name, format!("a shape that broadcasts to x's {}", x[0])).actual(s));
            }
        }
        Ok(Resolved::without_call(smallvec![x[0].clone()]))
    }

    fn elementwise(&self) -> Option<&dyn Elementwise> {
        Some(self)
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }
}

impl Elementwise for ClipGradByValue {
    fn formula(&self, x: &[Expr]) -> Expr {
        x[0].clone()
    }

    /// NaN stays.
    fn gradient(&self, x: &[Expr], _y: &Expr, gy: &Expr) -> Option<Vec<Option<Expr>>> {
        let above = gy.lt(&x[1]).select(&x[1], gy);
        Some(vec![Some(above.gt(&x[2]).select(&x[2], &above)), None, None])
    }
}

/// x itself; over which axes the norm of its gradient is.
struct NormedCopy {
    axes: Vec<i64>,
}

impl Call for NormedCopy {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        Copy.forward(run, x, y)
    }
}

impl ClipGradByNorm {
    fn clip(&self) -> f64 {
        self.clip_norm.unwrap_or(1.0)
    }

    /// All axes where none is named.
    fn axes(&self, x: &Shape) -> Result<Vec<i64>> {
        let all = (0..x.ndim() as i64).collect();
        let axes = self.axes.clone().unwrap_or(all);
        axes.iter().map(|&a| Ok(x.axis(a, "axes")? as i64)).collect()
    }
}

impl Function for ClipGradByNorm {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let mut axes = self.axes(&x[0])?;
        axes.sort_unstable();
        if axes.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(
                Error::arg("axes", "each axis once").actual(format!("{:?}", self.axes.clone().unwrap_or_default()))
            );
        }
        Ok(Resolved::one(x[0].clone(), NormedCopy { axes: self.axes(&x[0])? }))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        let all = call_of::<NormedCopy>(call).axes.clone();
        with_defaults(self, &[("clip_norm", ArgValue::Float(self.clip())), ("axes", ArgValue::Ints(all))])
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (gy, axis) = (&g.gy[0], Some(self.axes(&g.x[0].shape())?));
        let norm = f::norm(gy, f::Norm { axis, keepdims: true, ..Default::default() })?;
        // Where the norm is 0 so is each element, whatever it is divided by.
        let zero = f::equal_scalar(&norm, f::EqualScalar { val: 0.0 })?;
        let unit = f::div2(gy, &f::add2(&norm, &zero, f::Add2::default())?, f::Div2::default())?;
        Ok(vec![Some(f::mul_scalar(&unit, f::MulScalar { val: self.clip(), inplace: false })?)])
    }
}
