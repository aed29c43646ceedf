//! `where`: one of two arrays, as a condition says.

use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::expr::{Expr, Formula};
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::tile::Walk;
use smallvec::smallvec;

function! {
    /// x_true where the condition is not 0, x_false elsewhere. The condition may lack the last axes: then it chooses
    /// whole rows. It gets no gradient.
    Where r#where in Logical, any_device
    inputs {
        condition: "N-D array, M >= N >= 0, whose shape begins that of x_true.",
        x_true: "M-D array.",
        x_false: "M-D array of x_true's shape.",
    }
    args {}
    outputs { y: "M-D array." }
}

/// The condition's shape as it broadcasts.
fn spread(condition: &Shape, x: &Shape) -> Shape {
    condition.iter().copied().chain(std::iter::repeat_n(1, x.ndim() - condition.ndim())).collect()
}

impl Function for Where {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        if x[1] != x[2] {
            return Err(Error::shape("x_false", format!("shape {}, x_true's", x[1])).actual(&x[2]));
        }
        if !x[1].starts_with(&x[0]) {
            return Err(Error::shape("condition", format!("the first axes of x_true {}", x[1]))
                .actual(&x[0])
                .hint("the condition does not broadcast, but may lack the last axes"));
        }
        Ok(smallvec![x[1].clone()])
    }

    fn differentiable(&self, i: usize) -> bool {
        i > 0
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let shape = x[1].shape;
        let formula = Formula::new(3, |v| vec![Some(v[0].select(&v[1], &v[2]))]);
        let c = (&x[0].data, Walk::new(&spread(x[0].shape, shape), shape));
        let inputs = [c, (&x[1].data, Walk::Dense), (&x[2].data, Walk::Dense)];
        ops::formula(&formula, &inputs, &y[0].data, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 1, y: 0 })
    }

    fn backward(
        &self,
        _run: &Run,
        x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(c), Some(gy)) = (&x[0], &gy[0]) else { return Ok(()) };
        let spread = spread(c.shape, gy.shape);
        for (i, gx) in gx.iter().enumerate() {
            let Some(gx) = gx else { continue };
            let part = |c: &Expr, g: &Expr| if i == 1 { c.select(g, 0.0) } else { c.select(c.constant(0.0), g) };
            let formula = Formula::new(2, |v| vec![Some(part(&v[0], &v[1]))]);
            let c = (&c.data, Walk::new(&spread, gy.shape));
            ops::formula(&formula, &[c, (&gy.data, Walk::Dense)], &gx.data, gx.output)?;
        }
        Ok(())
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (c, gy) = (&g.x[0], &g.gy[0]);
        let zero = f::constant(f::Constant { val: 0.0, shape: gy.shape().iter().map(|&d| d as i64).collect() })?;
        Ok(vec![None, Some(r#where(c, gy, &zero)?), Some(r#where(c, &zero, gy)?)])
    }
}
