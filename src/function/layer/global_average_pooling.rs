//! `global_average_pooling`: the mean of each image's channel.

use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::global_average_pooling as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Mean over all axes after the first two.
    GlobalAveragePooling global_average_pooling in Layer, any_device
    inputs { x: "Array of shape (N, C, ..)." }
    args {}
    outputs { y: "Array of shape (N, C, 1, 1)." }
}

impl Function for GlobalAveragePooling {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if x[0].ndim() < 2 {
            return Err(Error::shape("x", "two axes at least, (N, C, ..)").actual(&x[0]));
        }
        let call = kernel::GlobalAveragePooling { rows: x[0].size_to(2), n: x[0].size_from(2) };
        Ok(Resolved::one([x[0][0], x[0][1], 1, 1], call))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let x = g.x[0].shape();
        let ones: Shape = x.iter().enumerate().map(|(i, &n)| if i < 2 { n } else { 1 }).collect();
        let gy = f::reshape(&g.gy[0], f::Reshape::to(&ones))?;
        let all = f::broadcast(&gy, f::Broadcast { shape: x.iter().map(|&n| n as i64).collect() })?;
        let val = 1.0 / g.call::<kernel::GlobalAveragePooling>().n.max(1) as f64;
        Ok(vec![Some(f::mul_scalar(&all, f::MulScalar { val, inplace: false })?)])
    }
}
