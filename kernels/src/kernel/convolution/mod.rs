//! Convolutions over any number of spatial axes, their transposes, and the gradient of their weight.

pub mod cpu;
mod cuda;
pub mod winograd;
mod work;

use crate::array::Output;
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Shape;
use smallvec::SmallVec;

/// One number for each spatial axis.
pub type Dims = SmallVec<[usize; 3]>;

/// One to three numbers as those of the last of three axes.
pub fn three(d: &[usize], fill: usize) -> [usize; 3] {
    let missing = 3 - d.len();
    std::array::from_fn(|i| if i < missing { fill } else { d[i - missing] })
}

/// All sizes of a convolution from `input` to `output`. A deconvolution is one read backwards: its x has the place of
/// the output.
pub struct ConvolutionSizes {
    /// The axes that only repeat the convolution, and their size.
    pub lead: Shape,
    pub batch: usize,
    pub group: usize,
    /// Of all groups.
    pub in_channels: usize,
    pub out_channels: usize,
    pub input: Dims,
    pub output: Dims,
    pub kernel: Dims,
    pub stride: Dims,
    pub pad: Dims,
    pub dilation: Dims,
    pub channel_last: bool,
}

impl ConvolutionSizes {
    /// Positions that the kernel spans on axis `i`.
    pub fn window(&self, i: usize) -> i128 {
        self.dilation[i] as i128 * (self.kernel[i] as i128 - 1) + 1
    }

    /// Shape of the image that the convolution reads.
    pub fn input_shape(&self) -> Shape {
        self.shape(self.in_channels, &self.input)
    }

    /// Shape of the image that the convolution makes.
    pub fn output_shape(&self) -> Shape {
        self.shape(self.out_channels, &self.output)
    }

    fn shape(&self, channels: usize, spatial: &Dims) -> Shape {
        let [first, last] = if self.channel_last { [None, Some(channels)] } else { [Some(channels), None] };
        self.lead.iter().copied().chain(first).chain(spatial.iter().copied()).chain(last).collect()
    }

    pub fn weight_shape(&self) -> Shape {
        let each = self.in_channels / self.group;
        let [first, last] = if self.channel_last { [None, Some(each)] } else { [Some(each), None] };
        [self.out_channels].into_iter().chain(first).chain(self.kernel.iter().copied()).chain(last).collect()
    }

    /// The numbers that make a deconvolution's result as large as the input.
    pub fn output_padding(&self) -> Vec<i64> {
        let rest = |i: usize| (self.input[i] + 2 * self.pad[i] - self.window(i) as usize) % self.stride[i];
        (0..self.kernel.len()).map(|i| rest(i) as i64).collect()
    }

    /// No images at all: sums over them are zeros, however large one would be.
    fn is_empty(&self) -> bool {
        self.batch == 0
    }

    fn multiplications(&self) -> f64 {
        let w = self.weight_shape();
        self.output_shape().size() as f64 * (w.size() / self.out_channels.max(1)) as f64
    }
}

/// What the gradients of x and of the weight read: each the other.
fn data_and_weight(want: &[bool]) -> Option<Needs> {
    Some(Needs { x: (want[0] as u32) << 1 | want[1] as u32, y: 0 })
}

/// The convolution of x by a weight, and a bias.
pub struct Convolution(pub ConvolutionSizes);

impl Call for Convolution {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.forward(&x[0].data, &x[1].data, x.get(2).map(|b| &b.data), &y[0].data, run.finish)
    }

    fn finishes(&self) -> Option<[usize; 3]> {
        self.0.finishes()
    }

    fn multiplications(&self) -> f64 {
        self.0.multiplications()
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        self.0.scratch(dtype)
    }

    fn grad_over(&self, i: usize) -> Option<usize> {
        (i == 0 && self.0.goes_over()).then_some(0)
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        data_and_weight(want)
    }

    fn backward(&self, _run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let s = &self.0;
        // The gradient of x last: it may be written over that of y.
        let own = gx[0].as_ref();
        let place = own.filter(|gx| gx.over).map(|gx| &gx.data);
        let Some(g) = gy[0].as_ref().map(|gy| &gy.data).or(place) else { return Ok(()) };
        if let (Some(gw), Some(x)) = (&gx[1], &x[0]) {
            s.backward_weight(g, &x.data, &gw.data, gw.output)?;
        }
        if let Some(Some(gb)) = gx.get(2) {
            s.backward_bias(g, &gb.data, gb.output)?;
        }
        match (own, &x[1]) {
            (Some(gx), Some(w)) if gx.over => s.backward_data_over(&w.data, &gx.data),
            (Some(gx), Some(w)) => s.backward_data(g, &w.data, &gx.data, gx.output),
            _ => Ok(()),
        }
    }
}

/// The transpose of a convolution of these sizes.
pub struct Deconvolution(pub ConvolutionSizes);

impl Call for Deconvolution {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.transposed(&x[0].data, &x[1].data, x.get(2).map(|b| &b.data), &y[0].data)
    }

    fn multiplications(&self) -> f64 {
        self.0.multiplications()
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        let [forward, backward] = self.0.scratch(dtype);
        [backward, forward.max(backward)]
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        data_and_weight(want)
    }

    fn backward(&self, _run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (s, Some(gy)) = (&self.0, &gy[0]) else { return Ok(()) };
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
}

/// The gradient of the weight from x and the gradient of y.
pub struct ConvolutionWeightGradCall(pub ConvolutionSizes);

impl Call for ConvolutionWeightGradCall {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.backward_weight(&x[1].data, &x[0].data, &y[0].data, Output::Write)
    }
}
