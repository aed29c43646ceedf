//! `shape`: the sizes of an array as an array.

use crate::function;
use crate::function::{ArgValue, Call, Described, Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::shape_of::ShapeOf;
use nnrs_kernels::shape::Shape as Sizes;

function! {
    /// The sizes of x, or those of its axes `start` to `end` (not included); ends beyond x's axes are cut. No gradient.
    Shape shape in Array, forward_on_any_device
    inputs { x: "N-D array." }
    args {
        start: Option<i64> = None, "The first axis; None: 0. It may count from the end.";
        end: Option<i64> = None, "The axis to end before; None or 0: all. It may count from the end."
    }
    outputs { shape: "1-D array." }
}

impl Function for Shape {
    fn resolve(&self, x: &[Sizes]) -> Result<Resolved> {
        let n = x[0].ndim() as i64;
        let axis = |a: i64| (if a < 0 { a.saturating_add(n) } else { a }).clamp(0, n) as usize;
        let start = axis(self.start.unwrap_or(0));
        let end = if self.end.unwrap_or(0) == 0 { x[0].ndim() } else { axis(self.end.unwrap_or(0)) };
        let sizes = x[0][start.min(end)..end].to_vec();
        Ok(Resolved::one([sizes.len()], ShapeOf(sizes)))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        Shape { start: Some(self.start.unwrap_or(0)), end: Some(self.end.unwrap_or(0)) }.arguments()
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn refuses_grad(&self) -> bool {
        true
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None])
    }
}
