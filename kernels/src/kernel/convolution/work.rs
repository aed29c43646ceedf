//! A convolution's work: on the host by its kernels, on a GPU by those there.

use super::cpu::{ChannelOrder, Conv, ConvolutionWeights, ForwardOperands, loops};
use super::{ConvolutionSizes, Dims, cuda, three};
use crate::array::{Data, Output, Place};
use crate::call::View;
use crate::dtype::DType;
use crate::error::Result;
use crate::finish::{Finish, Finisher};
use crate::kernel::ops;
use crate::simd::{self, SimdReal};
use crate::with_real;

impl ConvolutionSizes {
    /// The sizes as the host's kernels take them, which know three axes at most.
    fn on_host(&self) -> Option<Conv> {
        (self.kernel.len() <= 3).then(|| Conv {
            batch: self.batch,
            group: self.group,
            in_channels: self.in_channels,
            out_channels: self.out_channels,
            input: three(&self.input, 1),
            kernel: three(&self.kernel, 1),
            stride: three(&self.stride, 1),
            pad: three(&self.pad, 0),
            dilation: three(&self.dilation, 1),
            layout: if self.channel_last { ChannelOrder::ChannelLast } else { ChannelOrder::ChannelFirst },
        })
    }

    /// Bytes of the large buffers that the host's kernels work in, forward and backward.
    pub(super) fn scratch(&self, dtype: DType) -> [usize; 2] {
        let host = self.on_host().filter(|_| !self.is_empty());
        host.map_or([0; 2], |c| with_real!(dtype, T => c.scratch::<T>()))
    }

    /// Images, channels and points of a result that the host's kernels finish.
    pub(super) fn finishes(&self) -> Option<[usize; 3]> {
        let points = self.output.iter().product();
        (self.on_host().is_some() && !self.channel_last).then_some([self.batch, self.out_channels, points])
    }

    /// The convolution of `x`, plus the bias; then what is to be done to its result.
    pub(super) fn forward(
        &self,
        x: &Data,
        w: &Data,
        bias: Option<&Data>,
        y: &Data,
        finish: Option<&Finish>,
    ) -> Result<()> {
        match y.place() {
            _ if self.is_empty() => {}
            Place::Gpu(_) => cuda::forward(self, x, w, bias, y, Output::Write)?,
            Place::Host => with_real!(y.dtype(), T => {
                let bias = bias.map(|b| b.as_slice());
                let y = y.as_mut_slice();
                let points = self.output.iter().product();
                let finish = finish.map(|f| Finisher::new(f, y, self.out_channels, points));
                let (x, w, finish) = (x.as_slice::<T>(), ConvolutionWeights::of(w), finish.as_ref());
                self.forward_on_host(ForwardOperands { x, w, bias, finish }, y)
            }),
        }
        Ok(())
    }

    fn forward_on_host<T: SimdReal>(&self, o: ForwardOperands<T>, y: &mut [T]) {
        match self.on_host() {
            Some(c) => c.forward_by(o, y),
            None => {
                self.fill(y, o.bias, self.out_channels, &self.output);
                loops::each_product(self, |i, k, out| y[out] += o.x[i] * o.w.all[k]);
            }
        }
    }

    /// The gradient of x.
    pub(super) fn backward_data(&self, gy: &Data, w: &Data, gx: &Data, output: Output) -> Result<()> {
        match gx.place() {
            _ if self.is_empty() => {}
            Place::Gpu(_) => cuda::data_gradient(self, gy, w, None, gx, output)?,
            Place::Host => with_real!(gx.dtype(), T => {
                self.backward_data_on_host(gy.as_slice::<T>(), w.as_slice(), gx.as_mut_slice(), output)
            }),
        }
        Ok(())
    }

    fn backward_data_on_host<T: SimdReal>(&self, gy: &[T], w: &[T], gx: &mut [T], output: Output) {
        match self.on_host() {
            Some(c) => c.backward_data(gy, w, gx, output),
            None => {
                loops::start(gx, output);
                loops::each_product(self, |i, k, o| gx[i] += gy[o] * w[k]);
            }
        }
    }

    /// Whether the gradient of x can be written over that of y (on the host).
    pub(super) fn goes_over(&self) -> bool {
        self.on_host().is_some_and(|c| c.goes_over())
    }

