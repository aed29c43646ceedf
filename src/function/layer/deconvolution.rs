//! `deconvolution`: the transpose of a convolution, and so also the gradient of its data.

use super::convolution::with_bias;
use super::convolution_weight_grad::{ConvolutionWeightGrad, convolution_weight_grad};
use super::spatial::{Sizes, check_bias, sized, spec};
use crate::function::{Function, Grad, GradMut, Needs, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Result;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Transposed convolution: each element of x adds its multiple of the kernel to y. It is what carries a gradient back
    /// through a convolution with the same arguments.
    /// Spatial sizes become `stride (size - 1) + dilation (kernel - 1) + 1 - 2 pad + output_padding`.
    Deconvolution deconvolution in Layer, any_device
    inputs {
        x: "Images of shape (.., C, spatial..) with base_axis leading axes; (.., spatial.., C) if channel_last.",
        weight: "Kernels of shape (C, O / group, kernel..); (C, kernel.., O / group) if channel_last.",
        bias [optional]: "Bias of shape (O,).",
    }
    args {
        base_axis: i64 = 1, "Number of leading axes that only repeat the deconvolution; may count from the end.";
        pad: Option<Vec<i64>> = None, "What is cut off both ends of each spatial axis of y; None: nothing.";
        stride: Option<Vec<i64>> = None, "Distance in y of neighbours in x on each spatial axis; None: 1.";
        dilation: Option<Vec<i64>> = None, "Distance of a kernel's elements on each spatial axis; None: 1.";
        group: i64 = 1, "Number of groups of channels that are treated apart.";
        channel_last: bool = false, "Whether the channels are the last axis.";
        output_padding: Option<Vec<i64>> = None, "Added to the end of each spatial axis of y, less than stride; None: 0."
    }
    outputs { y: "Images of shape (.., O, new spatial..); channels last if channel_last." }
}

impl Deconvolution {
    fn sizes(&self, x: &Shape, w: &Shape) -> Result<Sizes> {
        spec!(self).deconvolution(x, w, self.output_padding.as_deref())
    }

    /// The one that turns the output's shape of a convolution into its input's.
    pub(super) fn of(s: &Sizes) -> Deconvolution {
        sized!(Deconvolution, s, output_padding: Some(s.output_padding()))
    }
}

impl Function for Deconvolution {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let s = self.sizes(&x[0], &x[1])?;
        check_bias(x.get(2), s.in_channels)?;
        Ok(smallvec![s.input_shape()])
    }

    fn multiplications(&self, x: &[Shape]) -> f64 {
        x[0].size() as f64 * (x[1].size() / x[1][0].max(1)) as f64
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let s = self.sizes(x[0].shape, x[1].shape)?;
        s.transposed(&x[0].data, &x[1].data, x.get(2).map(|b| &b.data), &y[0].data)
    }

    fn scratch(&self, x: &[&Shape], _y: &[&Shape], dtype: DType) -> [usize; 2] {
        let [forward, backward] = self.sizes(x[0], x[1]).map_or([0; 2], |s| s.scratch(dtype));
        [backward, forward.max(backward)]
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        Some(Needs { x: (want[0] as u32) << 1 | want[1] as u32, y: 0 })
    }

    fn backward(
        &self,
        run: &Run,
        x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let Some(gy) = &gy[0] else { return Ok(()) };
        let s = self.sizes(run.shape(0), run.shape(1))?;
        if let (Some(gx), Some(w)) = (&gx[0], &x[1]) {
            s.forward_to(&gy.data, &w.data, &gx.data, gx.output)?;
        }
        if let (Some(gw), Some(x)) = (&gx[1], &x[0]) {
            s.backward_weight(&x.data, &gy.data, &gw.data, gw.output)?;
        }
        if let Some(Some(gb)) = gx.get(2) {
            s.sum_channels(&gy.data, s.in_channels, &gb.data, gb.output)?;
        }
        Ok(())
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, w, gy) = (&g.x[0], &g.x[1], &g.gy[0]);
        let s = self.sizes(&x.shape(), &w.shape())?;
        let gx = g.want[0].then(|| f::convolution(gy, w, None, f::Convolution::of(&s))).transpose()?;
        let gw = g.want[1].then(|| convolution_weight_grad(gy, x, ConvolutionWeightGrad::of(&s))).transpose()?;
        with_bias(vec![gx, gw], g, &s)
    }
}
