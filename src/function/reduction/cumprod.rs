//! `cumprod`: products along an axis up to each element. Its gradient never divides, so it is right where elements are zero.

use crate::function::{ArgValue, Call, Described, Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::cumprod as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Cumulative product along an axis, `y[i] = x[0] .. x[i]`.
    CumProd cumprod in Reduction, forward_on_any_device
    inputs { x: "N-D array." }
    args {
        axis: Option<i64> = None, "The axis; None: 0. It may count from the end.";
        exclusive: bool = false, "Leave each element out of its own product: `y[0]` is 1.";
        reverse: bool = false, "Begin at the end: `y[i]` is the product from there down to `x[i]`."
    }
    outputs { y: "N-D array of x's shape." }
}

function! {
    /// `y[i] = a[i] y[i - 1] + b[i]` along an axis, from `y[-1] = 0` on. Internal: not in the registry.
    Recurrence recurrence in Reduction, forward_on_any_device
    inputs { a: "Factors.", b: "What is added." }
    args {
        axis: i64, "The axis.";
        reverse: bool = false, "Begin at the end."
    }
    outputs { y: "N-D array of a's shape." }
}

/// Each element in the place of the next one in the direction of the work; the first place gets 0.
fn delayed(v: &Variable, axis: i64, reverse: bool) -> Result<Variable> {
    let (shape, a) = (v.shape(), axis as usize);
    let n = shape[a] as i64;
    let (from, to) = if reverse { (1, n) } else { (0, n - 1) };
    let part = |i: usize, cut: i64, whole: i64| if i == a { cut } else { whole };
    let start: Vec<i64> = (0..shape.ndim()).map(|i| part(i, from, 0)).collect();
    let stop: Vec<i64> = shape.iter().enumerate().map(|(i, &n)| part(i, to, n as i64)).collect();
    let rest = f::slice(v, f::Slice { start: Some(start.into()), stop: Some(stop.into()), step: None })?;
    let widths: Vec<i64> = (0..shape.ndim()).flat_map(|i| [part(i, 1 - from, 0), part(i, from, 0)]).collect();
    f::pad(&rest, f::Pad { pad_width: widths.into(), ..Default::default() })
}

impl Function for CumProd {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let axis = x[0].axis(self.axis.unwrap_or(0), "axis")?;
        Ok(Resolved::one(x[0].clone(), kernel::CumProd::new(&x[0], axis, self.exclusive, self.reverse)))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        CumProd { axis: Some(self.axis.unwrap_or(0)), ..self.clone() }.arguments()
    }

    /// The product of the elements before, times what the gradients behind give: a recurrence from the end.
    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, gy) = (&g.x[0], &g.gy[0]);
        if x.shape().size() == 0 {
            return Ok(vec![Some(gy.clone())]);
        }
        let axis = x.shape().axis(self.axis.unwrap_or(0), "axis")? as i64;
        let before = cumprod(x, CumProd { exclusive: true, ..self.clone() })?;
        let back = Recurrence { axis, reverse: !self.reverse };
        // From the element behind on; where elements are left out of their own products, its gradient too.
        let delay = |v: &Variable| delayed(v, axis, !self.reverse);
        let added = if self.exclusive { delay(gy)? } else { gy.clone() };
        let behind = recurrence(&delay(x)?, &added, back)?;
        Ok(vec![Some(f::mul2(&before, &behind, f::Mul2::default())?)])
    }
}

impl Function for Recurrence {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let axis = x[0].axis(self.axis, "axis")?;
        if x[0] != x[1] {
            return Err(Error::shape("b", format!("shape {}, as a", x[0])).actual(&x[1]));
        }
        Ok(Resolved::one(x[0].clone(), kernel::Recurrence::new(&x[0], axis, self.reverse)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (a, axis) = (&g.x[0], self.axis);
        let back = Recurrence { axis, reverse: !self.reverse };
        let gb = recurrence(&delayed(a, axis, !self.reverse)?, &g.gy[0], back)?;
        let ga = || f::mul2(&gb, &delayed(&g.y[0], axis, self.reverse)?, f::Mul2::default());
        Ok(vec![g.want[0].then(ga).transpose()?, Some(gb)])
    }
}
