//! `sum_pooling`: the sum of each window.

use super::pooling::{SumPoolingBackward, divisor, spec, sum_pooling_backward};
use crate::error::Result;
use crate::function::{Function, Grad, GradMut, Needs, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::shape::Shape;
use crate::{function, with_real};
use smallvec::smallvec;

function! {
    /// Sum of each window over the last two or three axes.
    SumPooling sum_pooling in Layer
    inputs { x: "N-D array; its last axes (before the channels, if channel_last) are pooled." }
    args {
        kernel: Vec<i64>, "Sizes of the window, for 2 or 3 axes.";
        stride: Option<Vec<i64>> = None, "Distance of windows; None: the kernel's sizes.";
        ignore_border: bool = true, "Leave out windows that reach over the far border; if not, they are cut.";
        pad: Option<Vec<i64>> = None, "Padding with zeros on both ends of each axis; None: none.";
        channel_last: bool = false, "Whether the channels are the last axis."
    }
    outputs { y: "Sums." }
}

impl Function for SumPooling {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        Ok(smallvec![spec!(self).pooling(&x[0])?.1])
    }

    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (p, _) = spec!(self).pooling(x[0].shape)?;
        let by = divisor(false, true);
        with_real!(run.dtype, T => p.sum_forward(x[0].slice::<T>(), y[0].slice(), by));
        Ok(())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(
        &self,
        run: &Run,
        _x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &mut gx[0]) else { return Ok(()) };
        let (p, _) = spec!(self).pooling(gx.shape)?;
        let (by, out) = (divisor(false, true), gx.output);
        with_real!(run.dtype, T => p.sum_backward(gy.slice::<T>(), gx.slice(), by, out));
        Ok(())
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let args = SumPoolingBackward {
            kernel: self.kernel.clone(),
            stride: self.stride.clone(),
            ignore_border: self.ignore_border,
            pad: self.pad.clone(),
            channel_last: self.channel_last,
            average: false,
            including_pad: true,
            shape: g.x[0].shape().iter().map(|&n| n as i64).collect(),
        };
        Ok(vec![Some(sum_pooling_backward(&g.gy[0], args)?)])
    }
}
