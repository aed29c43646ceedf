//! `reshape`: the same elements under another shape.

use crate::function;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::reshape as kernel;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Another shape for the same elements. One negative size is inferred.
    Reshape reshape in Array, any_device
    inputs { x: "N-D array." }
    args {
        shape: Vec<i64>, "Sizes of the result; one of them may be -1.";
        inplace: bool = true, "Whether the result is x's memory; if not, a copy."
    }
    outputs { y: "The elements of x in the new shape." }
}

impl Reshape {
    /// To a known shape.
    pub fn to(shape: &Shape) -> Reshape {
        Reshape { shape: shape.iter().map(|&d| d as i64).collect(), inplace: true }
    }

    fn sizes(&self, x: &Shape) -> Option<Shape> {
        let sizes = self.shape.iter().filter(|d| **d >= 0);
        let known = sizes.fold(1, |n: usize, d| n.saturating_mul(*d as usize));
        let open = self.shape.iter().filter(|d| **d < 0).count();
        let size = x.size();
        let inferred = size.checked_div(known).unwrap_or(0);
        let y: Shape = self.shape.iter().map(|&d| if d < 0 { inferred } else { d as usize }).collect();
        let clear = open == 0 || (open == 1 && known > 0);
        (clear && y.size() == size).then_some(y)
    }
}

impl Function for Reshape {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let fail = || {
            Error::shape(
                "shape",
                format!("sizes with the {} elements of x {}, at most one of them negative", x[0].size(), x[0]),
            )
            .actual(format!("{:?}", self.shape))
        };
        let y = self.sizes(&x[0]).ok_or_else(fail)?;
        Ok(if self.inplace { Resolved::without_call(smallvec![y]) } else { Resolved::one(y, kernel::Reshape) })
    }

    fn is_view(&self) -> bool {
        self.inplace
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(reshape(&g.gy[0], Reshape::to(&g.x[0].shape()))?)])
    }
}
