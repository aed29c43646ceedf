//! `sum` over axes.

use super::{mask, reduced};
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Sum over axes.
    Sum sum in Reduction, any_device
    inputs { x: "N-D array." }
    args {
        axis: Option<Vec<i64>> = None, "Axes to sum over; None: all. They may count from the end.";
        keepdims: bool = false, "Whether the summed axes stay, with size 1."
    }
    outputs { y: "x without the summed axes." }
}

impl Function for Sum {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        Ok(smallvec![reduced(&x[0], &mask(&x[0], &self.axis)?, self.keepdims)])
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        ops::sum(&x[0].data, x[0].shape, &mask(x[0].shape, &self.axis)?, &y[0].data, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(
        &self,
        _run: &Run,
        _x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &mut gx[0]) else { return Ok(()) };
        let kept = reduced(gx.shape, &mask(gx.shape, &self.axis)?, true);
        ops::broadcast(&gy.data, &kept, &gx.data, gx.shape, gx.output)
    }

    fn grad_repeats(&self, x: &Shape) -> Option<Shape> {
        Some(reduced(x, &mask(x, &self.axis).ok()?, true))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(spread(&g.gy[0], &g.x[0].shape(), &self.axis)?)])
    }
}

/// Repeats a reduced gradient over the axes of `x` that were reduced.
pub(crate) fn spread(gy: &Variable, x: &Shape, axis: &Option<Vec<i64>>) -> Result<Variable> {
    let kept = reduced(x, &mask(x, axis)?, true);
    let gy = f::reshape(gy, f::Reshape::to(&kept))?;
    f::broadcast(&gy, f::Broadcast::to(x))
}
