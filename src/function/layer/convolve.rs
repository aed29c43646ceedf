//! A convolution's work once its sizes are known: on the host by its kernels, on a GPU by those there.

use super::direct;
use super::spatial::{Dims, Sizes, three};
use nnrs_kernels::array::Output;
use nnrs_kernels::array::{Data, Place};
use nnrs_kernels::cpu::conv::{Conv, Layout};
use nnrs_kernels::cpu::simd::{self, SimdReal};
use nnrs_kernels::cuda::convolution::{self, Geometry};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;

impl Sizes {
    fn kernel_sizes(&self) -> Option<Conv> {
        (self.kernel.len() <= 3).then(|| Conv {
            batch: self.lead.size(),
            group: self.group,
            in_channels: self.in_channels,
            out_channels: self.out_channels,
            input: three(&self.input, 1),
            kernel: three(&self.kernel, 1),
            stride: three(&self.stride, 1),
            pad: three(&self.pad, 0),
            dilation: three(&self.dilation, 1),
            layout: if self.channel_last { Layout::ChannelLast } else { Layout::ChannelFirst },
        })
    }

    /// Bytes of the large buffers that the host's kernels work in, forward and backward.
    pub fn scratch(&self, dtype: DType) -> [usize; 2] {
        self.kernel_sizes().map_or([0; 2], |c| with_real!(dtype, T => c.scratch::<T>()))
    }

    /// The sizes as GPUs' kernels take them.
    fn geometry(&self) -> Geometry<'_> {
        Geometry {
            batch: self.lead.size(),
            group: self.group,
            in_channels: self.in_channels,
            out_channels: self.out_channels,
            input: &self.input,
            output: &self.output,
            kernel: &self.kernel,
            stride: &self.stride,
            pad: &self.pad,
            dilation: &self.dilation,
            channel_last: self.channel_last,
        }
    }

    /// The convolution of `x`, plus the bias.
    pub fn forward(&self, x: &Data, w: &Data, bias: Option<&Data>, y: &Data) -> Result<()> {
        match y.place() {
            Place::Gpu(_) => convolution::forward(&self.geometry(), x, w, bias, y, Output::Write)?,
            Place::Host => with_real!(y.dtype(), T => {
                self.forward_on_host(x.as_slice::<T>(), w.as_slice(), bias.map(|b| b.as_slice()), y.as_mut_slice())
            }),
        }
        Ok(())
    }

    fn forward_on_host<T: SimdReal>(&self, x: &[T], w: &[T], bias: Option<&[T]>, y: &mut [T]) {
        match self.kernel_sizes() {
            Some(c) => c.forward(x, w, bias, y),
            None => {
                self.fill(y, bias, self.out_channels, &self.output);
                direct::each_product(self, |i, k, o| y[o] += x[i] * w[k]);
            }
        }
    }

    /// The gradient of x.
    pub fn backward_data(&self, gy: &Data, w: &Data, gx: &Data, output: Output) -> Result<()> {
        match gx.place() {
            Place::Gpu(_) => convolution::data_gradient(&self.geometry(), gy, w, None, gx, output)?,
            Place::Host => with_real!(gx.dtype(), T => {
                self.backward_data_on_host(gy.as_slice::<T>(), w.as_slice(), gx.as_mut_slice(), output)
            }),
        }
        Ok(())
    }

    fn backward_data_on_host<T: SimdReal>(&self, gy: &[T], w: &[T], gx: &mut [T], output: Output) {
        match self.kernel_sizes() {
            Some(c) => c.backward_data(gy, w, gx, output),
            None => {
                direct::start(gx, output);
                direct::each_product(self, |i, k, o| gx[i] += gy[o] * w[k]);
            }
        }
    }

    /// Whether the gradient of x can be written over that of y (on the host).
    pub fn goes_over(&self) -> bool {
        self.kernel_sizes().is_some_and(|c| c.goes_over())
    }

    /// As `backward_data`, with the gradient of y in the place of that of x.
    pub fn backward_data_over(&self, w: &Data, g: &Data) -> Result<()> {
        match self.kernel_sizes() {
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
    pub fn backward_weight(&self, gy: &Data, x: &Data, gw: &Data, output: Output) -> Result<()> {
        match gw.place() {
            Place::Gpu(_) => convolution::weight_gradient(&self.geometry(), gy, x, gw, output)?,
            Place::Host => with_real!(gw.dtype(), T => {
                self.backward_weight_on_host(gy.as_slice::<T>(), x.as_slice(), gw.as_mut_slice(), output)
            }),
        }
        Ok(())
    }

    fn backward_weight_on_host<T: SimdReal>(&self, gy: &[T], x: &[T], gw: &mut [T], output: Output) {
        match self.kernel_sizes() {
            Some(c) => c.backward_weight(gy, x, gw, output),
            None => {
                direct::start(gw, output);
                direct::each_product(self, |i, k, o| gw[k] += gy[o] * x[i]);
            }
        }
    }

    /// The gradient of the bias.
    pub fn backward_bias(&self, gy: &Data, gb: &Data, output: Output) -> Result<()> {
        match self.kernel_sizes() {
            Some(c) if gb.place() == Place::Host => {
                with_real!(gb.dtype(), T => c.backward_bias(gy.as_slice::<T>(), gb.as_mut_slice(), output));
                Ok(())
            }
            _ => self.sum_channels(gy, self.out_channels, gb, output),
        }
    }

    /// The convolution of `x` written or added to `y`.
    pub fn forward_to(&self, x: &Data, w: &Data, y: &Data, output: Output) -> Result<()> {
        match y.place() {
            Place::Gpu(_) => convolution::forward(&self.geometry(), x, w, None, y, output),
            Place::Host if output == Output::Write => self.forward(x, w, None, y),
            Place::Host => {
                let part = Data::new(y.dtype(), y.len())?;
                self.forward(x, w, None, &part)?;
                with_real!(y.dtype(), T => simd::add_assign(y.as_mut_slice::<T>(), part.as_slice()));
                Ok(())
            }
        }
    }

    /// What a deconvolution makes of x: the data gradient, plus a bias for each of its maps.
    pub fn transposed(&self, x: &Data, w: &Data, bias: Option<&Data>, y: &Data) -> Result<()> {
        match (bias, y.place()) {
            (None, _) => self.backward_data(x, w, y, Output::Write),
            (_, Place::Gpu(_)) => convolution::data_gradient(&self.geometry(), x, w, bias, y, Output::Write),
            (Some(b), Place::Host) => {
                let channels = self.in_channels;
                with_real!(y.dtype(), T => self.fill(y.as_mut_slice::<T>(), Some(b.as_slice()), channels, &self.input));
                self.backward_data(x, w, y, Output::Accumulate)
            }
        }
    }

    /// The sums over all but the channels, which lie in `gb`'s order.
    pub fn sum_channels(&self, gy: &Data, channels: usize, gb: &Data, output: Output) -> Result<()> {
        let (n, points) = (self.lead.size(), gy.len() / (self.lead.size() * channels).max(1));
        match self.channel_last {
            true => ops::sum(gy, &Shape::from([n * points, channels]), &[true, false], gb, output),
            false => ops::sum(gy, &Shape::from([n, channels, points]), &[true, false, true], gb, output),
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
