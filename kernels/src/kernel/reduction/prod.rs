//! The product over axes.

use super::cpu::{prod_axes, prod_backward};
use super::{Reduced, cuda};
use crate::array::{Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::Result;
use crate::kernel::reduction::cuda::{DeviceReduction, reduce};
use crate::with_real;

/// The product over axes.
pub struct Prod(pub Reduced);

impl Call for Prod {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let Reduced { shape, mask, .. } = &self.0;
        if let Place::Gpu(_) = y[0].data.place() {
            return reduce(DeviceReduction::Product, &x[0].data, shape, mask, &y[0].data, 1.0, Output::Write);
        }
        with_real!(run.dtype, T => prod_axes(x[0].slice::<T>(), shape, mask, y[0].slice()));
        Ok(())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 1, y: 0 })
    }

    fn backward(&self, run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(x), Some(gy), Some(gx)) = (&x[0], &gy[0], &mut gx[0]) else { return Ok(()) };
        let (Reduced { shape, mask, .. }, output) = (&self.0, gx.output);
        if let Place::Gpu(_) = gx.data.place() {
            return cuda::product_backward(&x.data, shape, mask, &gy.data, &gx.data, output);
        }
        with_real!(run.dtype, T => prod_backward(x.slice::<T>(), shape, mask, gy.slice(), gx.slice(), output));
        Ok(())
    }
}
