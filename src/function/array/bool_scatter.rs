//! `bool_scatter`: rows put where a mask is not zero. `bool_gather`: the reverse. `bool_fill`: a number where a mask is not zero.

use crate::function::{ArgValue, Call, Elementwise, Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::expr::Expr;
use nnrs_kernels::kernel::bool_scatter::{self as kernel, RowShape};
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Puts the rows of `input`, one after the other, where the mask is not zero; elsewhere the result is `output`, or 0.
    BoolScatter bool_scatter in Array, any_device
    inputs {
        input: "Rows, of shape (n, ..), n the number of places where the mask is not zero.",
        mask: "N-D array.",
        output [optional]: "What the result is elsewhere, of its shape; zeros by default. If no function has made it, it becomes the result."
    }
    args { }
    outputs { y: "N-D array of shape mask.shape + input.shape[1:]." }
}

function! {
    /// A number where the mask is not zero, x elsewhere.
    BoolFill bool_fill in Array
    inputs { data: "N-D array.", mask: "N-D array that broadcasts to data's shape." }
    args { value: f64 = 0.0, "The number." }
    outputs { output: "N-D array of data's shape." }
}

function! {
    /// The rows of `input` where the mask is not zero, in their order.
    BoolGather bool_gather in Array, any_device
    inputs { input: "N-D array of a shape that begins with the mask's.", mask: "N-D array." }
    args { rows: i64 = 0, "Number of rows, as many as there are places where the mask is not zero." }
    outputs { output: "Array of shape (rows,) where the mask has all axes of input, else (rows, size of one row)." }
}

impl Function for BoolScatter {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if x[0].ndim() == 0 {
            return Err(Error::shape("input", "one axis at least").actual(&x[0]));
        }
        let y: Shape = x[1].iter().chain(&x[0][1..]).copied().collect();
        match x.get(2).filter(|o| **o != y) {
            Some(o) => Err(Error::shape("output", format!("shape {y}")).actual(o)),
            None => {
                let rows = RowShape { n: x[0][0], size: x[0].size_from(1), places: x[1].size() };
                Ok(Resolved::one(y, kernel::BoolScatter(rows)))
            }
        }
    }

    fn rewrites_input(&self) -> Option<usize> {
        Some(2)
    }

    fn differentiable(&self, i: usize) -> bool {
        i != 1
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (gy, mask, input) = (&g.gy[0], &g.x[1], g.x[0].shape());
        let rows = BoolGather { rows: input[0] as i64 };
        let gathered = || f::reshape(&bool_gather(gy, mask, rows)?, f::Reshape::to(&input));
        let mut grads = vec![g.want[0].then(gathered).transpose()?, None];
        if g.x.len() > 2 {
            let wide: Shape = mask.shape().iter().copied().chain(input[1..].iter().map(|_| 1)).collect();
            let mask = f::reshape(mask, f::Reshape::to(&wide))?;
            grads.push(Some(bool_fill(gy, &mask, BoolFill { value: 0.0 })?));
        }
        Ok(grads)
    }
}

impl Function for BoolGather {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let n = x[1].ndim();
        if n > x[0].ndim() || x[0][..n] != x[1][..] {
            return Err(Error::shape("input", format!("a shape that begins with the mask's {}", x[1])).actual(&x[0]));
        }
        let rows = RowShape { n: self.rows.max(0) as usize, size: x[0].size_from(n), places: x[1].size() };
        let row = (n < x[0].ndim()).then_some(rows.size);
        let y: Shape = std::iter::once(rows.n).chain(row).collect();
        Ok(Resolved::one(y, kernel::BoolGather(rows)))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        Vec::new()
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let gx = bool_scatter(&g.gy[0], &g.x[1], None)?;
        Ok(vec![Some(f::reshape(&gx, f::Reshape::to(&g.x[0].shape()))?), None])
    }
}

impl Function for BoolFill {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if x[0].broadcast(&x[1]).as_ref() != Some(&x[0]) {
            return Err(Error::shape("mask", format!("a shape that broadcasts to data's {}", x[0])).actual(&x[1]));
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

impl Elementwise for BoolFill {
    fn formula(&self, x: &[Expr]) -> Expr {
        x[1].not_equal(0.0).select(self.value, &x[0])
    }
}
