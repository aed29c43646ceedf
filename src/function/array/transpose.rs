//! `transpose`: axes in another order.

use super::List;
use crate::function;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::transpose::{self as kernel, Permutation};
use nnrs_kernels::shape::Shape;

function! {
    /// Puts the axes into another order: axis i of the result is axis `axes[i]` of x.
    Transpose transpose in Array, any_device
    inputs { x: "N-D array." }
    args { axes: List, "The axes of x in their new order, each once. They may count from the end." }
    outputs { y: "N-D array." }
}

impl Transpose {
    /// With axes that count from the front.
    pub fn by(axes: &[usize]) -> Transpose {
        Transpose { axes: axes.into() }
    }

    fn order(&self, x: &Shape) -> Result<Permutation> {
        let order = self.axes.iter().map(|&a| x.axis(a, "axes")).collect::<Result<Permutation>>()?;
        if order.len() == x.ndim() && (0..x.ndim()).all(|a| order.contains(&a)) {
            return Ok(order);
        }
        let expected = format!("each of the {} axes of x {x} once", x.ndim());
        Err(Error::arg("axes", expected).actual(format!("{:?}", self.axes.0)))
    }
}

impl Function for Transpose {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let order = self.order(&x[0])?;
        let y: Shape = order.iter().map(|&a| x[0][a]).collect();
        let call = kernel::Transpose::new(order, &x[0]);
        Ok(Resolved::one(y, call))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let order = &g.call::<kernel::Transpose>().order;
        let back: Vec<usize> = (0..order.len()).map(|a| order.iter().position(|&o| o == a).unwrap_or(a)).collect();
        Ok(vec![Some(transpose(&g.gy[0], Transpose::by(&back))?)])
    }
}
