//! `prod` over axes. Its gradient never divides, so it is right where elements are zero.

use super::{over, used};
use crate::function::{ArgValue, Call, Function, Grad, Resolved, call_of};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::reduction as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Product over axes. The product of no elements is 1.
    Prod prod in Reduction, any_device
    inputs { x: "N-D array." }
    args {
        axis: Option<Vec<i64>> = None, "Axes to multiply over; None: all. They may count from the end.";
        keepdims: bool = false, "Whether the reduced axes stay, with size 1."
    }
    outputs { y: "x without the reduced axes." }
}

impl Function for Prod {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let over = over(&x[0], &self.axis)?;
        Ok(Resolved::one(over.output(self.keepdims), kernel::Prod(over)))
    }

    fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        used(self, &call_of::<kernel::Prod>(call).0)
    }

    /// The reduced axes become the last one, and the gradient goes down a tree of pairs.
    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let x = g.x[0].shape();
        if x.size() == 0 {
            return Ok(vec![Some(f::mul_scalar(&g.x[0], f::MulScalar { val: 0.0, inplace: false })?)]);
        }
        let mask = &g.call::<kernel::Prod>().0.mask;
        let (kept, over): (Vec<usize>, Vec<usize>) = (0..x.ndim()).partition(|&a| !mask[a]);
        let order: Vec<usize> = kept.iter().chain(&over).copied().collect();
        let columns: usize = over.iter().map(|&a| x[a]).product();
        let moved = f::transpose(&g.x[0], f::Transpose::by(&order))?;
        let rows = reshape(&moved, [x.size() / columns, columns])?;
        let gx = descend(&rows, reshape(&g.gy[0], [x.size() / columns, 1])?)?;
        let back: Vec<usize> = (0..x.ndim()).map(|a| order.iter().position(|&o| o == a).unwrap_or(a)).collect();
        let gx = f::reshape(&gx, f::Reshape::to(&moved.shape()))?;
        Ok(vec![Some(f::transpose(&gx, f::Transpose::by(&back))?)])
    }
}

fn reshape<const N: usize>(v: &Variable, shape: [usize; N]) -> Result<Variable> {
    f::reshape(v, f::Reshape::to(&shape.into()))
}

/// Multiplies the gradient of each row's product by the product of all other elements of the row. Going up, neighbours are multiplied
/// in pairs; going down, each half of a pair gets the pair's gradient times the other half.
fn descend(x: &Variable, gy: Variable) -> Result<Variable> {
    let rows = x.shape()[0];
    let (mut levels, mut p) = (Vec::new(), x.clone());
    while p.shape()[1] > 1 {
        let n = p.shape()[1];
        let half = n.div_ceil(2);
        let even = f::pad(
            &p,
            f::Pad { pad_width: vec![0, (2 * half - n) as i64].into(), constant_value: 1.0, ..Default::default() },
        )?;
        let pairs = reshape(&even, [rows, half, 2])?;
        let side = |i: i64| f::slice(&pairs, f::Slice::last(i, i + 1));
        p = reshape(&f::mul2(&side(0)?, &side(1)?, f::Mul2::default())?, [rows, half])?;
        levels.push((pairs, n));
    }
    let mut g = gy;
    for (pairs, n) in levels.into_iter().rev() {
        let half = pairs.shape()[1];
        let others = f::flip(&pairs, f::Flip { axes: Some(vec![2].into()) })?;
        let both = f::mul2(&reshape(&g, [rows, half, 1])?, &others, f::Mul2::default())?;
        g = f::slice(&reshape(&both, [rows, 2 * half])?, f::Slice::last(0, n as i64))?;
    }
    Ok(g)
}
