//! `prelu`: x where not negative, a learned slope times x elsewhere.

use crate::function::array::sum_to;
use crate::function::elementwise::FormulaFunction;
use crate::function::{Function, Grad, Resolved, call_one};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::prelu as kernel;
use nnrs_kernels::shape::Shape;

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

impl Function for PReLU {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let slopes = self.slopes(&x[0], &x[1])?;
        Ok(Resolved::one(x[0].clone(), kernel::PReLU { shape: x[0].clone(), slopes }))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, w, gy) = (&g.x[0], &g.x[1], &g.gy[0]);
        let slopes = &g.call::<kernel::PReLU>().slopes;
        let gx = || {
            let w = f::reshape(w, f::Reshape::to(slopes))?;
            call_one(FormulaFunction::new(kernel::x_gradient()), &[x, &w, gy])
        };
        let gw = || {
            let parts = call_one(FormulaFunction::new(kernel::slope_gradient()), &[x, gy])?;
            f::reshape(&sum_to(&parts, slopes)?, f::Reshape::to(&w.shape()))
        };
        Ok(vec![g.want[0].then(gx).transpose()?, g.want[1].then(gw).transpose()?])
    }
}
