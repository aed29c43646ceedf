//! `prelu`: x where not negative, a learned slope times x elsewhere.

use crate::function::array::sum_to;
use crate::function::elementwise::FormulaFunction;
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut, call_one};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::array::Data;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::expr::{Expr, Formula};
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::tile::Walk;
use smallvec::smallvec;

function! {
    /// Parametric rectified linear unit, `y = max(x0, 0) + x1 min(x0, 0)` with learned slopes x1 (He et al., 2015).
    PReLU prelu in Activation, any_device
    inputs {
        x0: "N-D array.",
        x1: "Slopes: one for all, or one for each place of the axis base_axis.",
    }
    args { base_axis: i64 = 1, "Axis of the slopes; may count from the end." }
    outputs { y: "N-D array of x0's shape." }
}

impl PReLU {
    /// The slopes' shape as it broadcasts against x.
    fn slopes(&self, x: &Shape, w: &Shape) -> Result<Shape> {
        let axis = x.axis(self.base_axis, "base_axis")?;
        if w.size() == 1 {
            return Ok(Shape::from([]));
        }
        if w.ndim() != 1 || w[0] != x[axis] {
            return Err(Error::shape(
                "x1",
                format!("one slope, or shape ({},), the size of x0 {x} at base_axis", x[axis]),
            )
            .actual(w));
        }
        Ok(x.iter().enumerate().skip(axis).map(|(i, &n)| if i == axis { n } else { 1 }).collect())
    }
}

fn formula(x: &Expr, w: &Expr) -> Expr {
    x.ge(0.0).select(x, w * x)
}

/// Gradients of x and, before the sum, of the slopes.
fn x_gradient(x: &Expr, w: &Expr, gy: &Expr) -> Expr {
    x.ge(0.0).select(gy, w * gy)
}

fn slope_gradient(x: &Expr, gy: &Expr) -> Expr {
    x.lt(0.0).select(gy * x, 0.0)
}

fn gradient_formula() -> Formula {
    Formula::new(3, |v| vec![Some(x_gradient(&v[0], &v[1], &v[2]))])
}

fn slope_formula() -> Formula {
    Formula::new(2, |v| vec![Some(slope_gradient(&v[0], &v[1]))])
}

impl Function for PReLU {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        self.slopes(&x[0], &x[1])?;
        Ok(smallvec![x[0].clone()])
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let slopes = self.slopes(x[0].shape, x[1].shape)?;
        let formula = Formula::new(2, |v| vec![Some(formula(&v[0], &v[1]))]);
        let w = (&x[1].data, Walk::new(&slopes, x[0].shape));
        ops::formula(&formula, &[(&x[0].data, Walk::Dense), w], &y[0].data, Output::Write)
    }

    /// The slopes' gradient, before it is summed.
    fn backward_scratch(&self, x: &[&Shape], _y: &[&Shape]) -> usize {
        x[0].size()
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        Some(Needs { x: if want[0] { 0b11 } else { 0b01 }, y: 0 })
    }

    fn backward(
        &self,
        run: &Run,
        x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(x0), Some(gy)) = (&x[0], &gy[0]) else { return Ok(()) };
        let slopes = self.slopes(x0.shape, run.shape(1))?;
        let (data, g) = ((&x0.data, Walk::Dense), (&gy.data, Walk::Dense));
        if let (Some(gx), Some(w)) = (&gx[0], &x[1]) {
            let w = (&w.data, Walk::new(&slopes, x0.shape));
            ops::formula(&gradient_formula(), &[data.clone(), w, g.clone()], &gx.data, gx.output)?;
        }
        // The slopes' gradient: products of all elements, then their sums.
        if let Some(gw) = &gx[1] {
            let parts = Data::new_at(x0.data.place(), run.dtype, x0.shape.size())?;
            ops::formula(&slope_formula(), &[data, g], &parts, Output::Write)?;
            ops::sum_to(&parts, x0.shape, &gw.data, &slopes, gw.output)?;
        }
        Ok(())
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, w, gy) = (&g.x[0], &g.x[1], &g.gy[0]);
        let slopes = self.slopes(&x.shape(), &w.shape())?;
        let gx =
            || call_one(FormulaFunction::new(gradient_formula()), &[x, &f::reshape(w, f::Reshape::to(&slopes))?, gy]);
        let gw = || {
            let parts = call_one(FormulaFunction::new(slope_formula()), &[x, gy])?;
            f::reshape(&sum_to(&parts, &slopes)?, f::Reshape::to(&w.shape()))
        };
        Ok(vec![g.want[0].then(gx).transpose()?, g.want[1].then(gw).transpose()?])
    }
}