    /// As `backward_data`, with the gradient of y in the place of that of x.
    pub(super) fn backward_data_over(&self, w: &Data, g: &Data) -> Result<()> {
        match self.on_host() {
            Some(c) if g.place() == Place::Host => {
                with_real!(g.dtype(), T => c.backward_data_over(w.as_slice::<T>(), g.as_mut_slice()));
                Ok(())
            }
            _ => {
                let gy = Data::new_at(g.place(), g.dtype(), g.len())?;
                gy.take(g)?;
                self.backward_data(&gy, w, g, Output::Write)
            }
        }
    }

    /// The gradient of the weight.
    pub(super) fn backward_weight(&self, gy: &Data, x: &Data, gw: &Data, output: Output) -> Result<()> {
        match gw.place() {
            _ if self.is_empty() && output == Output::Write => ops::fill(gw, 0.0)?,
            _ if self.is_empty() => {}
            Place::Gpu(_) => cuda::weight_gradient(self, gy, x, gw, output)?,
            Place::Host => with_real!(gw.dtype(), T => {
                self.backward_weight_on_host(gy.as_slice::<T>(), x.as_slice(), gw.as_mut_slice(), output)
            }),
        }
        Ok(())
    }

    fn backward_weight_on_host<T: SimdReal>(&self, gy: &[T], x: &[T], gw: &mut [T], output: Output) {
        match self.on_host() {
            Some(c) => c.backward_weight(gy, x, gw, output),
            None => {
                loops::start(gw, output);
                loops::each_product(self, |i, k, o| gw[k] += gy[o] * x[i]);
            }
        }
    }

    /// The gradient of the bias.
    pub(super) fn backward_bias(&self, gy: &Data, gb: &Data, output: Output) -> Result<()> {
        match self.on_host() {
            Some(c) if gb.place() == Place::Host => {
                with_real!(gb.dtype(), T => c.backward_bias(gy.as_slice::<T>(), gb.as_mut_slice(), output));
                Ok(())
            }
            _ => self.sum_channels(gy, self.out_channels, gb, output),
        }
    }

    /// The convolution of `x` written or added to `y`.
    pub(super) fn forward_to(&self, x: &Data, w: &Data, y: &Data, output: Output) -> Result<()> {
        match y.place() {
            Place::Gpu(_) => cuda::forward(self, x, w, None, y, output),
            Place::Host if output == Output::Write => self.forward(x, w, None, y, None),
            Place::Host => {
                let part = Data::new(y.dtype(), y.len())?;
                self.forward(x, w, None, &part, None)?;
                with_real!(y.dtype(), T => simd::add_assign(y.as_mut_slice::<T>(), part.as_slice()));
                Ok(())
            }
        }
    }

    /// What a deconvolution makes of x: the data gradient, plus a bias for each of its maps.
    pub(super) fn transposed(&self, x: &Data, w: &Data, bias: Option<&Data>, y: &Data) -> Result<()> {
        match (bias, y.place()) {
            (None, _) => self.backward_data(x, w, y, Output::Write),
            (_, Place::Gpu(_)) => cuda::data_gradient(self, x, w, bias, y, Output::Write),
            (Some(b), Place::Host) => {
                let channels = self.in_channels;
                with_real!(y.dtype(), T => self.fill(y.as_mut_slice::<T>(), Some(b.as_slice()), channels, &self.input));
                self.backward_data(x, w, y, Output::Accumulate)
            }
        }
    }

    /// The sums over all but the channels, which lie in `gb`'s order.
    pub(super) fn sum_channels(&self, gy: &Data, channels: usize, gb: &Data, output: Output) -> Result<()> {
        let (n, points) = (self.batch, gy.len() / (self.batch * channels).max(1));
        match self.channel_last {
            true => ops::sum(&View::new(&[n * points, channels].into(), gy.clone()), &[true, false], gb, output),
            false => ops::sum(&View::new(&[n, channels, points].into(), gy.clone()), &[true, false, true], gb, output),
        }
    }

    /// Fills an image with a number for each channel.
    fn fill<T: SimdReal>(&self, y: &mut [T], bias: Option<&[T]>, channels: usize, spatial: &Dims) {
        let Some(b) = bias.filter(|b| !b.is_empty()) else { return y.fill(T::ZERO) };
        if self.channel_last {
            return y.chunks_exact_mut(channels).for_each(|row| row.copy_from_slice(b));
        }
        let rows = y.chunks_exact_mut(spatial.iter().product());
        rows.zip(b.iter().cycle()).for_each(|(row, &b)| row.fill(b));
    }
}
